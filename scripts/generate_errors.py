"""
Write the exception classes from the vocabulary tables.

    python scripts/generate_errors.py           write src/amends/errors/*.py
    python scripts/generate_errors.py --check   exit 1 when what is there differs
"""

from __future__ import annotations

import sys
from pathlib import Path

from amends.core.vocabulary import EVERYDAY, Row, vocabulary
from amends.errors.classes import class_name

HERE = Path(__file__).resolve().parent.parent / "src" / "amends" / "errors"

TITLES = {
    EVERYDAY: "The everyday errors: ten exceptions for what goes wrong everywhere, right in every dialect.",
    "adcp": "AdCP's standard codes (S4), one exception each.",
    "task": "The codes of an agent system (S3), one exception each.",
    "cli": "The codes of a command line (S2), one exception each.",
    "arcp": "ARCP's fifteen codes (S5), one exception each, under one root.",
}
NOTE = (
    "# Written by scripts/generate_errors.py from the vocabulary tables: change those, then `make generate`."
)


def docstring(row: Row) -> str:
    """What the class means: what happened, how to answer, what to do."""
    return f'    """{row.message} ({row.recovery}). {row.suggestion}."""'


def everyday_module() -> str:
    """The package's module: the everyday set and the base class."""
    rows = vocabulary(EVERYDAY).rows.values()
    names = sorted([*(class_name(row.code) for row in rows), "FaultError"])
    lines = [
        f'"""{TITLES[EVERYDAY]}"""',
        "",
        NOTE,
        "",
        "from __future__ import annotations",
        "",
        "import builtins",
        "",
        "from amends.errors.base import FaultError",
        "",
        f"__all__ = {names!r}".replace("'", '"'),
    ]
    for row in rows:
        bases = "FaultError, builtins.TimeoutError" if row.code == "TIMEOUT" else "FaultError"
        lines += ["", "", *class_lines(row, bases, EVERYDAY)]
    return "\n".join(lines) + "\n"


def class_lines(row: Row, bases: str, vocabulary_name: str) -> list[str]:
    """One class."""
    return [
        f"class {class_name(row.code)}({bases}):",
        docstring(row),
        "",
        f'    code = "{row.code}"',
        f'    vocabulary = "{vocabulary_name}"',
    ]


def vocabulary_module(name: str) -> str:
    """A whole vocabulary; a code that the everyday set has subclasses its everyday class."""
    rows = vocabulary(name).rows.values()
    everyday = {class_name(row.code) for row in vocabulary(EVERYDAY).rows.values()}
    root = "ARCPErrorOfCode" if name == "arcp" else "FaultError"
    names = sorted(class_name(row.code) for row in rows)
    source = ["from amends import errors as everyday"]
    if name == "arcp":
        names = sorted([*names, "ARCPError", "is_retryable_by_default"])
        source.append(
            "from amends.errors.arcp_base import ARCPError, ARCPErrorOfCode, is_retryable_by_default"
        )
    else:
        source.append("from amends.errors.base import FaultError")
    lines = [
        f'"""{TITLES[name]}"""',
        "",
        NOTE,
        "",
        "from __future__ import annotations",
        "",
        *source,
        "",
        f"__all__ = {names!r}".replace("'", '"'),
    ]
    for row in rows:
        shared = class_name(row.code) in everyday
        bases = root if not shared else f"everyday.{class_name(row.code)}"
        if shared and name == "arcp":
            bases = f"ARCPErrorOfCode, everyday.{class_name(row.code)}"
        lines += ["", "", *class_lines(row, bases, name)]
    return "\n".join(lines) + "\n"


def formatted(path: Path, source: str) -> str:
    """The source as the project formats it."""
    import subprocess

    ruff = Path(sys.executable).parent / "ruff"
    done = subprocess.run(
        [ruff, "format", "--stdin-filename", str(path), "-"],
        input=source,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def modules() -> dict[Path, str]:
    """Every generated file with its content."""
    sources = {HERE / "__init__.py": everyday_module()}
    sources |= {HERE / f"{name}.py": vocabulary_module(name) for name in ("adcp", "task", "cli", "arcp")}
    return {path: formatted(path, source) for path, source in sources.items()}


def main() -> int:
    """Write or check."""
    stale = [path for path, source in modules().items() if not path.exists() or path.read_text() != source]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} differs from its table: run `make generate`")
        return 1 if stale else 0
    for path, source in modules().items():
        path.write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
