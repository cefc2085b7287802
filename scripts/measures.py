"""
Measure the source: code lines, `Any`, import cycles, modules without a test file of their name. Run: python scripts/measures.py

Code lines are lines with a token that is neither a comment nor part of a docstring. Import cycles count all imports of the
package's modules, also those inside functions, but not those for type checking only.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Container, Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "amends"
TESTS = SOURCE.parents[1] / "tests"
_NO_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
)


def code_lines(text: str) -> int:
    r"""
    Return the number of lines with code.

    >>> code_lines('"Docs."\n\nx = 1  # one\n\n# two\ny = (\n    2\n)\n')
    4
    """
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            docs.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE and token.type != tokenize.ENDMARKER:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - docs)


def any_count(text: str) -> int:
    """Return how often the name Any is used, without its imports."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(text)))


def imports(tree: ast.AST, modules: Container[str]) -> Iterator[str]:
    """Yield the modules that a file imports at run time."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                # `from package import module` imports the module; the package itself is counted for its own names only.
                inner = f"{node.module}.{each.name}"
                yield inner if inner in modules else node.module
        yield from imports(node, modules)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """
    Return the groups of modules that import each other.

    >>> cycles({"a": {"b"}, "b": {"a"}, "c": {"a"}})
    [['a', 'b']]
    """

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = list(graph[start])
        while ahead:
            module = ahead.pop()
            if module not in seen:
                seen.add(module)
                ahead += graph.get(module, ())
        return seen

    after = {module: reachable(module) for module in graph}
    groups = {
        tuple(sorted(other for other in graph if other in after[module] and module in after[other]))
        for module in graph
        if module in after[module]
    }
    return [list(group) for group in sorted(groups)]


def module_name(path: Path) -> str:
    """Return the dotted name of a file."""
    parts = ["amends", *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_cycles() -> list[list[str]]:
    """Return the groups of modules that import each other, over the whole package."""
    files = {module_name(path): path for path in SOURCE.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        graph[name] = set(imports(ast.parse(path.read_text()), files)) & files.keys() - {name}
    return cycles(graph)


def without_tests(packages: Container[str]) -> list[str]:
    """Return the modules of these packages that define functions or classes and have no test file of their name."""
    named = {path.name for path in TESTS.rglob("test_*.py")}
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE)
        if name.parts[0] not in packages or path.stem == "__init__" or f"test_{path.name}" in named:
            continue
        if any(isinstance(node, _DEFINITIONS) for node in ast.walk(ast.parse(path.read_text()))):
            found.append(str(name))
    return found


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def main() -> None:
    """Print the measures."""
    texts = [path.read_text() for path in SOURCE.rglob("*.py")]
    lines, anys = sum(map(code_lines, texts)), sum(map(any_count, texts))
    sys.stdout.write(
        f"files {len(texts)}, code lines {lines:,}, Any {anys} ({1000 * anys / lines:.1f} per 1,000)\n"
    )
    for group in import_cycles():
        sys.stdout.write(f"import cycle: {', '.join(group)}\n")
    for path in without_tests({"arcp", "durable", "http", "recovery", "tasks"}):
        sys.stdout.write(f"no test file: {path}\n")


if __name__ == "__main__":
    main()
