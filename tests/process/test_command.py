"""`amends run` as a program, with text and JSON output."""

import base64
import json
import os
import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator

from amends.schemas import schema
from tests.process.alive import all_gone, read_pids
from tests.terminal import at_a_terminal

AMENDS = [sys.executable, "-m", "amends", "run"]
LIMITED = '{"ok":false,"error":{"code":"RATE_LIMITED","message":"x","retryable":true,"retry_after_ms":10}}'


def amends_run(*arguments, **options):
    return subprocess.run([*AMENDS, *arguments], capture_output=True, timeout=60, **options)


def test_a_success_passes_through():
    """Text: stdout, stderr and the exit code are the command's own; binary output is unchanged."""
    done = amends_run("--", "sh", "-c", r"printf '\377\000out'; echo err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\xff\x00out", b"err\n")


def test_a_failure_keeps_its_exit_code():
    """C12: the exit code and the output of the last run, and one line about the decision."""
    done = amends_run("--", "sh", "-c", f"echo '{LIMITED}'; exit 9")
    assert (done.returncode, done.stdout.decode().strip()) == (9, LIMITED)
    assert done.stderr.count(b"next in") == 2
    assert b"the command failed (exit 9): RATE_LIMITED, 3 tries" in done.stderr
    assert amends_run("--", "sh", "-c", "kill -TERM $$").returncode == 143
    assert amends_run("--", "sh", "-c", "kill -36 $$").returncode == 164
    assert amends_run("--", "sh", "-c", f"echo '{LIMITED}'").returncode == 9
    assert amends_run("--timeout", "0.3", "--", "sleep", "9").returncode == 1
    assert (
        amends_run("--read-only", "--max-attempts", "1", "--timeout", "0.3", "--", "sleep", "9").returncode
        == 7
    )


def test_one_run_streams_and_is_terminated(tmp_path):
    """With --max-attempts 1 stdout passes through at once; SIGTERM terminates the command, too."""
    process = subprocess.Popen(
        [
            *AMENDS,
            "--max-attempts",
            "1",
            "--",
            "sh",
            "-c",
            f"echo $$ > {tmp_path}/up; echo first; exec sleep 60",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"first\n"
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert all_gone(read_pids(tmp_path / "up"))


def test_json_output():
    """C10: the envelope has both streams, every run and the decision; exit codes by the CLI agent spec's table."""
    done = amends_run("--output", "json", "--", "sh", "-c", f"echo '{LIMITED}'; exit 200")
    envelope = json.loads(done.stdout)
    Draft202012Validator(schema("envelope")).validate(envelope)
    assert (done.returncode, envelope["error"]["decision"]["reason"]) == (9, "attempts")
    assert (envelope["meta"]["attempt"], envelope["meta"]["max_attempts"]) == (3, 3)
    assert [one["exit"] for one in envelope["meta"]["runs"]] == [200, 200, 200]
    done = amends_run("--", "sh", "-c", r"printf '\377'", env={**os.environ, "AMENDS_OUTPUT": "json"})
    envelope = json.loads(done.stdout)
    Draft202012Validator(schema("envelope")).validate(envelope)
    assert base64.b64decode(envelope["data"]["stdout_base64"]) == b"\xff"


def test_input_reaches_every_run():
    """C12: stdin from a pipe is recorded and given to every run."""
    done = amends_run("--read-only", "--", "sh", "-c", "cat; exit 1", input=b"the same")
    assert (done.returncode, done.stdout) == (1, b"the same")
    assert b"the command failed (exit 1): INTERNAL_ERROR, 2 tries" in done.stderr
    line = " ".join(AMENDS)
    closed = subprocess.run(["sh", "-c", f"{line} -- cat <&-"], capture_output=True, timeout=60)
    assert (closed.returncode, closed.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "exit", "code"),
    [
        (["true"], 3, "USAGE_ERROR"),
        (["--"], 3, "USAGE_ERROR"),
        (["--max-attempts", "0", "--", "true"], 2, "VALIDATION_ERROR"),
        (["--timeout", "0", "--", "true"], 2, "VALIDATION_ERROR"),
        (["--max-wait", "-1", "--", "true"], 2, "VALIDATION_ERROR"),
        (["--", "no-such-command-at-all"], 4, "NOT_FOUND"),
    ],
)
def test_mistakes(arguments, exit, code):
    """C7: mistakes in the arguments are reported as envelopes."""
    done = amends_run(*arguments)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (exit, code)


def test_a_countdown_on_a_terminal():
    """A terminal shows a countdown while recovery waits, and clears it afterwards."""
    slow = LIMITED.replace("10}", "700}")
    command = [*AMENDS, "--max-attempts", "2", "--", "sh", "-c", f"echo '{slow}'; exit 9"]
    code, seen = at_a_terminal(command, stdout=subprocess.DEVNULL)
    assert code == 9
    assert seen.count("run 1 of 2: RATE_LIMITED, next in") >= 2
    assert "\r\x1b[2K" in seen


def test_nested_runs_share_their_tries(tmp_path):
    """Three layers of three runs each make three runs, not 27; what the command wrote passes through once."""
    count, innermost = (
        tmp_path / "count",
        ["sh", "-c", f"printf . >> {tmp_path}/count; echo '{LIMITED}'; exit 9"],
    )
    done = amends_run("--", *AMENDS, "--", *AMENDS, "--", *innermost)
    assert (done.returncode, done.stdout.decode().strip(), count.read_text()) == (9, LIMITED, "...")


def test_a_call_without_an_answer_below_is_one_document(tmp_path):
    """A tool that says that its effect is unknown: its envelope passes unchanged, and no other is written."""
    unknown = (
        '{"ok":false,"error":{"code":"EFFECT_UNKNOWN","message":"x","retryable":false,"executed":"maybe"}}'
    )
    done = amends_run("--", *AMENDS, "--", "sh", "-c", f"echo '{unknown}'; exit 1")
    assert (done.returncode, done.stdout.decode().strip()) == (1, unknown)
    written = json.loads(amends_run("--output", "json", "--", "sh", "-c", f"echo '{unknown}'; exit 1").stdout)
    assert (written["error"]["code"], written["error"]["executed"]) == ("EFFECT_UNKNOWN", "maybe")
