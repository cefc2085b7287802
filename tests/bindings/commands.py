"""Running the sample applications as real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

from jsonschema import Draft202012Validator

from amends.schemas import schema

APPS = Path(__file__).parent / "apps"
FRAMEWORKS = ("click", "typer", "argparse", "guard")
ENV = {
    **{name: value for name, value in os.environ.items() if name not in {"AMENDS_OUTPUT", "FORCE_COLOR"}},
    "PYTHONPATH": os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")]),
}


def argv(framework, *words):
    return [sys.executable, str(APPS / f"{framework}_app.py"), *map(str, words)]


def sample(framework, *words, env=None, **options):
    """The finished process."""
    return subprocess.run(
        argv(framework, *words),
        capture_output=True,
        env={**ENV, **(env or {})},
        timeout=60,
        stdin=subprocess.DEVNULL,
        **options,
    )


def answer(framework, *words, **options):
    """The exit code and the envelope, which must be valid and all there is on stdout."""
    done = sample(framework, *words, "--output", "json", **options)
    envelope = json.loads(done.stdout)
    assert done.stdout.count(b"\n") == 1, done
    Draft202012Validator(schema("envelope")).validate(envelope)
    assert {"attempt", "max_attempts", "duration_ms", "trace_id"} <= set(envelope["meta"])
    assert envelope["ok"] is (done.returncode == 0)
    return done.returncode, envelope
