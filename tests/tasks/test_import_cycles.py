"""The modules of `amends.tasks` import each other in one direction; imports inside functions and for types count too."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import amends.tasks

ROOT = Path(amends.tasks.__file__).parents[2]


def modules():
    for path in Path(amends.tasks.__file__).parent.rglob("*.py"):
        yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def test_there_are_no_cycles():
    known = dict(modules())
    graph = {
        name: {each for each in imported(path) if each in known} - {name} for name, path in known.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(known)
