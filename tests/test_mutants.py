"""The mutation test of scripts/mutants.py."""

import ast
import doctest
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "scripts" / "mutants.py"


@pytest.fixture(scope="module")
def mutants():
    spec = importlib.util.spec_from_file_location("mutants", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = '''
"""Docs are left alone."""
__all__ = ["f"]
LIMIT: int = 3

def f(a: int = 1) -> int:
    """So are these."""
    if a < LIMIT and not a:
        a += 1
    return a
'''


def test_its_examples(mutants):
    """The examples in the docstrings hold."""
    assert doctest.testmod(mutants).failed == 0


def test_the_mutants_of_a_module(mutants):
    """Comparisons, booleans, numbers, conditions, statements and results are changed; docs and annotations are not."""
    found = [each.name.removeprefix("m.py ") for each in mutants.mutants_of("m.py", SOURCE)]
    assert found == [
        ": 3 -> 4",
        ": 3 -> 2",
        "f: 1 -> 2",
        "f: 1 -> 0",
        "f: if a < LIMIT and (not a): ... -> if not (a < LIMIT and (not a)): ...",
        "f: a < LIMIT and (not a) -> a < LIMIT or not a",
        "f: a < LIMIT -> a <= LIMIT",
        "f: not a -> a",
        "f: a += 1 -> a -= 1",
        "f: a += 1 -> pass",
        "f: 1 -> 2 (2)",
        "f: 1 -> 0 (2)",
        "f: return a -> return None",
    ]


def test_a_sample(mutants):
    """The sample depends on the seed only, and every mutant compiles to other code than the file's."""
    chosen = mutants.sample(40, 1, "durable/batch.py")
    assert chosen == mutants.sample(41, 1, "durable/batch.py")[:40]
    assert chosen != mutants.sample(40, 2, "durable/batch.py")
    for mutant in chosen:
        file = mutants.SOURCE / mutant.path
        assert mutants.mutate(mutant) != compile(ast.parse(file.read_text()), str(file), "exec")


def test_the_equivalent_mutants_exist(mutants, monkeypatch):
    """A row of the table that names no mutant is left over from code that has changed."""
    listed = set(mutants.EQUIVALENT)
    monkeypatch.setattr(mutants, "EQUIVALENT", {})
    found = {
        mutant.name
        for path in {name.split(" ")[0] for name in listed}
        for mutant in mutants.sample(9999, 1, path)
    }
    assert listed <= found


def test_functions_get_the_code_of_their_name(mutants):
    """A function is replaced in place; code that no function has cannot be."""
    namespace = {}
    exec(compile(SOURCE, "m.py", "exec"), namespace)
    changed = compile(SOURCE.replace("return a", "return 7"), "m.py", "exec")
    assert mutants.replace_code(changed, [namespace["f"]])
    assert namespace["f"]() == 7
    assert not mutants.replace_code(changed, [namespace["f"]])


def test_forks(mutants):
    """A fork returns its exit code; one that takes too long is killed."""
    import time

    assert mutants.wait(mutants.start(lambda: 3)) == 3
    assert mutants.wait(mutants.start(lambda: 1 // 0)) == 70
    assert mutants.wait(mutants.start(lambda: time.sleep(600)), 0.01) is None


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_most_mutants_are_killed():
    """Tests fail for at least 90 % of a sample of 400 mutants; the output lists the survivors."""
    done = subprocess.run([sys.executable, PATH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
