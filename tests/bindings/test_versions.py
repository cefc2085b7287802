"""Older and newer versions of Click and Typer, each in its own environment. Runs in `make soak`: it installs packages."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bindings.commands import APPS

SRC = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    made = {}

    def make(*packages):
        if packages not in made:
            place = tmp_path_factory.mktemp("venv")
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            command = [place / "bin" / "python", "-m", "pip", "install", "-q", "msgspec>=0.20", *packages]
            subprocess.run(command, check=True)
            made[packages] = place / "bin" / "python"
        return made[packages]

    return make


def run(python, framework, *arguments):
    done = subprocess.run(
        [python, APPS / f"{framework}_app.py", *arguments, "--output", "json"],
        capture_output=True,
        env={"PYTHONPATH": str(SRC), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.soak
@pytest.mark.parametrize(
    "packages",
    [
        ("click==8.0.4",),
        ("click==8.1.8",),
        ("click==8.2.1",),
        ("click==8.3.3",),
        ("click==8.4.2",),
        ("click==8.5.1",),
        ("typer==0.12.5", "click==8.1.8"),
        ("typer==0.20.1",),
        ("typer==0.25.1",),
        ("typer==0.26.0",),
        ("typer==0.27.3",),
        ("typer==0.28.0",),
        ("typer==0.29.0",),
    ],
    ids=" ".join,
)
def test_every_version_answers_the_same(environment, packages, tmp_path):
    """C1, C9: success, failure, several mistakes at once, an unknown command and retries are the same in all versions."""
    python = environment(*packages)
    framework = "typer" if packages[0].startswith("typer") else "click"
    code, envelope = run(python, framework, "show", "bob", "--count", "2")
    assert (code, envelope["data"]["count"]) == (0, 2)
    code, envelope = run(python, framework, "fail", "limited")
    assert (code, envelope["error"]["retry_after_ms"]) == (9, 7000)
    code, envelope = run(python, framework, "show", "bob", "--cuont", "3", "--color", "gren", "--count", "x")
    assert (code, envelope["error"]["phase"]) == (3, "validation")
    assert {part["field"] for part in envelope["error"]["errors"]} == {"--cuont", "--color", "--count"}
    code, envelope = run(python, framework, "shw")
    assert (code, envelope["error"]["fix_required"]) == (3, "Did you mean sample show?")
    code, envelope = run(python, framework, "flaky", str(tmp_path / "runs"), "1", "--retries", "2")
    assert (code, envelope["meta"]["attempt"]) == (0, 2)
    code, envelope = run(python, framework, "noise")
    assert (code, envelope["data"]) == (0, ["quiet"])
