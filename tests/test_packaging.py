"""The contents of the package: types and data, no tests."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import amends

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "amends"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_types_are_shipped():
    """PEP 561: an empty py.typed in the top-level package."""
    assert (PACKAGE / "py.typed").read_bytes() == b""


def test_the_version_is_read_from_one_file():
    """pyproject reads the version from the package."""
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/amends/_version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", amends.__version__)


def test_the_core_needs_msgspec_alone():
    """Design 10: msgspec is the only dependency of the core."""
    assert [re.match(r"[a-z-]+", need).group() for need in PROJECT["project"]["dependencies"]] == ["msgspec"]


def test_the_extras_are_those_of_the_design():
    """Design 10: the extras of the design exist, and `all` contains each of them."""
    extras = PROJECT["project"]["optional-dependencies"]
    named = {"http", "server", "gateway", "mcp", "fastmcp", "a2a", "arcp", "nats", "otel", "limits", "rich"}
    assert set(extras) == named | {"all", "postgres", "try"}
    assert set(re.search(r"\[(.*)\]", extras["all"][0]).group(1).split(",")) == named


def test_what_only_this_repository_needs_is_no_extra():
    """The peers of the tests and measurements are dependency groups, which are not in the package's metadata."""
    assert set(PROJECT["dependency-groups"]) == {
        *("dev", "frameworks", "crewai", "sdks", "docs", "bench", "rehearsals")
    }


def test_the_package_contains_no_tests():
    """No module of the package is a test."""
    names = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    assert not [name for name in names if re.search(r"(^|/)(test_[^/]*|conftest|tests)(\.py|/)", name)]


def test_no_file_of_the_package_names_a_machine():
    """No file contains the home directory or the path of the source tree."""
    local_paths = (str(ROOT), str(Path.home()))
    for path in PACKAGE.rglob("*"):
        if path.suffix in {".py", ".json", ".toml", ".md"}:
            text = path.read_text("utf-8")
            assert not [local for local in local_paths if len(local) > 6 and local in text], path.name


def test_the_wheel(tmp_path):
    """The wheel contains all modules, data and py.typed, no tests or caches, and has the version in its name."""
    pytest.importorskip("hatchling", reason="the build backend is part of the dev group only")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    name = done.stdout.split()[-1]
    assert name == f"amends-{amends.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        files = set(wheel.namelist())
        metadata = wheel.read(f"amends-{amends.__version__}.dist-info/METADATA").decode()
    assert "amends/py.typed" in files
    assert f"Version: {amends.__version__}" in metadata
    inside = {file for file in files if file.startswith("amends/")}
    assert not [
        file for file in inside if "__pycache__" in file or re.search(r"(^|/)(test_|conftest|tests/)", file)
    ]
    assert files - inside == {file for file in files if ".dist-info/" in file}
    here = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*.py")}
    assert here <= inside
