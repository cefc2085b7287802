"""Every clause of the ledger has tests or a written deferral, and no test names a clause that does not exist."""

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
from tests.requirements import ALL, REQUIREMENTS, SUBJECTS, VECTORS

ROOT = Path(__file__).parents[1]
ID = re.compile(r"(?<![\w/+-])[PCTAR][1-9]\d?(?![\w-])")

LEDGER = {"P": 11, "C": 12, "T": 12, "A": 21, "R": 11}
"""How many clauses each source document has."""
EXPECTED = [f"{letter}{number}" for letter, last in LEDGER.items() for number in range(1, last + 1)]


@cache
def node_ids() -> frozenset[str]:
    """Every test of the suite, found by reading the files: module::test, or module::Class::test."""
    found = set()
    for path in ROOT.joinpath("tests").rglob("test_*.py"):
        module = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            holders = [(f"{node.name}::", node.body)] if isinstance(node, ast.ClassDef) else [("", [node])]
            for prefix, body in holders:
                found |= {
                    f"{module}::{prefix}{item.name}"
                    for item in body
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
                    and item.name.startswith("test")
                }
    return frozenset(found)


def docstrings(text: str) -> Iterator[str]:
    """The docstrings of a module, its classes and functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def comments(text: str) -> Iterator[str]:
    """The comments of a module."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def test_the_ledger_is_whole():
    """Every id of the five documents is there once, in order, and none besides."""
    assert [item.id for item in ALL] == EXPECTED
    assert len(REQUIREMENTS) == len(ALL)


@pytest.mark.parametrize("id", EXPECTED)
def test_every_clause_is_proven_or_deferred(id):
    """Tests, or a deferral that names the subject of a later issue; a clause proven in part has both."""
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
    """A test that was renamed or lost is noticed here."""
    for name in REQUIREMENTS[id].tests:
        assert any(fnmatchcase(node, name) for node in node_ids()), (
            f"{id} names {name}, which matches no test"
        )


def test_every_vector_names_known_clauses_and_the_ledger_names_the_vectors():
    """The ids that vectors prove are exactly those that name the vectors as proof."""
    named = Counter(id for vector in vectors.load() for id in vector.requirements)
    assert set(named) == {item.id for item in ALL if VECTORS in item.tests}


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_nobody_names_an_unknown_clause(folder):
    """Ids in docstrings and in comments are those of the ledger."""
    unknown = []
    for path in sorted(ROOT.joinpath(folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if set(ID.findall(text)) <= REQUIREMENTS.keys():
            continue  # parsing every file would take seconds
        for said in (*docstrings(text), *comments(text)):
            unknown += [
                f"{path.relative_to(ROOT)}: {id}" for id in ID.findall(said) if id not in REQUIREMENTS
            ]
    assert unknown == []


def test_the_search_for_ids_finds_them():
    """Otherwise the test above would hold of anything."""
    assert ID.findall("A7: at most 4096 bytes (P3, R12); A16.4, not A2A nor X-T1") == [
        "A7",
        "P3",
        "R12",
        "A16",
    ]
