"""Runs the sample applications as real processes."""

import json
import os
import sys
from pathlib import Path

from jsonschema import Draft202012Validator

from amends.schemas import schema
from tests.fork_server import Forks

APPS = Path(__file__).parent / "apps"
FRAMEWORKS = ("click", "typer", "argparse", "guard")
ENV = {
    **{name: value for name, value in os.environ.items() if name not in {"AMENDS_OUTPUT", "FORCE_COLOR"}},
    "PYTHONPATH": os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")]),
}


def argv(framework, *arguments):
    return [sys.executable, str(APPS / f"{framework}_app.py"), *map(str, arguments)]


FORKS = {framework: Forks(env=ENV) for framework in FRAMEWORKS}


def run_sample(framework, *arguments, env=None):
    """Run a sample application and return the finished process."""
    return FORKS[framework].run(APPS / f"{framework}_app.py", arguments, env={**ENV, **(env or {})})


def run_json(framework, *arguments, **options):
    """Run a sample application with --output json; check that stdout is one valid envelope; return exit code and envelope."""
    done = run_sample(framework, *arguments, "--output", "json", **options)
    envelope = json.loads(done.stdout)
    assert done.stdout.count(b"\n") == 1, done
    Draft202012Validator(schema("envelope")).validate(envelope)
    assert {"attempt", "max_attempts", "duration_ms", "trace_id"} <= set(envelope["meta"])
    assert envelope["ok"] is (done.returncode == 0)
    return done.returncode, envelope
