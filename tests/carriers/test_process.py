"""Finished commands: the time-out, the envelope, the exit code, in that order, and who wins when they disagree."""

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
    """A finished command."""
    return {
        "exit": exit,
        "stdout": stdout if isinstance(stdout, str) else json.dumps(stdout),
        "stderr": "",
        **more,
    }


@pytest.mark.parametrize("exit", [9, 1, 0, None, -9, 127])
def test_the_envelope_speaks(exit):
    """C1, C12: decided from the envelope, whatever the number; the side that reports failure wins over exit 0."""
    reading = read(run(exit, ENVELOPE))
    assert (reading.failed, reading.fatal, reading.path, reading.error) == (True, True, "envelope", ERROR)
    assert (reading.fault.code, reading.fault.retry_after, reading.fault.attempt) == ("RATE_LIMITED", 5.0, 1)


@pytest.mark.parametrize(
    "stdout", [SUCCESS, "", "Done.", "[]", "null", {"users": []}, {"error": {"count": 3}}, {"error": "none"}]
)
def test_exit_0_without_a_reported_failure_is_success(stdout):
    """Design 8: exit 0 is never rerun, whatever it printed."""
    assert read(run(0, stdout)) == NOT_FAILED


def test_ok_true_without_a_number_is_success():
    """The one side that speaks says so."""
    assert read(run(None, SUCCESS)) == NOT_FAILED


@pytest.mark.parametrize(
    ("exit", "code"), [(9, "RATE_LIMITED"), (1, "INTERNAL_ERROR"), (7, "TIMEOUT"), (99, "INTERNAL_ERROR")]
)
def test_ok_true_with_a_failing_exit_is_a_failure(exit, code):
    """Design 8: the side that reports failure wins; the tool spoke the envelope, so its table is used."""
    reading = read(run(exit, SUCCESS))
    assert (reading.fault.code, reading.path, reading.error) == (code, "exit", None)
    assert reading.fault.details == {"exit": exit}


@pytest.mark.parametrize("error", [None, "boom", ["boom"], {}, {"message": "boom"}, 5])
def test_an_envelope_that_says_nothing_leaves_the_number(error):
    """A null error, a string, a list: exit 9 still says rate limited."""
    assert read(run(9, {"ok": False, "error": error})).fault.code == "RATE_LIMITED"
    nothing = read(run(0, {"ok": False, "error": error}))
    assert (nothing.failed, nothing.fault.recovery, nothing.path) == (True, Recovery.UNCERTAIN, "exit")


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 7, 8, 9, 12, 99, -9, None])
def test_a_number_alone_means_nothing_from_a_stranger(number):
    """Design 8: a table is used only for a tool that spoke the envelope or was named conformant."""
    reading = read(run(number, "Something went wrong"))
    assert (reading.fault.code, reading.fault.recovery) == ("INTERNAL_ERROR", Recovery.UNCERTAIN)
    assert (reading.path, reading.fault.executed) == ("exit", Executed.MAYBE)
    assert reading.fault.details == (None if number is None else {"exit": number})


@pytest.mark.parametrize("number", [126, 127])
def test_what_could_not_be_started_did_nothing(number):
    """M3."""
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
def test_an_unknown_profile_is_none(profile):
    """What a stranger's exit says stays unknown."""
    assert read(run(9, "", profile=profile)).fault.code == "INTERNAL_ERROR"


def test_seven_and_nine_mean_opposite_things():
    """Design 8: which is why a table is never guessed."""
    unknown = {"ok": False, "error": {"code": "ODD"}}
    assert read(run(9, unknown)).fault.recovery is Recovery.TRANSIENT
    assert read(run(9, unknown, profile="v2")).fault.recovery is Recovery.TERMINAL
    assert read(run(7, unknown)).fault.recovery is Recovery.TRANSIENT
    assert read(run(7, unknown, profile="v2")).fault.recovery is Recovery.TERMINAL


@pytest.mark.parametrize("stdout", ["", ENVELOPE, SUCCESS])
def test_a_time_out_comes_first(stdout):
    """M6: path timeout; it may have had its effect, and whatever it printed before is not its end."""
    reading = read(run(None, stdout, timed_out=True))
    assert (reading.path, reading.fault.code, reading.fault.executed) == (
        "timeout",
        "TIMEOUT",
        Executed.MAYBE,
    )
    assert reading.fault.recovery is Recovery.TRANSIENT


@pytest.mark.parametrize("flag", ["true", 1, None, False])
def test_timed_out_is_exactly_true(flag):
    """A flag of the wrong type is no time-out."""
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
def test_where_the_envelope_stands(stdout):
    """C1 says nothing else on stdout; what tools print before it does not hide it."""
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
def test_what_is_no_envelope(stdout):
    """Design 8: lists crash S2's sample runner; here they are just no envelope."""
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


def test_an_envelope_without_ok():
    """An author's slip: an error that is S2's by its members."""
    assert read(run(0, {"error": ERROR})).fault.code == "RATE_LIMITED"
    assert read(run(9, {"error": {"reason": "x"}})).path == "exit"
    assert read(run(0, {"error": {"reason": "x"}})) == NOT_FAILED


@pytest.mark.parametrize("exit", ["1", 1.5, True, [], None])
def test_an_exit_that_is_no_number(exit):
    """It did not end in 0, so it did not succeed."""
    assert read({"exit": exit, "stdout": ""}).path == "exit"


@pytest.mark.parametrize("value", [None, 5, [], "x"])
def test_what_is_no_process(value):
    """Nothing failed that can be seen."""
    assert read(value) == NOT_FAILED


@pytest.mark.parametrize("envelope", [ENVELOPE, {"error": ERROR}])
def test_an_envelope_alone(envelope):
    """Design 9: via cli takes a bare envelope."""
    reading = read_envelope(envelope)
    assert (reading.failed, reading.path, reading.error) == (True, "envelope", ERROR)
    assert reading.fault.code == "RATE_LIMITED"


@pytest.mark.parametrize(
    "envelope", [{"ok": False}, {"ok": False, "error": None}, {"ok": False, "error": "boom"}]
)
def test_an_envelope_that_failed_and_says_nothing(envelope):
    """M6: ok false is a failure, found or not."""
    assert read_envelope(envelope) == FAILED


@pytest.mark.parametrize(
    "envelope",
    [SUCCESS, {}, {"ok": "false", "error": ERROR}, {"ok": True, "error": ERROR}, [], None, {"error": "x"}],
)
def test_an_envelope_that_did_not_fail(envelope):
    """Only ok false, or an error without ok."""
    assert read_envelope(envelope) == NOT_FAILED
