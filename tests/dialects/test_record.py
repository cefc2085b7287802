"""Tests of the record: what it holds, its bounds, and that a forged one makes no decision less careful."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import faults

from amends import Fault, FaultError, decode, encode
from amends.core.crosswalk import transfer
from amends.core.decision import decide
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Origin
from amends.core.operation import Operation
from amends.core.travel import count
from amends.core.wire import compact
from amends.dialects import arcp, envelope, problem, task
from amends.dialects.record import BYTES, KEY, MEMBER, attach, beside, read_beside, record_of, restored

ANY_FAULT = st.sampled_from(["problem", "adcp", "task"]).flatmap(faults)
RAISED = Fault(
    code="NOT_FOUND",
    message="There is no order 7",
    field="order.id",
    suggestions=("List the orders", "Use another"),
    retry_after=2.5,
    attempt=3,
    trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
    details={"secret": "hunter2"},
    errors=(Fault(code="CONFLICT", message="It changed"),),
)


def test_what_it_holds():
    """The fault as it was raised, without details, whatever code the format has for it."""
    record = record_of(transfer(RAISED, "adcp"), "adcp")
    assert record == {
        "v": 1,
        "code": "NOT_FOUND",
        "vocabulary": "everyday",
        "recovery": "correctable",
        "message": "There is no order 7",
        "field": "order.id",
        "suggestions": ["List the orders", "Use another"],
        "retry_after_ms": 2500,
        "errors": [
            {"code": "CONFLICT", "vocabulary": "everyday", "recovery": "correctable", "message": "It changed"}
        ],
        "executed": "no",
        "tries": 3,
        "trace_id": RAISED.trace_id,
    }
    assert record_of(RAISED, "adcp", brief=True) == {
        "v": 1,
        "executed": "no",
        "tries": 3,
        "trace_id": RAISED.trace_id,
    }


def test_it_is_redacted_as_its_format():
    """Addresses do not leave to strangers."""
    fault = Fault(code="TIMEOUT", message="no answer from 10.0.0.5", suggestions=("ask 10.0.0.6",))
    assert "10.0.0" not in str(record_of(fault, "adcp"))
    assert "10.0.0" not in str(record_of(transfer(fault, "adcp"), "adcp"))


@pytest.mark.parametrize("name", ["problem", "envelope", "task", "arcp"])
def test_it_comes_back_in_every_format(name):
    """Read and restored, the fault is the one that was raised; the reader removes the record."""
    vocabulary = {"problem": "http", "envelope": "cli"}.get(name, name)
    sent = transfer(Fault(code="PERMISSION_DENIED", message="Only the owner", executed="maybe"), vocabulary)
    if name == "problem":
        sent = msgspec.structs.replace(sent, raised=RAISED)
        document = problem.document(sent)
        assert document[MEMBER]["code"] == "NOT_FOUND"
    elif name == "envelope":
        document = envelope.document(msgspec.structs.replace(sent, raised=RAISED))
        assert document["error"][MEMBER]["code"] == "NOT_FOUND"
    else:
        module = task if name == "task" else arcp
        from amends.arcp.runtime.jobs.outcome import encode_error

        document = task.encode_beside(sent) if module is task else encode_error(sent)
        assert MEMBER in document["details"]
    found = decode(document, name)
    assert MEMBER not in (found.extensions or {})
    assert MEMBER not in (found.details or {})
    back = restored(found)
    assert back.code == ("NOT_FOUND" if name in {"problem", "envelope"} else "PERMISSION_DENIED")
    assert back.executed is sent.executed


def test_an_own_member_of_a_producer_is_left_alone():
    """Only an object with the version is a record."""
    for value in (7, "x", {"tries": 3}, {"v": "1"}, {"v": 2, "executed": "no"}):
        found = decode({"code": "TIMEOUT", "message": "", "details": {MEMBER: value}}, "task")
        assert found.details == {MEMBER: value}
        found = decode({"title": "x", "status": 500, MEMBER: value}, "problem")
        assert found.extensions[MEMBER] == value


@given(ANY_FAULT)
def test_it_is_small_and_json(fault):
    """At most 4096 bytes of JSON, and what decides always stays."""
    for brief in (False, True):
        record = record_of(fault, "adcp", brief=brief)
        assert len(compact(record)) <= BYTES
        assert record["executed"] == fault.executed.value
        if not brief:
            assert {"code", "recovery"} <= set(record)


def test_what_is_dropped_first():
    """Parts beyond 16, suggestions beyond 3, the message beyond 256 bytes; then all of them."""
    parts = tuple(Fault(code="CONFLICT", message="m" * 60) for _ in range(40))
    record = record_of(Fault(code="CONFLICT", suggestions=("s",) * 5, errors=parts), "adcp")
    assert (len(record["errors"]), len(record["suggestions"])) == (16, 5)
    huge = Fault(code="CONFLICT", message="m" * 9000, suggestions=("s" * 500,) * 9, attempt=4)
    record = record_of(huge, "adcp")
    assert (len(record["message"]), len(record["suggestions"]), record["tries"]) == (256, 3, 4)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
EXECUTED = st.sampled_from(["no", "maybe", "yes"])
FORGED = st.fixed_dictionaries(
    {"v": st.sampled_from([1, 1.0, 2, "1", None])},
    optional={
        "code": st.sampled_from(["RATE_LIMITED", "TIMEOUT", "SERVICE_UNAVAILABLE", "NOT_FOUND", "X"]) | ANY,
        "vocabulary": st.sampled_from(["everyday", "http", "adcp", "app", "none"]) | ANY,
        "recovery": st.sampled_from(["transient", "correctable", "terminal", "uncertain"]) | ANY,
        "executed": EXECUTED | ANY,
        "message": ANY,
        "field": ANY,
        "suggestions": ANY,
        "errors": ANY,
        "retry_after_ms": st.integers(-5, 10**12) | ANY,
        "tries": st.integers(-5, 10**9) | ANY,
        "trace_id": ANY,
        "in_doubt": st.booleans() | ANY,
        "sig": st.text("0123456789abcdef", min_size=32, max_size=32) | ANY,
    },
)
RANK = {Executed.NO: 0, Executed.MAYBE: 1, Executed.YES: 2}


@given(ANY_FAULT, FORGED | ANY)
def test_a_forged_record_only_makes_the_caller_more_careful(fault, forged):
    """Code, class and text are those of the standard members; the effect, tries and wait are only raised, within bounds."""
    read = msgspec.structs.replace(fault, origin=Origin("adcp", "structuredContent"))
    found = attach(read, forged)
    for name in ("code", "vocabulary", "recovery", "message", "field", "suggestions", "errors", "details"):
        assert getattr(found, name) == getattr(read, name)
    assert RANK[found.executed] >= RANK[read.executed]
    assert (found.attempt or 0) >= (read.attempt or 0)
    before = read.retry_after or 0
    if found.retry_after != read.retry_after and not math.isnan(before):
        assert before < found.retry_after <= 3600
    for operation in (Operation(), Operation(read_only=True), Operation(key="k")):
        careful, bare = decide(found, operation=operation), decide(read, operation=operation)
        if careful.action is Action.RETRY:
            assert bare.action is Action.RETRY
            assert careful.delay >= bare.delay


@given(FORGED | ANY)
def test_a_record_may_hold_anything(forged):
    """Reading and restoring are total."""
    for read in (
        read_beside(Fault(code="TIMEOUT", origin=Origin("adcp")), {KEY: forged}),
        decode({"title": "x", "status": 503, MEMBER: forged}, "problem"),
        decode({"ok": False, "error": {"code": "TIMEOUT", MEMBER: forged}}, "envelope"),
        decode({"code": "TIMEOUT", "details": {MEMBER: forged}}, "task"),
        decode({"code": "TIMEOUT", "details": {MEMBER: forged}}, "arcp"),
    ):
        found = restored(read)
        assert isinstance(found.recovery, Recovery)
        assert isinstance(found.executed, Executed)
        FaultError.from_fault(found)
        assert encode(found, "problem")["status"] >= 100


def test_an_oversized_or_a_nested_record_is_ignored():
    """A record within a record, one of more than 4096 bytes, and one that is nested too deep."""
    fault = Fault(code="TIMEOUT", origin=Origin("adcp"))
    deep = {}
    for _ in range(1000):
        deep = {"errors": [deep]}
    for forged in (
        {"v": 1, "executed": "yes", "message": "m" * 5000},
        {"v": 1, "executed": "yes", "errors": [deep]},
        {KEY: {"v": 1, "executed": "yes"}},
    ):
        assert attach(fault, forged) is fault
    inner = attach(fault, {"v": 1, "errors": [{"v": 1, "executed": "yes", "code": "X"}]})
    assert inner.executed is Executed.MAYBE


def test_counts():
    """Tries of a wrong type are none; a million is the most, of a stranger a hundred."""
    assert [count(value) for value in (0, 0.0, 1, 10**9, 1.5, -0.0, True, "1")] == [
        0,
        0,
        1,
        10**6,
        0,
        0,
        0,
        0,
    ]
    assert attach(Fault(code="TIMEOUT"), {"v": 1, "tries": 10**9}).attempt == 100
    assert attach(Fault(code="TIMEOUT", attempt=7), {"v": 1, "tries": 2}).attempt == 7


def test_beside():
    """The member of MCP, A2A and JSON-RPC."""
    assert beside(Fault(code="TIMEOUT"))[KEY]["executed"] == "maybe"
    assert read_beside(Fault(code="TIMEOUT"), 7) == Fault(code="TIMEOUT")
