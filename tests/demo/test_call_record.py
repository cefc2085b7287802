"""The call record of the demo's services: planned failures and wasted calls."""

from amends.demo.call_record import CallRecord
from amends.demo.scenario import InvalidChoice, LostResponse, RateLimit, make_scenario


def test_the_same_seed_gives_the_same_scenario():
    assert make_scenario(4) == make_scenario(4)
    assert any(make_scenario(4) != make_scenario(seed) for seed in range(5, 10))


def test_a_call_within_the_rate_limit_is_wasted(monkeypatch):
    now = 100.0
    monkeypatch.setattr("amends.demo.call_record.time.monotonic", lambda: now)
    record = CallRecord(make_scenario(0))
    first = record.record_call("prices")
    assert isinstance(first, RateLimit)
    now += first.seconds / 2
    assert isinstance(record.record_call("prices"), RateLimit)
    now += first.seconds
    assert record.record_call("prices") is None
    assert (record.tallies["prices"].calls, record.tallies["prices"].wasted) == (3, 1)


def test_repeating_an_invalid_choice_is_wasted():
    record = CallRecord(make_scenario(0))
    failure = record.record_call("table", make_scenario(0).requested_time)
    assert isinstance(failure, InvalidChoice)
    assert isinstance(record.record_call("table", "noon"), InvalidChoice)
    assert record.tallies["table"].wasted == 0
    record.record_call("table", "noon")
    assert record.tallies["table"].wasted == 1
    assert isinstance(record.record_call("table", failure.allowed[0]), RateLimit)


def test_a_response_is_lost_once():
    record = CallRecord(make_scenario(0))
    assert isinstance(record.record_call("order"), LostResponse)
    assert record.take_lost_response("order")
    assert not record.take_lost_response("order")
    assert record.record_call("order") is None
    assert not record.take_lost_response("order")
