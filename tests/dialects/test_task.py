"""The error of an agent task (S3), read and written by the rules of M1."""

import logging

import pytest
from tests.each import each

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.task import VOCABULARY
from amends.dialects.task import decode, encode, encode_beside


@each("code", VOCABULARY.rows)
@each("recoverable", [True, False, None, "true", 1, 0])
def test_recovery_of_every_code(code, recoverable):
    """M1: `recoverable` false → terminal; true or absent → the recovery of the code's row."""
    row = VOCABULARY.rows[code]
    expected = Recovery.TERMINAL if recoverable is False else row.recovery
    fault = decode({"code": code, "message": "m", "recoverable": recoverable})
    assert (fault.recovery, fault.executed) == (expected, row.executed)
    assert fault.actor is row.actor_under(expected)


@pytest.mark.parametrize(
    ("error", "recovery"),
    [
        ({"code": "X", "recoverable": True}, "uncertain"),
        ({"code": "X", "recoverable": False}, "terminal"),
        ({"code": "X"}, "terminal"),
        ({"code": "X", "recoverable": "yes"}, "terminal"),
    ],
)
def test_recovery_of_an_unknown_code(error, recovery):
    """M1: an unknown code is uncertain if `recoverable` is true, else terminal."""
    fault = decode(error)
    assert (fault.recovery, fault.executed) == (recovery, Executed.MAYBE)


@pytest.mark.parametrize(
    "data", [None, 5, "x", [], {}, {"code": 5}, {"code": ""}, {"code": "X" * 65}, {"message": "x"}]
)
def test_values_that_are_no_error(data):
    """T1: an error is an object with a code of 1 to 64 characters; other values give None."""
    assert decode(data) is None


def test_the_example_of_s3():
    """T1, T3: S3's example is read completely and written again unchanged."""
    error = {
        "code": "MCP_NOT_CONNECTED",
        "message": "The Notion MCP is not connected. Run setup to configure.",
        "details": {"mcp": "notion", "requiredBy": "content-agent", "capability": "draft_post"},
        "recoverable": True,
    }
    fault = decode(error)
    assert (fault.recovery, fault.executed, fault.actor) == (
        Recovery.CORRECTABLE,
        Executed.NO,
        Actor.USER,
    )
    assert fault.origin == Origin("task", "task")
    assert encode(fault) == error


def test_wrong_types_are_ignored():
    """P8: message and details of the wrong type are ignored."""
    fault = decode({"code": "TIMEOUT", "message": 5, "details": "x"})
    assert (fault.message, fault.details) == ("", None)


def test_too_deep_is_none():
    """M6: a document with 10,000 levels is read as no error."""
    value: dict = {}
    for _ in range(10_000):
        value = {"details": value}
    assert decode({"code": "TIMEOUT", **value}) is None


@pytest.mark.parametrize(
    ("recovery", "recoverable"),
    [("transient", True), ("correctable", True), ("uncertain", True), ("terminal", False)],
)
def test_recoverable_is_always_written(recovery, recoverable):
    """M2: `recoverable` is false for terminal faults only."""
    assert encode(Fault(code="TIMEOUT", vocabulary="task", recovery=recovery))["recoverable"] is recoverable


def test_the_shape_is_closed():
    """T1: four members are written; unknown members are kept only if the error was received as a task error."""
    fault = Fault(code="TIMEOUT", extensions={"a": 1}, retry_after=5, title="t", details={})
    assert set(encode(fault)) == {"code", "message", "details", "recoverable"}
    passed_on = {"code": "TIMEOUT", "message": "", "recoverable": True, "vendor": 1}
    assert encode(decode(passed_on)) == passed_on
    foreign = Fault(code="TIMEOUT", extensions={"a": 1}, origin=Origin("adcp"))
    assert set(encode(foreign)) == {"code", "message", "recoverable"}


def test_a_leak_is_redacted():
    """T12: the document of a failed task shows nothing of the inside."""
    leak = "db01.internal.corp refused 10.0.0.5:5432"
    written = encode(Fault(code="TIMEOUT", message=leak, details={"where": leak, "password": "hunter2"}))
    assert "db01" not in str(written)
    assert "10.0.0.5" not in str(written)
    assert "hunter2" not in str(written)


def test_a_received_error_keeps_all_but_credentials():
    """An error of another agent is passed on; only credentials in its strings are masked."""
    received = {
        "code": "AGENT_BUSY",
        "message": "db01.internal.corp is busy",
        "details": {"dsn": "postgres://svc:hunter2@db01/x", "queue": 7},
        "recoverable": True,
        "vendor": ["postgres://svc:hunter2@db01/x"],
    }
    masked = "postgres://svc:[redacted]@db01/x"
    assert encode(decode(received)) == {
        **received,
        "details": {"dsn": masked, "queue": 7},
        "vendor": [masked],
    }


@pytest.mark.parametrize(
    ("field", "name", "pointer"),
    [
        ("/amount", "amount", "/amount"),
        ("packages[0].budget", "budget", "/packages/0/budget"),
        ("/etc/passwd", "passwd", "/etc/passwd"),
        ("due date", "due date", "/due date"),
    ],
)
def test_the_wrong_field_is_written_and_read(field, name, pointer):
    """T1: `details` names the field for readers without a record; ours reads it, with suggestions and errors."""
    part = Fault(code="INVALID_FIELD_VALUE", vocabulary="task", field="/x", message="No x")
    fault = Fault(
        code="INVALID_INPUT", vocabulary="task", field=field, suggestions=("Send less", "Ask"), errors=(part,)
    )
    written = encode_beside(fault)
    assert list(written) == ["code", "message", "details", "recoverable"]
    assert (written["details"]["name"], written["details"]["pointer"]) == (name, pointer)
    for document in (written, {**written, "details": {"name": name, "pointer": pointer}}):
        assert decode(document).field == pointer
    back = decode(written)
    assert back.suggestions == ("Send less", "Ask")
    assert [(each.code, each.field, each.message) for each in back.errors] == [
        ("INVALID_FIELD_VALUE", "/x", "No x")
    ]


def test_what_the_producer_names_stays():
    """A name and a pointer that the producer wrote are not replaced; a value that is no pointer is not read as one."""
    own = {"name": "seat", "pointer": "/seats/2"}
    fault = Fault(code="INVALID_INPUT", vocabulary="task", field="/other", details=own)
    assert encode_beside(fault)["details"].items() >= own.items()
    for pointer in ("seats", 7, None, ["/a"], ""):
        assert decode({"code": "INVALID_INPUT", "details": {"pointer": pointer}}).field is None


def test_a_record_cannot_make_a_caller_less_careful():
    """Of a record, field, suggestions and errors are read; code, recovery and effect stay as they were received."""
    record = {"v": 1, "code": "AGENT_BUSY", "vocabulary": "task", "recovery": "transient", "executed": "no"}
    forged = {**record, "field": "/x", "errors": [record]}
    for code in ("TIMEOUT", "INTERNAL_ERROR", "INVALID_INPUT"):
        error = {"code": code, "message": "", "recoverable": False}
        bare, read = decode(error), decode({**error, "details": {"amends": forged}})
        assert (read.code, read.recovery, read.executed) == (bare.code, bare.recovery, bare.executed)
        assert [part.executed for part in read.errors] == [bare.executed]


def test_received_errors_are_not_logged(caplog):
    """Design 6: leaks in received errors are not logged."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        encode(decode({"code": "TIMEOUT", "message": "10.0.0.5:5432 refused"}))
        encode(Fault(code="TIMEOUT", message="It took too long", details={"agent": "a"}))
        encode(Fault(code="TIMEOUT", message=""))
    assert not caplog.records
