"""Every requirement has tests or a deferral, and no test names a requirement that does not exist."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from amends import vectors
from tests.each import each
from tests.requirements import ALL, REQUIREMENTS, SUBJECTS, VECTORS

ROOT = Path(__file__).parents[1]
ID = re.compile(r"(?<![\w/+-])[PCTAR][1-9]\d?(?![\w-])")

LEDGER = {"P": 14, "C": 14, "T": 15, "A": 23, "R": 11}
"""The number of clauses of each specification."""
EXPECTED = [f"{letter}{number}" for letter, last in LEDGER.items() for number in range(1, last + 1)]


@cache
def node_ids() -> frozenset[str]:
    """Return the node ids of all tests from the source files: module::test or module::Class::test."""
    found = set()
    for path in ROOT.joinpath("tests").rglob("test_*.py"):
        module = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            scopes = [(f"{node.name}::", node.body)] if isinstance(node, ast.ClassDef) else [("", [node])]
            for prefix, body in scopes:
                found |= {
                    f"{module}::{prefix}{item.name}"
                    for item in body
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
                    and item.name.startswith("test")
                }
    return frozenset(found)


def docstrings(text: str) -> Iterator[str]:
    """Yield the docstrings of a module, its classes and functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def comments(text: str) -> Iterator[str]:
    """Yield the comments of a module."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def test_every_clause_is_listed():
    """The list has every id of the five specifications once, in order."""
    assert [item.id for item in ALL] == EXPECTED
    assert len(REQUIREMENTS) == len(ALL)


@each("id", EXPECTED)
def test_every_clause_has_tests_or_a_deferral(id):
    """Every clause has tests, or a deferral that names the subject of a later issue."""
    requirement = REQUIREMENTS[id]
    assert requirement.clause
    assert requirement.tests or requirement.deferral
    assert len(set(requirement.tests)) == len(requirement.tests)
    if requirement.deferral is not None:
        subject, _, rest = requirement.deferral.partition(": ")
        assert subject in SUBJECTS
        assert rest


@pytest.mark.parametrize("id", EXPECTED)
def test_every_named_test_exists(id):
    """Every node id or glob of a requirement matches a test."""
    for name in REQUIREMENTS[id].tests:
        assert any(fnmatchcase(node, name) for node in node_ids()), (
            f"{id} names {name}, which matches no test"
        )


def test_the_clauses_of_the_vectors():
    """The ids that vectors name are exactly those whose tests include the vectors."""
    named = Counter(id for vector in vectors.load() for id in vector.requirements)
    assert set(named) == {item.id for item in ALL if VECTORS in item.tests}


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_ids_in_docstrings_and_comments_exist(folder):
    """Every id in a docstring or comment is that of a requirement."""
    unknown = []
    for path in sorted(ROOT.joinpath(folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if set(ID.findall(text)) <= REQUIREMENTS.keys():
            continue  # without parsing the file, which is slow
        for prose in (*docstrings(text), *comments(text)):
            unknown += [
                f"{path.relative_to(ROOT)}: {id}" for id in ID.findall(prose) if id not in REQUIREMENTS
            ]
    assert unknown == []


def test_the_search_for_ids_finds_them():
    """The pattern finds ids in a sentence, and does not match other names."""
    assert ID.findall("A7: at most 4096 bytes (P3, R12); A16.4, not A2A nor X-T1") == [
        "A7",
        "P3",
        "R12",
        "A16",
    ]
