"""The versions of MCP frameworks: an import with another version names the one that is needed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("package", "installed", "needed"),
    [
        ("mcp", "1.23.3", "1.24 or later, before 3"),
        ("mcp", "3.0.0", "1.24 or later, before 3"),
        ("fastmcp", "2.14.1", "4.1 or a later 4.x"),
        ("fastmcp", "3.2.0", "4.1 or a later 4.x"),
    ],
)
def test_another_version_is_named(tmp_path, package, installed, needed):
    """With an mcp before 1.24 or after 2.x, or FastMCP 2.x and 3.x, the import fails with a message that names both versions."""
    (tmp_path / f"{package}.py").write_text("")
    info = tmp_path / f"{package}-{installed}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {installed}\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import amends.bindings.{package}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        f"ImportError: amends.bindings.{package} needs {package} {needed}; {installed} is "
        f"installed: pip install 'amends[{package}]'"
    )


@pytest.mark.parametrize("package", ["mcp", "fastmcp"])
def test_the_numbers_are_those_of_the_extras(package):
    """pyproject.toml and the check have the same bounds."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    low, high = re.fullmatch(rf"{package}>=(\d+\.\d+),<(\d+)", extras[package][0]).groups()
    module = "mcp/__init__" if package == "mcp" else "fastmcp"
    source = (ROOT / f"src/amends/bindings/{module}.py").read_text()
    assert f'require("{package}", at_least=({low.replace(".", ", ")}), below={high},' in source
