"""What the record says about a call when it is over."""

import amends
from amends import Fault, Operation, Policy, Upstream, recover
from amends.errors import ServiceUnavailableError
from amends.page.models import failure_rows
from amends.recorder import Event, group_traces
from amends.testing import FakeClock, Script


def test_a_call_that_waited_and_succeeded_is_not_queued_any_more(tmp_path):
    """It had no failure of its own, and the page said "queued" for minutes."""
    with FakeClock() as clock, amends.record(f"sqlite:///{tmp_path}/r.db") as recorder:
        shop = Upstream("shop")
        failing = Script(*[ServiceUnavailableError("away", retry_after=20)] * 3)
        for _ in range(3):
            try:
                recover(
                    failing,
                    upstream=shop,
                    operation=Operation(name="first", read_only=True),
                    policy=Policy(attempts=1),
                )
            except ServiceUnavailableError:
                pass
        assert (
            recover(Script("there"), upstream=shop, operation=Operation(name="second", read_only=True))
            == "there"
        )
        assert clock.now() > 0
        assert recorder.flush(20)
        outcomes = [event.outcome for event in reversed(recorder.recent()) if event.name == "second"]
    assert outcomes == ["queued", "recovered"]


def test_a_row_has_the_code_and_the_status_that_the_call_ended_with():
    """SERVICE_UNAVAILABLE at first, 429 at the end."""
    first = Event(
        at=1.0,
        where="gateway",
        outcome="retry",
        fault=Fault(code="SERVICE_UNAVAILABLE", status=503),
        trace_id="a",
    )
    last = Event(
        at=2.0,
        where="gateway",
        outcome="gave-up",
        fault=Fault(code="RATE_LIMITED", status=429),
        trace_id="a",
        attempt=2,
    )
    [row] = failure_rows(group_traces([last, first]))
    assert (row.code, row.status) == ("RATE_LIMITED", "429")
    well = Event(
        at=2.0,
        where="gateway",
        outcome="recovered",
        fault=Fault(code="RATE_LIMITED", status=429),
        trace_id="a",
        attempt=2,
    )
    [row] = failure_rows(group_traces([well, first]))
    assert (row.code, row.status) == ("SERVICE_UNAVAILABLE", "503")


def test_entries_without_a_wanted_text_are_not_decoded():
    """Among a million events those with a rare code, outcome, service or trace are found without reading the others."""
    from amends.recorder import Filter
    from amends.recorder.event import encode_event

    entry = encode_event(
        Event(
            at=1.0,
            where="gateway",
            outcome="gave-up",
            fault=Fault(code="TIMEOUT"),
            upstream="shop",
            trace_id="4bf9",
        )
    )
    for wanted in (
        {"code": "TIMEOUT"},
        {"outcome": "gave-up"},
        {"upstream": "shop"},
        {"trace": "4bf"},
        {"where": "gateway"},
        {},
    ):
        assert Filter(**wanted).may_match(entry)
    for other in (
        {"code": "CONFLICT"},
        {"outcome": "sent"},
        {"upstream": "none"},
        {"trace": "5"},
        {"where": "tasks"},
    ):
        assert not Filter(**other).may_match(entry)
    assert Filter(upstream='a "quoted" name').may_match(entry)
