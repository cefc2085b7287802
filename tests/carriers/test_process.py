"""Finished commands: the time-out, the envelope, the exit code, in that order, and which one wins if they disagree."""

import json

import pytest

from amends.carriers.process import read, read_envelope
from amends.carriers.reading import FAILED, NOT_FAILED
from amends.core.enums import Executed, Recovery
from amends.core.exits import PROFILES
from amends.core.vocabularies.cli import VOCABULARY

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
def test_the_envelope_decides(exit):
    """C1, C12: whatever the exit code is; a reported failure wins over exit 0."""
    reading = read(run(exit, ENVELOPE))
    assert (reading.failed, reading.fatal, reading.path, reading.error) == (True, True, "envelope", ERROR)
    assert (reading.fault.code, reading.fault.retry_after, reading.fault.attempt) == ("RATE_LIMITED", 5.0, 1)


@pytest.mark.parametrize(
    "stdout", [SUCCESS, "", "Done.", "[]", "null", {"users": []}, {"error": {"count": 3}}, {"error": "none"}]
)
def test_exit_0_without_a_reported_failure_is_success(stdout):
    """Design 8: exit 0 is never repeated, whatever it printed."""
    assert read(run(0, stdout)) == NOT_FAILED


def test_ok_true_without_a_number_is_success():
    """The envelope is the only evidence."""
    assert read(run(None, SUCCESS)) == NOT_FAILED


@pytest.mark.parametrize(
    ("exit", "code"), [(9, "RATE_LIMITED"), (1, "INTERNAL_ERROR"), (7, "TIMEOUT"), (99, "INTERNAL_ERROR")]
)
def test_ok_true_with_a_failing_exit_is_a_failure(exit, code):
    """Design 8: the one that reports failure wins; the tool printed an envelope, so its exit table is used."""
    reading = read(run(exit, SUCCESS))
    assert (reading.fault.code, reading.path, reading.error) == (code, "exit", None)
    assert reading.fault.details == {"exit": exit}


@pytest.mark.parametrize("error", [None, "boom", ["boom"], {}, {"message": "boom"}, 5])
def test_an_envelope_without_an_error_leaves_the_exit_code(error):
    """If the error is null, a string or a list, exit 9 still means rate limited."""
    assert read(run(9, {"ok": False, "error": error})).fault.code == "RATE_LIMITED"
    nothing = read(run(0, {"ok": False, "error": error}))
    assert (nothing.failed, nothing.fault.recovery, nothing.path) == (True, Recovery.UNCERTAIN, "exit")


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 7, 8, 9, 12, 99, -9, None])
def test_an_exit_code_alone_has_no_meaning(number):
    """Design 8: a table is used only for a tool that printed an envelope or was declared conformant."""
    reading = read(run(number, "Something went wrong"))
    assert (reading.fault.code, reading.fault.recovery) == ("INTERNAL_ERROR", Recovery.UNCERTAIN)
    assert (reading.path, reading.fault.executed) == ("exit", Executed.MAYBE)
    assert reading.fault.details == (None if number is None else {"exit": number})


@pytest.mark.parametrize("number", [126, 127])
def test_a_command_that_could_not_be_started_had_no_effect(number):
    """M3: exit 126 and 127."""
    assert read(run(number)).fault.executed is Executed.NO


@pytest.mark.parametrize(
    ("profile", "number"), [(name, number) for name, table in PROFILES.items() for number in table]
)
def test_a_named_profile_reads_its_numbers(profile, number):
    """M4, C7: both tables."""
    fault = read(run(number, "", profile=profile)).fault
    said = PROFILES[profile][number]
    assert (fault.code, fault.executed, fault.recovery) == (
        said.code,
        said.executed,
        VOCABULARY.rows[said.code].recovery,
    )


@pytest.mark.parametrize("profile", ["v3", 5, None, ["v2"]])
def test_an_unknown_profile_is_ignored(profile):
    """The exit code then has no meaning."""
    assert read(run(9, "", profile=profile)).fault.code == "INTERNAL_ERROR"


def test_seven_and_nine_mean_opposite_things():
    """Design 8: so a table is never guessed."""
    unknown = {"ok": False, "error": {"code": "ODD"}}
    assert read(run(9, unknown)).fault.recovery is Recovery.TRANSIENT
    assert read(run(9, unknown, profile="v2")).fault.recovery is Recovery.TERMINAL
    assert read(run(7, unknown)).fault.recovery is Recovery.TRANSIENT
    assert read(run(7, unknown, profile="v2")).fault.recovery is Recovery.TERMINAL


@pytest.mark.parametrize("stdout", ["", ENVELOPE, SUCCESS])
def test_a_time_out_comes_first(stdout):
    """M6: path timeout; the command may have had its effect, whatever it printed."""
    reading = read(run(None, stdout, timed_out=True))
    assert (reading.path, reading.fault.code, reading.fault.executed) == (
        "timeout",
        "TIMEOUT",
        Executed.MAYBE,
    )
    assert reading.fault.recovery is Recovery.TRANSIENT


@pytest.mark.parametrize("flag", ["true", 1, None, False])
def test_timed_out_is_exactly_true(flag):
    """A flag of another type is ignored."""
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
def test_where_the_envelope_is(stdout):
    """C1 allows nothing else on stdout, but output before the envelope is skipped."""
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
def test_output_that_is_not_an_envelope(stdout):
    """Design 8: lists crash S2's sample runner; here they are ignored."""
    assert read({"exit": 1, "stdout": stdout}).path == "exit"


def test_an_envelope_without_ok():
    """An error object with the members of S2 is read."""
    assert read(run(0, {"error": ERROR})).fault.code == "RATE_LIMITED"
    assert read(run(9, {"error": {"reason": "x"}})).path == "exit"
    assert read(run(0, {"error": {"reason": "x"}})) == NOT_FAILED


@pytest.mark.parametrize("exit", ["1", 1.5, True, [], None])
def test_an_exit_code_that_is_not_a_number(exit):
    """It is not 0, so the command failed."""
    assert read({"exit": exit, "stdout": ""}).path == "exit"


@pytest.mark.parametrize("value", [None, 5, [], "x"])
def test_values_that_are_not_processes(value):
    """They report no failure."""
    assert read(value) == NOT_FAILED


@pytest.mark.parametrize("envelope", [ENVELOPE, {"error": ERROR}])
def test_an_envelope_alone(envelope):
    """Design 9: via cli accepts a bare envelope."""
    reading = read_envelope(envelope)
    assert (reading.failed, reading.path, reading.error) == (True, "envelope", ERROR)
    assert reading.fault.code == "RATE_LIMITED"


@pytest.mark.parametrize(
    "envelope", [{"ok": False}, {"ok": False, "error": None}, {"ok": False, "error": "boom"}]
)
def test_a_failed_envelope_without_an_error(envelope):
    """M6: `ok` false is a failure, with or without an error."""
    assert read_envelope(envelope) == FAILED


@pytest.mark.parametrize(
    "envelope",
    [SUCCESS, {}, {"ok": "false", "error": ERROR}, {"ok": True, "error": ERROR}, [], None, {"error": "x"}],
)
def test_an_envelope_that_did_not_fail(envelope):
    """A failure has `ok` false, or an error without `ok`."""
    assert read_envelope(envelope) == NOT_FAILED
