"""Every decision about safety names its proofs in the code, and has a test that forges them."""

import ast
import pkgutil
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import amends
from amends.proof import DECISIONS, Claim, Proof, rests_on
from tests.forgery.decisions import FORGED_BY, NO_DECISIONS

ROOT = Path(__file__).parents[2]
WITHOUT_EXTRA = {"amends.__main__"}
OTHER_VERSION = {"amends.bindings.mcp.version_1"}
"""Modules for another version of a library than the installed one."""


def _check_unimported(name, missing):
    """A binding whose framework is not installed here may not make a decision about safety."""
    source = (ROOT / "src" / Path(*name.split("."))).with_suffix(".py").read_text()
    assert "pip install" in str(missing) or name in OTHER_VERSION, name
    assert "rests_on" not in source, f"{name} decides about safety, and cannot be imported here"


@pytest.fixture(scope="module")
def decisions():
    """All decisions of the package: importing a module enters its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(amends.__path__, "amends."):
            if module.name in WITHOUT_EXTRA:
                continue
            try:
                import_module(module.name)
            except ImportError as missing:
                _check_unimported(module.name, missing)
    return {name: bases for name, bases in DECISIONS.items() if name.startswith("amends.")}


def test_every_decision_is_listed_with_its_tests(decisions):
    """The list and the code name the same decisions."""
    assert sorted(decisions) == sorted(FORGED_BY)


@pytest.mark.parametrize("name", sorted(FORGED_BY))
def test_the_tests_of_a_decision_exist(name):
    """Each listed test is a function of a test file, or a whole test file."""
    assert FORGED_BY[name]
    for node in FORGED_BY[name]:
        path, _, function = node.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        names = {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert function in names if function else any(each.startswith("test_") for each in names)


def says_no(node):
    """Return whether an expression is `Executed.NO`, or `executed="no"` in a call."""
    if isinstance(node, ast.keyword):
        return node.arg == "executed" and isinstance(node.value, ast.Constant) and node.value.value == "no"
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "Executed.NO"


def is_about_repeats(name):
    """Return whether a function has the name of a decision about repeats or leases."""
    return name in {"repeatable", "safe_to_repeat", "lease_left", "may_rerun"}


def undecided(body, prefix):
    """Yield the functions without `rests_on` that say that something did not happen, or may be repeated."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from undecided(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marked = any(ast.unparse(each).startswith("rests_on(") for each in node.decorator_list)
            if not marked and (any(map(says_no, ast.walk(node))) or is_about_repeats(node.name)):
                yield f"{prefix}{node.name}"


def test_whoever_says_that_nothing_happened_names_a_proof():
    """Each function that names "it did not happen" is a decision with its proofs, or is listed with the reason why it is none."""
    package = ROOT / "src" / "amends"
    found = set()
    for path in package.rglob("*.py"):
        name = "amends." + path.relative_to(package).with_suffix("").as_posix().replace("/", ".")
        found |= {f"{name}:{each}" for each in undecided(ast.parse(path.read_text("utf-8")).body, "")}
    assert sorted(found) == sorted(NO_DECISIONS)


@pytest.mark.parametrize("kind", list(Proof))
def test_every_kind_of_proof_is_used(decisions, kind):
    """A proof that no decision accepts is none."""
    assert any(kind in basis.proofs for bases in decisions.values() for basis in bases)


def test_a_decision_without_a_proof_is_refused():
    """The decorator needs a proof, and leaves the function as it is."""
    with pytest.raises(TypeError, match="at least one Proof"):
        rests_on(Claim.OURS)

    def is_ours():
        return True

    assert rests_on(Claim.OURS, Proof.SECRET)(is_ours) is is_ours
    assert DECISIONS.pop(f"{__name__}:{is_ours.__qualname__}") == ((Claim.OURS, (Proof.SECRET,)),)


def test_several_claims_of_one_function():
    """They are kept in the order of the decorators."""

    @rests_on(Claim.LOCAL, Proof.SOCKET)
    @rests_on(Claim.OURS, Proof.SECRET, Proof.PROCESS)
    def may_pass():
        return True

    bases = DECISIONS.pop(f"{__name__}:{may_pass.__qualname__}")
    assert [(basis.claim, basis.proofs) for basis in bases] == [
        (Claim.LOCAL, (Proof.SOCKET,)),
        (Claim.OURS, (Proof.SECRET, Proof.PROCESS)),
    ]
