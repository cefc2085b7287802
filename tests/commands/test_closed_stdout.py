"""A closed stdout is exit 141 in every subcommand, for results and for failures, and prints no traceback."""

import os
import subprocess
import sys

import pytest

AMENDS = [sys.executable, "-m", "amends"]
RESULTS = [
    ["--help"],
    ["--version"],
    ["decode"],
    ["decode", "--jsonl"],
    ["explain", "RATE_LIMITED"],
    ["translate", "--from", "problem", "--to", "adcp"],
    ["schema", "fault"],
    ["store", "info", "STORE"],
    ["run", "--", "echo", "hi"],
    ["audit", "cli", "--keep-network", "--", "true"],
    ["tasks", "list", "--store", "STORE"],
    ["completion", "bash"],
    ["try", "--samples"],
]
FAILURES = [
    ["nothing"],
    ["explain", "NO_SUCH_CODE"],
    ["schema", "nothing"],
    ["store", "info", "sqlite:///nowhere/at/all.db"],
    ["run", "--", "no-such-command-at-all"],
    ["audit", "cli", "--", "no-such-command-at-all"],
]
PROBLEM = b'{"status": 429, "title": "Slow", "is_retriable": true, "retry_after_ms": 10}\n'


def closed(arguments, folder):
    """Run `amends` with a stdout whose reader has gone."""
    (folder / "store.db").touch()
    arguments = [each.replace("STORE", f"sqlite:///{folder}/store.db") for each in arguments]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        return subprocess.run(
            [*AMENDS, *arguments], stdout=pipe, stderr=subprocess.PIPE, input=PROBLEM, timeout=60
        )


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("arguments", RESULTS, ids=" ".join)
def test_results(arguments, output, tmp_path):
    """A result that has no reader."""
    done = closed(["--output", output, *arguments], tmp_path)
    assert (done.returncode, done.stderr) == (141, b""), done.stderr.decode()


@pytest.mark.parametrize("output", ["json", "problem"])
@pytest.mark.parametrize("arguments", FAILURES, ids=" ".join)
def test_failures(arguments, output, tmp_path):
    """A failure document that has no reader: the caller cannot know more than that it was not read."""
    done = closed(["--output", output, *arguments], tmp_path)
    assert (done.returncode, done.stderr) == (141, b"")
