"""Finished commands: time-out, envelope and exit code, and which is used if they disagree."""

import json
import subprocess

import pytest

from amends import extract
from amends.carriers.process import read, read_envelope
from amends.core.enums import Executed, Recovery
from amends.core.exits import PROFILES
from amends.core.reading import FAILED, NOT_FAILED
from amends.core.vocabularies.cli import VOCABULARY
from amends.core.wire import read as read_json

ERROR = {"code": "RATE_LIMITED", "message": "Too many requests", "retryable": True, "retry_after_ms": 5000}
ENVELOPE = {"ok": False, "error": ERROR, "meta": {"attempt": 1}}
SUCCESS = {"ok": True, "data": []}


def run(exit, stdout="", **more):
    """Return a finished command."""
    return {
        "exit": exit,
        "stdout": stdout if isinstance(stdout, str) else json.dumps(stdout),
        "stderr": "",
        **more,
    }


@pytest.mark.parametrize("exit", [9, 1, 0, None, -9, 127])
def test_the_envelope_takes_precedence(exit):
    """C1, C12: an error envelope is used with any exit code, even 0."""
    reading = read(run(exit, ENVELOPE))
    assert (reading.failed, reading.fatal, reading.path, reading.error) == (True, True, "envelope", ERROR)
    assert (reading.fault.code, reading.fault.retry_after, reading.fault.attempt) == ("RATE_LIMITED", 5.0, 1)


@pytest.mark.parametrize(
    "stdout", [SUCCESS, "", "Done.", "[]", "null", {"users": []}, {"error": {"count": 3}}, {"error": "none"}]
)
def test_exit_0_without_a_reported_failure_is_success(stdout):
    """Design 8: exit 0 without an error envelope is a success, whatever the command printed."""
    assert read(run(0, stdout)) == NOT_FAILED


def test_ok_true_without_an_exit_is_success():
    """Without an exit code, an envelope with `ok` true is a success."""
    assert read(run(None, SUCCESS)) == NOT_FAILED


@pytest.mark.parametrize(
    ("exit", "code"), [(9, "RATE_LIMITED"), (1, "INTERNAL_ERROR"), (7, "TIMEOUT"), (99, "INTERNAL_ERROR")]
)
def test_ok_true_with_a_failing_exit_is_a_failure(exit, code):
    """Design 8: a failing exit is used before `ok` true; the tool writes envelopes, so the exit table applies."""
    reading = read(run(exit, SUCCESS))
    assert (reading.fault.code, reading.path, reading.error) == (code, "exit", None)
    assert reading.fault.details == {"exit": exit}


@pytest.mark.parametrize("error", [None, "boom", ["boom"], {}, {"message": "boom"}, 5])
def test_an_envelope_without_a_valid_error(error):
    """If the error is null, a string or a list, the exit code decides: 9 is RATE_LIMITED."""
    assert read(run(9, {"ok": False, "error": error})).fault.code == "RATE_LIMITED"
    nothing = read(run(0, {"ok": False, "error": error}))
    assert (nothing.failed, nothing.fault.recovery, nothing.path) == (True, Recovery.UNCERTAIN, "exit")


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 7, 8, 9, 12, 99, -9, None])
def test_an_exit_of_an_unknown_tool_is_uncertain(number):
    """Design 8: the exit table applies only to a tool that wrote an envelope or has a profile."""
    reading = read(run(number, "Something went wrong"))
    assert (reading.fault.code, reading.fault.recovery) == ("INTERNAL_ERROR", Recovery.UNCERTAIN)
    assert (reading.path, reading.fault.executed) == ("exit", Executed.MAYBE)
    assert reading.fault.details == (None if number is None else {"exit": number})


@pytest.mark.parametrize("number", [126, 127])
def test_a_command_that_could_not_be_started_had_no_effect(number):
    """M3: exits 126 and 127 mean that the command did not run."""
    assert read(run(number)).fault.executed is Executed.NO


@pytest.mark.parametrize(
    ("profile", "number"), [(name, number) for name, table in PROFILES.items() for number in table]
)
def test_a_named_profile_reads_its_numbers(profile, number):
    """M4, C7: with a profile, the exit code gives the code, effect and recovery of its table."""
    fault = read(run(number, "", profile=profile)).fault
    row = PROFILES[profile][number]
    assert (fault.code, fault.executed, fault.recovery) == (
        row.code,
        row.executed,
        VOCABULARY.rows[row.code].recovery,
    )


@pytest.mark.parametrize("profile", ["v3", 5, None, ["v2"]])
def test_an_unknown_profile_is_ignored(profile):
    """With an unknown profile the exit code has no meaning."""
    assert read(run(9, "", profile=profile)).fault.code == "INTERNAL_ERROR"


def test_exits_7_and_9_depend_on_the_profile():
    """Design 8: 7 and 9 are transient in v1 and terminal in v2, so the table is never guessed."""
    unknown = {"ok": False, "error": {"code": "ODD"}}
    assert read(run(9, unknown)).fault.recovery is Recovery.TRANSIENT
    assert read(run(9, unknown, profile="v2")).fault.recovery is Recovery.TERMINAL
    assert read(run(7, unknown)).fault.recovery is Recovery.TRANSIENT
    assert read(run(7, unknown, profile="v2")).fault.recovery is Recovery.TERMINAL


@pytest.mark.parametrize("stdout", ["", ENVELOPE, SUCCESS])
def test_a_time_out_comes_first(stdout):
    """M6: a time-out is used before anything the command printed, and its effect is unknown."""
    reading = read(run(None, stdout, timed_out=True))
    assert (reading.path, reading.fault.code, reading.fault.executed) == (
        "timeout",
        "TIMEOUT",
        Executed.MAYBE,
    )
    assert reading.fault.recovery is Recovery.TRANSIENT


@pytest.mark.parametrize("flag", ["true", 1, None, False])
def test_timed_out_is_exactly_true(flag):
    """A `timed_out` that is not exactly true is ignored."""
    assert read(run(0, "", timed_out=flag)) == NOT_FAILED


@pytest.mark.parametrize(
    "stdout",
    [
        "Connecting…\nwarning: old version\n" + json.dumps(ENVELOPE),
        json.dumps({"ok": True}) + "\n" + json.dumps(ENVELOPE),
        "log\n" + json.dumps(ENVELOPE, indent=2) + "\n\n",
        "\ufeff  " + json.dumps(ENVELOPE) + "  ",
        "{not json\n" + json.dumps(ENVELOPE),
        json.dumps(ENVELOPE).encode(),
        ENVELOPE,
    ],
)
def test_output_before_the_envelope(stdout):
    """C1 allows only the envelope on stdout, but other output before it is skipped."""
    assert read({"exit": 1, "stdout": stdout}).fault.code == "RATE_LIMITED"


@pytest.mark.parametrize(
    "stdout",
    [
        "[" + json.dumps(ENVELOPE) + "]",
        "[\n" + json.dumps(ENVELOPE) + "\n]",
        "{" * 10_000,
        None,
        5,
        ["x"],
        {"a": 1},
        '{"ok": "no"}',
        "{}",
    ],
)
def test_output_that_is_no_envelope(stdout):
    """Design 8: lists, which crash S2's sample runner, and other values are not envelopes."""
    assert read({"exit": 1, "stdout": stdout}).path == "exit"


@pytest.mark.parametrize(
    "stdout",
    [
        json.dumps(ENVELOPE) + "\nclosing the connection",
        "begun\n" + json.dumps(ENVELOPE, indent=2) + "\nlast line\n",
        json.dumps(ENVELOPE) + '\n{"level": "info", "message": "}{"}\n{"level": "debug"',
        json.dumps({**ENVELOPE, "note": 'a "quoted" brace }'}) + "\n" + "{log\n" * 40,
    ],
)
def test_lines_after_the_envelope(stdout):
    """An envelope that log lines follow is read on both streams, unless the command exited with 0."""
    assert read({"exit": 1, "stdout": stdout}).fault.code == "RATE_LIMITED"
    assert read({"exit": 1, "stdout": "text", "stderr": stdout}).fault.code == "RATE_LIMITED"
    assert read({"exit": 0, "stdout": stdout}) == NOT_FAILED
    assert read({"exit": 0, "stdout": "", "stderr": stdout}) == NOT_FAILED
    assert read({"exit": 1, "stdout": json.dumps(SUCCESS), "stderr": stdout}).path == "exit", (
        "stdout comes first"
    )


@pytest.mark.parametrize("line", ['{"', "{\n", '{"a": "', '\\"{', '{"ok": false'])
def test_hostile_output_is_searched_within_a_bound(line):
    """The search is bounded, however many lines look like the beginning of an object."""
    assert read({"exit": 1, "stdout": f"x\n{line}\n" * 200_000, "stderr": line * 200_000}).path == "exit"


CODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")
COLOURED = (
    "\x1b[31m{}\x1b[0m",
    "\x1b[2K\x1b[1GDone \x1b[32m3\x1b[0m\n\x1b[0;31m{}\x1b[0m\n",
    "\x1b]0;title\x07\x1b[?25l{}\x1b[?25h",
    "\x1b]8;;https://x\x1b\\log\x1b]8;;\x1b\\\n{}",
)


@pytest.mark.parametrize("exit", [9, 0])
@pytest.mark.parametrize("coding", CODINGS)
def test_output_in_utf_16(coding, exit):
    """C1: the envelope is found in the encodings of Windows, as bytes, as text with zeros, and as a document for `decode`."""
    for text in (json.dumps(ENVELOPE), f"Töne: 3\n{json.dumps(ENVELOPE, ensure_ascii=False)}\n"):
        output = text.encode(coding)
        assert read(run(exit) | {"stdout": output}).error == ERROR
        if coding.startswith("utf-16"):
            assert read(run(exit, output.decode("latin-1"))).error == ERROR
    done = subprocess.CompletedProcess(["x"], exit, stdout=output, stderr=b"")
    assert extract(done).code == "RATE_LIMITED"
    assert read_json(json.dumps(ENVELOPE).encode(coding)) == ENVELOPE


@pytest.mark.parametrize("exit", [9, 0])
@pytest.mark.parametrize("form", COLOURED)
def test_output_with_colours(form, exit):
    """C1: the escape sequences of a terminal around and inside the envelope are no part of it."""
    inside = json.dumps(ENVELOPE).replace('"code"', '\x1b[34m"code"\x1b[0m')
    for text in (json.dumps(ENVELOPE), json.dumps(ENVELOPE, indent=2), inside):
        assert read(run(exit, form.replace("{}", text))).error == ERROR
    assert read(run(1) | {"stdout": "", "stderr": form.replace("{}", inside)}).error == ERROR


def test_an_envelope_without_ok():
    """An object without `ok` is an envelope if its error has S2's members."""
    assert read(run(0, {"error": ERROR})).fault.code == "RATE_LIMITED"
    assert read(run(9, {"error": {"reason": "x"}})).path == "exit"
    assert read(run(0, {"error": {"reason": "x"}})) == NOT_FAILED


@pytest.mark.parametrize("exit", ["1", 1.5, True, [], None])
def test_an_exit_that_is_not_a_number(exit):
    """An exit that is not an integer is a failure."""
    assert read({"exit": exit, "stdout": ""}).path == "exit"


@pytest.mark.parametrize("value", [None, 5, [], "x"])
def test_values_that_are_no_process(value):
    """A value that is not an object is not a failure."""
    assert read(value) == NOT_FAILED


@pytest.mark.parametrize("envelope", [ENVELOPE, {"error": ERROR}])
def test_an_envelope_alone(envelope):
    """Design 9: a bare envelope is read."""
    reading = read_envelope(envelope)
    assert (reading.failed, reading.path, reading.error) == (True, "envelope", ERROR)
    assert reading.fault.code == "RATE_LIMITED"


@pytest.mark.parametrize(
    "envelope", [{"ok": False}, {"ok": False, "error": None}, {"ok": False, "error": "boom"}]
)
def test_a_failed_envelope_without_an_error(envelope):
    """M6: `ok` false without a valid error is a failure without a fault."""
    assert read_envelope(envelope) == FAILED


@pytest.mark.parametrize(
    "envelope",
    [SUCCESS, {}, {"ok": "false", "error": ERROR}, {"ok": True, "error": ERROR}, [], None, {"error": "x"}],
)
def test_an_envelope_that_did_not_fail(envelope):
    """An envelope is a failure only if `ok` is false, or if it has an error and no `ok`."""
    assert read_envelope(envelope) == NOT_FAILED
