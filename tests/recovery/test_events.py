"""Tests of the events of recovery: they contain names and numbers, never values."""

import logging
from contextlib import contextmanager

import msgspec
import pytest

from amends import Fault, FaultError, Operation, Upstream, recover
from amends.core import recording
from amends.core.decision import REASONS
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import Event, add_hook, events, remove_hook, set_hooks
from amends.recovery.events import log_late_call, log_level, only_hooks, plain_url, request_facts
from amends.testing import FakeClock, Script

READ = Operation(name="read", read_only=True)


def test_every_step_sends_an_event(clock, seen):
    """An event has operation, code, recovery, attempt, delay, reason and elapsed time."""
    recover(Script(RateLimitedError("secret", retry_after=1.5), "x"), "argument", operation=READ)
    assert [event.kind for event in seen] == ["retry", "recovered"]
    assert seen[0] == Event(
        kind="retry",
        operation="read",
        code="RATE_LIMITED",
        vocabulary="everyday",
        recovery="transient",
        attempt=1,
        delay=1.5,
        reason="hint",
        elapsed=0.0,
    )
    assert seen[1].elapsed == 1.5
    with pytest.raises(FaultError):
        recover(Script(ServiceUnavailableError()))
    assert (seen[-1].kind, seen[-1].reason) == ("gave-up", "effect-unknown")
    assert all(event.reason in REASONS for event in seen)


def test_no_values_in_events(clock, seen):
    """Events contain no arguments, messages, results or details."""
    fault = Fault(code="RATE_LIMITED", message="s3cret", details={"s3cret": 1}, suggestions=("s3cret",))
    recover(Script(fault, "s3cret"), "s3cret", token="s3cret")
    assert b"s3cret" not in msgspec.json.encode(seen)


def test_the_default_hook_logs(clock, caplog):
    """Events are logged at INFO to amends.recovery, with their fields on the record."""
    caplog.set_level(logging.INFO, "amends.recovery")
    recover(Script(RateLimitedError(retry_after=1.5), "x"), operation=READ)
    record = caplog.records[0]
    assert record.getMessage() == "retry read: RATE_LIMITED after attempt 1 (hint, 1.5 s)"
    assert record.amends["reason"] == "hint"
    with pytest.raises(FaultError):
        recover(Script(Fault(code="NOT_FOUND")))
    assert caplog.records[-1].getMessage() == "gave-up operation: NOT_FOUND after attempt 1 (correctable)"


def test_nothing_is_formatted_below_info(clock, caplog):
    """If INFO is disabled, no log message is formatted."""
    caplog.set_level(logging.WARNING, "amends.recovery")
    recover(Script(RateLimitedError(retry_after=1.5), "x"))
    assert caplog.records == []


def test_hooks_can_be_set_added_and_removed(clock):
    """`set_hooks` replaces all hooks; without arguments no event is sent."""
    one, two = [], []
    set_hooks(one.append)
    add_hook(two.append)
    add_hook(two.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert len(one) == len(two) == 2
    remove_hook(two.append)
    remove_hook(two.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert (len(one), len(two)) == (4, 2)
    set_hooks()
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert len(one) == 4


def test_a_hook_may_cover_the_wait(clock):
    """A context manager that a hook returns is open during the wait."""
    order = []

    @contextmanager
    def covering():
        order.append(clock.now())
        yield
        order.append(clock.now())

    set_hooks(lambda event: covering() if event.kind == "retry" else None)
    recover(Script(RateLimitedError(retry_after=7), "x"))
    assert order[1] - order[0] == 7


def test_a_hook_that_fails_changes_nothing(clock, caplog):
    """An exception of a hook is logged, and the operation goes on."""

    def broken(event):
        raise RuntimeError

    set_hooks(broken)
    assert recover(Script(RateLimitedError(retry_after=1), "x")) == "x"
    assert "hook failed" in caplog.text


def test_a_hook_of_one_call(clock, seen):
    """`on_event` gets the events of its own operation only, before the hooks of the process."""
    own = []
    recover(Script(RateLimitedError(retry_after=1), "x"), on_event=own.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert [event.kind for event in own] == ["retry", "recovered"]
    assert seen[:2] == own
    assert len(seen) == 4
    set_hooks()
    recover(Script(RateLimitedError(retry_after=1), "x"), on_event=own.append)
    assert len(own) == 4


def test_hooks_of_a_block():
    """`only_hooks` replaces the hooks in a block, and the others are back after it."""
    seen, kept = [], []
    with FakeClock(), only_hooks(kept.append):
        with only_hooks(seen.append):
            recover(Script(ServiceUnavailableError("later", retry_after=1), 1), operation=READ)
        assert [event.kind for event in seen] == ["retry", "recovered"]
        assert kept == []
        recover(Script(ServiceUnavailableError("later", retry_after=1), 1), operation=READ)
    assert [event.kind for event in kept] == ["retry", "recovered"]


def test_a_url_that_cannot_be_written_is_empty():
    """An object of another library may raise anything."""

    class Broken:
        def __str__(self):
            raise RuntimeError("secret")

    assert plain_url(Broken()) == ""


def test_what_the_recorder_gets(clock):
    """The whole fault and decision, the request, the number of calls, the times and the upstream of each step."""
    notes = []

    def sink(*note):
        notes.append(note)

    request = type("Request", (), {"method": "post", "url": "https://a:b@shop.example/x?token=1"})()
    lost = ServiceUnavailableError("away", retry_after=4.0)
    lost.request = request
    upstream = Upstream("shop", vendor="stripe").scope("seven")
    recording.add_sink(sink)
    try:
        recover(Script(lost, "x"), upstream=upstream, operation=READ)
        with pytest.raises(FaultError):
            recover(
                Script(Fault(code="NOT_FOUND", trace_id="theirs")),
                operation=Operation(name="n", method="GET", url="https://y.example/z", binding="http client"),
            )
        with pytest.raises(FaultError):
            recover(Script(Fault(code="NOT_FOUND")), operation=Operation(trace_id="ours"))
    finally:
        recording.remove_sink(sink)
    assert [(where, kind, fault.code) for where, kind, fault, _ in notes] == [
        ("call", "retry", "SERVICE_UNAVAILABLE"),
        ("call", "recovered", "SERVICE_UNAVAILABLE"),
        ("http client", "gave-up", "NOT_FOUND"),
        ("call", "gave-up", "NOT_FOUND"),
    ]
    retry, recovered, other, last = (facts for *_, facts in notes)
    assert (retry["method"], retry["url"]) == ("POST", "https://shop.example/x")
    assert (retry["name"], retry["wait"], retry["decision"].reason) == ("read", 4.0, "hint")
    assert (retry["attempt"], recovered["attempt"], other["attempt"]) == (1, 2, 1)
    assert (retry["elapsed"], recovered["elapsed"]) == (0.0, 4.0)
    assert (retry["upstream"], retry["vendor"]) == ("shop", "stripe")
    assert retry["trace_id"] == recovered["trace_id"]
    assert len(retry["trace_id"]) == 32
    assert (other["method"], other["url"]) == ("GET", "https://y.example/z")
    assert (other["upstream"], other["vendor"], other["trace_id"]) == (None, None, "theirs")
    assert (last["method"], last["url"], last["trace_id"]) == ("", "", "ours")


def test_the_recorder_gets_notes_without_hooks(clock):
    """And events without a recorder have their own trace id: that of the failure, else that of the operation."""
    seen = []
    for fault, operation, expected in (
        (Fault(code="NOT_FOUND", trace_id="theirs"), Operation(trace_id="ours"), "theirs"),
        (Fault(code="NOT_FOUND"), Operation(trace_id="ours"), "ours"),
        (Fault(code="NOT_FOUND"), Operation(), None),
    ):
        with only_hooks(seen.append), pytest.raises(FaultError):
            recover(Script(fault), operation=operation)
        assert seen[-1].trace_id == expected
    notes = []

    def sink(*note):
        notes.append(note)

    recording.add_sink(sink)
    try:
        with only_hooks(), pytest.raises(FaultError):
            recover(Script(Fault(code="NOT_FOUND")))
    finally:
        recording.remove_sink(sink)
    assert len(notes) == 1


def event_of(kind, delay):
    return Event(
        kind=kind,
        operation="",
        code="TIMEOUT",
        vocabulary="everyday",
        recovery="transient",
        attempt=1,
        delay=delay,
        reason="hint",
        elapsed=0.0,
    )


@pytest.mark.parametrize(
    ("kind", "delay", "level"),
    [
        ("gave-up", None, logging.WARNING),
        ("retry", 2.0, logging.INFO),
        ("retry", 2.01, logging.WARNING),
        ("queued", 2.01, logging.WARNING),
        ("retry", None, logging.INFO),
        ("recovered", 60.0, logging.INFO),
        ("verify", 60.0, logging.INFO),
    ],
)
def test_the_level_of_an_event(kind, delay, level):
    """A person may be waiting for a call that waits longer than two seconds."""
    assert log_level(event_of(kind, delay)) == level


def test_a_late_call_is_logged_once(caplog, monkeypatch):
    """Per function, of at most a hundred functions, with what can be done about it."""
    monkeypatch.setattr(events, "_late", set())

    def slow():
        pass

    log_late_call(slow, 1.5)
    log_late_call(slow, 1.5)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "slow took longer than timeout=1.5" in record.getMessage()
    assert "arecover" in record.getMessage()
    log_late_call(Script("x"), 2.0)
    assert "Script took longer than timeout=2:" in caplog.messages[-1]
    for number in range(200):
        log_late_call(type(f"Made{number}", (), {})(), 1.0)
    assert len(caplog.records) == 100


def test_the_request_of_a_failure():
    """From the operation; else from the exception or the result, its request, or the request of its response."""

    def holder(**members):
        return type("Holder", (), members)()

    request = holder(method="get", url="http://x.example/a?b=c")
    for error, result in (
        (holder(request=request), None),
        (holder(request_info=request), None),
        (holder(response=holder(request=request)), None),
        (holder(response=holder(request_info=request)), None),
        (request, None),
        (None, holder(request=request)),
        (holder(), holder(request=request)),
    ):
        assert request_facts(Operation(method="PUT"), error, result) == ("GET", "http://x.example/a")
    assert request_facts(Operation(method="PUT"), holder(url="http://y.example"), None) == (
        "PUT",
        "http://y.example",
    )
    assert request_facts(Operation(method="PUT"), holder(url=print), None) == ("PUT", "")
    assert request_facts(Operation(method="PUT", url="http://z.example/?a"), request, None) == (
        "PUT",
        "http://z.example/",
    )
    assert request_facts(Operation(), None, None) == ("", "")


def test_urls_are_short_and_printable():
    """At most 300 characters; user, query, fragment and control characters are left out."""
    assert plain_url("https://a:b@c@x.example/p@q?r#s") == "https://x.example/p@q"
    assert plain_url("/path#a?b") == "/path"
    assert plain_url("https://x.example/\x07a\nb") == "https://x.example/ab"
    assert len(plain_url("https://x.example/" + "a/" * 2000)) == 300
    assert plain_url("no scheme") == "no scheme"


def test_a_hook_that_is_interrupted_leaves_no_context_open(clock):
    """What the hooks before it opened is closed, and the interrupt propagates."""
    steps = []

    @contextmanager
    def open_one(event):
        steps.append("opened")
        yield
        steps.append("closed")

    def interrupt(event):
        raise KeyboardInterrupt

    with only_hooks(open_one, interrupt), pytest.raises(KeyboardInterrupt):
        recover(Script(ConnectionRefusedError(), "page"))
    assert steps == ["opened", "closed"]
