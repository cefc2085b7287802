"""AdCP errors in A2A tasks and stream events, versions 0.3 and 1.0."""

import pytest

from amends.carriers.a2a import FAILED_STATES, MIME_TYPE, read, task_in, write
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.reading import FAILED, NOT_FAILED

ERROR = {
    "code": "RATE_LIMITED",
    "message": "Request rate exceeded",
    "retry_after": 5,
    "recovery": "transient",
}
OTHER = {"code": "CONFLICT"}
TEXT = {"kind": "text", "text": "Rate limit exceeded."}


def data(content, old=True, **more):
    """Return a data part of version 0.3 (`old`) or 1.0."""
    return {"kind": "data", "data": content, **more} if old else {"data": content, **more}


def task(*artifacts, message=None, state="failed"):
    """Return a task with these parts in its artifacts and in its status message."""
    status = {"state": state}
    if message is not None:
        status["message"] = {"role": "agent", "parts": message}
    return {
        "id": "task_456",
        "status": status,
        "artifacts": [{"artifactId": "error-result", "parts": list(parts)} for parts in artifacts],
    }


def test_the_example_of_s4():
    """A4: the error is read from the data part of an artifact."""
    reading = read(task([TEXT, data({"adcp_error": ERROR})]))
    assert (reading.failed, reading.fatal, reading.path) == (True, True, "artifact")
    assert (reading.error, reading.fault.code, reading.fault.retry_after) == (ERROR, "RATE_LIMITED", 5)


def test_artifacts_before_the_status_message():
    """A6: artifacts (step 2) are read before the status message (step 3)."""
    both = task([data({"adcp_error": ERROR})], message=[data({"adcp_error": OTHER})])
    assert read(both).fault.code == "RATE_LIMITED"
    alone = task(message=[TEXT, data({"adcp_error": OTHER})])
    assert (read(alone).fault.code, read(alone).path) == ("CONFLICT", "status_message")


@pytest.mark.parametrize(
    "artifacts",
    [
        [[data({"products": []}), data({"adcp_error": ERROR})]],
        [[data({"adcp_error": None}), data({"adcp_error": ERROR}), data({"adcp_error": OTHER})]],
        [[TEXT], [data({"adcp_error": ERROR})], [data({"adcp_error": OTHER})]],
        [[{"kind": "file", "data": {"adcp_error": OTHER}}, data({"adcp_error": ERROR})]],
        [[None, "x", {"kind": "data"}, data([]), data({"adcp_error": ERROR})]],
    ],
)
def test_the_first_data_part_with_an_error(artifacts):
    """A6: the first data part with a truthy adcp_error counts, in any artifact; other parts are skipped."""
    assert read(task(*artifacts)).fault.code == "RATE_LIMITED"


@pytest.mark.parametrize("invalid", [{}, [], "x", 1, {"code": 5}, {"code": "X" * 65}])
def test_the_first_truthy_value_decides(invalid):
    """Design 4: if the first truthy adcp_error is invalid, later parts, message and payload are not read."""
    good = data({"adcp_error": ERROR, "errors": [ERROR]})
    assert read(task([data({"adcp_error": invalid}), good], message=[good])) == FAILED
    assert read(task([data({"errors": [ERROR]})], message=[data({"adcp_error": invalid}), good])) == FAILED


def test_the_mime_type_is_never_required():
    """A4: the error is read with any MIME type."""
    assert read(task([data({"adcp_error": ERROR}, metadata={"mimeType": MIME_TYPE})])).fault is not None
    assert read(task([data({"adcp_error": ERROR}, metadata={"mimeType": "text/plain"})])).fault is not None


@pytest.mark.parametrize(
    ("state", "failed"),
    [
        *((state, True) for state in sorted(FAILED_STATES)),
        *(
            (state, False)
            for state in ("completed", "working", "TASK_STATE_COMPLETED", "canceled", None, 5, ["failed"])
        ),
    ],
)
def test_which_states_report_a_failure(state, failed):
    """M6: the states failed and rejected of both versions report a failure."""
    assert read(task(state=state)) == (FAILED if failed else NOT_FAILED)


def test_the_payload_layer():
    """A5, A6 step 6, M3: an error only in the payload is fatal in a failed task (a gap), otherwise not."""
    fatal = read(task([data({"errors": [ERROR]})]))
    assert (fatal.path, fatal.fatal, bool(fatal.fault.origin.gap)) == ("payload", True, True)
    non_fatal = read(task([data({"payload": {"errors": [ERROR]}, "errors": [OTHER]})], state="completed"))
    assert (non_fatal.failed, non_fatal.fatal, non_fatal.fault.code) == (False, False, "RATE_LIMITED")
    assert (non_fatal.fault.executed, non_fatal.fault.origin.gap) == (Executed.YES, None)
    in_message = read(task(message=[data({"errors": [ERROR]})], state="input-required"))
    assert (in_message.path, in_message.fatal) == ("payload", False)
    assert read(task([data({"errors": [{}]})])) == FAILED
    second = read(task([data({"products": []}), data({"errors": [ERROR]})], state="completed"))
    assert (second.path, second.fault.code) == ("payload", "RATE_LIMITED")


ONE = {
    "id": "t",
    "status": {"state": "TASK_STATE_FAILED"},
    "artifacts": [
        {"parts": [{"text": "no"}, data({"adcp_error": {**ERROR, "retry_after": 5.0}}, old=False)]}
    ],
}


@pytest.mark.parametrize("wrapped", [ONE, {"task": ONE}])
def test_version_1_0(wrapped):
    """Design 8: version 1.0 has no `kind`, TASK_STATE_FAILED, floats for whole numbers, and `task` as a wrapper."""
    reading = read(wrapped)
    assert (reading.fault.code, reading.fault.retry_after, reading.path) == ("RATE_LIMITED", 5.0, "artifact")


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (
            {"kind": "status-update", "status": task(message=[data({"adcp_error": ERROR})])["status"]},
            "status_message",
        ),
        (
            {
                "statusUpdate": {
                    "status": {
                        "state": "TASK_STATE_FAILED",
                        "message": {"parts": [{"data": {"adcp_error": ERROR}}]},
                    }
                }
            },
            "status_message",
        ),
        (
            {
                "status_update": {
                    "status": {
                        "state": "TASK_STATE_FAILED",
                        "message": {"parts": [{"data": {"adcp_error": ERROR}}]},
                    }
                }
            },
            "status_message",
        ),
        ({"kind": "artifact-update", "artifact": {"parts": [data({"adcp_error": ERROR})]}}, "artifact"),
        ({"artifactUpdate": {"artifact": {"parts": [{"data": {"adcp_error": ERROR}}]}}}, "artifact"),
        ({"artifact_update": {"artifact": {"parts": [{"data": {"adcp_error": ERROR}}]}}}, "artifact"),
    ],
)
def test_events_of_a_stream(event, path):
    """A6: a stream event is read like a task."""
    reading = read(event)
    assert (reading.fault.code, reading.path) == ("RATE_LIMITED", path)


@pytest.mark.parametrize(
    "value",
    [
        None, 5, "x", [], {}, {"status": "failed"}, {"status": {"state": "working", "message": "x"}},
        {"artifacts": {}}, {"artifacts": [None, {"parts": {}}, {"parts": None}]}, {"task": "x"},
        {"status": {"message": {"parts": "x"}}},
    ],
)  # fmt: skip
def test_values_without_a_failure(value):
    """Values that are no task, or hold no parts, are not a failure."""
    assert read(value) == NOT_FAILED


def test_the_task_in_a_wrapper():
    """`task_in` returns the task inside a 1.0 wrapper, and any other value unchanged."""
    assert task_in({"task": ONE}) is ONE
    assert task_in(ONE) is ONE
    assert task_in([ONE]) == [ONE]


FAULT = Fault(code="RATE_LIMITED", vocabulary="adcp", message="Slow down", retry_after=5)


@pytest.mark.parametrize("version", ["0.3", "1.0"])
@pytest.mark.parametrize("mime_type", [True, False])
def test_a_written_task_is_read(version, mime_type):
    """A4: a written task has one artifact with a text part and a data part that has only adcp_error."""
    written = write(
        FAULT, id="t", context_id="c", version=version, mime_type=mime_type, sentence="Slow down, please."
    )
    assert (written["id"], written["contextId"]) == ("t", "c")
    (artifact,) = written["artifacts"]
    text, structured = artifact["parts"]
    assert text["text"] == "Slow down, please."
    assert set(structured["data"]) == {"adcp_error"}
    assert (MIME_TYPE in str(structured)) is mime_type
    assert ("kind" in written) is ("kind" in text) is ("kind" in structured) is (version == "0.3")
    assert written["status"]["state"] in FAILED_STATES
    assert read(written).fault.code == "RATE_LIMITED"


def test_the_text_part():
    """A4: the text part is the sentence, else the message, else the code."""
    assert write(FAULT, id="t")["artifacts"][0]["parts"][0]["text"] == "Slow down"
    bare = write(Fault(code="CONFLICT", vocabulary="adcp"), id="t")
    assert bare["artifacts"][0]["parts"][0]["text"] == "CONFLICT"
    assert "contextId" not in bare


@pytest.mark.parametrize("version", ["0.2", "1", "", None])
def test_other_versions_raise(version):
    """A version other than 0.3 and 1.0 raises ValueError."""
    with pytest.raises(ValueError):
        write(FAULT, id="t", version=version)


@pytest.mark.parametrize(
    ("state", "executed"),
    [
        ("completed", Executed.YES),
        ("TASK_STATE_COMPLETED", Executed.YES),
        ("input-required", Executed.MAYBE),
        ("TASK_STATE_WORKING", Executed.MAYBE),
    ],
)
def test_only_a_completed_task_had_its_effect(state, executed):
    """M3: the effect of a non-fatal error is yes for a completed task, and maybe for a running one."""
    reading = read(task([data({"errors": [{"code": "STALE_RESPONSE"}]})], state=state))
    assert (reading.fatal, reading.fault.executed) == (False, executed)
