"""The simulated services, compared with values computed by hand."""

import pytest
from bench.recovery.draws import draw
from bench.recovery.overload import Overload
from bench.recovery.services import Brownout, Expiry, Hostile, Invalid, Lossy, Outage, Window
from bench.recovery.wire import Request


def status(answer):
    return answer and answer[1].status


def test_dice_depend_on_seed_operation_and_call_only():
    """The same triple gives the same number, and the numbers are uniform."""
    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({draw(1, 2, 3), draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4)}) == 4
    numbers = [draw(7, operation, 1) for operation in range(4000)]
    assert min(numbers) >= 0
    assert max(numbers) < 1
    assert sum(numbers) / len(numbers) == pytest.approx(0.5, abs=0.02)
    assert sum(number < 0.3 for number in numbers) / len(numbers) == pytest.approx(0.3, abs=0.03)


def test_window():
    """Two calls per 10 s: the third gets Retry-After 7 at 3.2 s and 1 at 9.5 s; a new window starts at 10 s."""
    service = Window(limit=2)
    assert [status(service.receive(0.0, Request(n, 1))) for n in range(2)] == [200, 200]
    at, response = service.receive(3.2, Request(2, 1))
    assert (at, response.status, response.headers) == (pytest.approx(3.25), 429, {"Retry-After": "7"})
    assert service.receive(9.5, Request(2, 2))[1].headers == {"Retry-After": "1"}
    assert status(service.receive(10.0, Request(2, 3))) == 200
    assert (service.calls, service.doomed) == (5, 2)


def test_outage():
    """503 from 10 on, 200 again at 40."""
    service = Outage()
    assert [status(service.receive(t, Request(0, 1))) for t in (9.99, 10, 39.99, 40)] == [200, 503, 503, 200]
    assert service.doomed == 2


def test_brownout_fails_its_share_whatever_the_time():
    """The same call fails at any time, and the share of failures is right."""
    service = Brownout(seed=3)
    early = [status(service.receive(0, Request(n, 1))) for n in range(2000)]
    assert early == [status(service.receive(99, Request(n, 1))) for n in range(2000)]
    assert early.count(503) / 2000 == pytest.approx(0.3, abs=0.03)


def test_invalid_operations_stay_invalid_and_repeats_are_wasted():
    """The first 422 of an operation is doomed; every later one is also wasted."""
    service = Invalid(seed=1)
    bad = next(n for n in range(100) if service.is_invalid(n))
    assert [status(service.receive(0, Request(bad, call))) for call in (1, 2, 3)] == [422] * 3
    assert (service.doomed, service.wasted) == (3, 2)
    assert sum(service.is_invalid(n) for n in range(5000)) / 5000 == pytest.approx(0.2, abs=0.02)


def test_an_expired_token_is_rejected_until_a_refresh():
    """The old token is valid before 20 s; a refresh from 20 s on gives a valid one, a refresh before gives the old one."""
    service = Expiry()
    assert status(service.receive(19.9, Request(0, 1, token=0))) == 200
    assert service.refresh(19.9) == 0
    assert status(service.receive(20, Request(0, 2, token=0))) == 401
    assert status(service.receive(20.3, Request(0, 3, token=service.refresh(20.2)))) == 200
    assert service.refreshes == 2


def fates(service, count=3000):
    """Group operations by what happens to their first call."""
    found = {"request lost": [], "refused": [], "answer lost": [], "fine": []}
    for n in range(count):
        chance = draw(service.seed, n, 1)
        fate = ("request lost", "refused", "answer lost", "fine")[min(3, int(chance / service.loss))]
        found[fate].append(n)
    return found


def test_lossy_commits_exactly_when_the_request_arrived():
    """Lost requests and 503s commit nothing, a lost response does; each has a share of a tenth."""
    service = Lossy(seed=5)
    by_fate = fates(service)
    answers = {fate: [status(service.receive(0, Request(n, 1))) for n in by_fate[fate]] for fate in by_fate}
    assert set(answers["request lost"]) == set(answers["answer lost"]) == {None}
    assert (set(answers["refused"]), set(answers["fine"])) == ({503}, {200})
    assert set(service.commits) == {*by_fate["answer lost"], *by_fate["fine"]}
    assert all(len(by_fate[fate]) / 3000 == pytest.approx(0.1, abs=0.02) for fate in list(by_fate)[:3])


def test_lossy_counts_duplicates_and_a_key_prevents_them():
    """A second commit of an operation is a duplicate, unless both calls have the same key."""
    service = Lossy(seed=5)
    n = next(n for n in fates(service)["answer lost"] if draw(5, n, 2) > 0.3)
    assert status(service.receive(0, Request(n, 1))) is None
    assert status(service.receive(3, Request(n, 2))) == 200
    assert service.duplicates == 1
    service = Lossy(seed=5)
    service.receive(0, Request(n, 1, key="k"))
    assert status(service.receive(3, Request(n, 2, key="k"))) == 200
    assert service.duplicates == 0


def test_lossy_can_ignore_keys():
    """A service that ignores keys has the effect again at every request that arrives."""
    service = Lossy(loss=0.0, honours_keys=False)
    for number in (1, 2):
        service.receive(0.0, Request(0, number, "key"))
    assert (service.keyed, service.duplicates) == (False, 1)


def test_hostile_always_asks_for_an_hour():
    """Retry-After is 3600 for every call."""
    assert Hostile().receive(1e6, Request(0, 9))[1].headers == {"Retry-After": "3600"}


def test_overload_serves_in_order_at_its_rate():
    """Three calls at once at 10/s end after 0.1, 0.2 and 0.3 s, plus the latency."""
    service = Overload(rate=10, latency=0.05)
    ends = [service.receive(0, Request(n, 1))[0] for n in range(3)]
    assert ends == pytest.approx([0.15, 0.25, 0.35])
    assert service.waiting(0.25) == 1


def test_overload_carries_work_across_a_change_of_speed():
    """Half of the work at full speed, the other half at a quarter of it; and the reverse."""
    service = Overload(rate=10, slow_rate=2.5, slow_from=20, slow_until=30)
    assert service.finish(19.95) == pytest.approx(20.2)
    assert service.finish(20) == pytest.approx(20.4)
    assert service.finish(29.8) == pytest.approx(30.05)
    assert service.finish(30) == pytest.approx(30.1)
    # The slow spell can pass within one call's work: 1 - 0.1×1 - 0.1×0.5 left at 10.2.
    brief = Overload(rate=1, slow_rate=0.5, slow_from=10.1, slow_until=10.2)
    assert brief.finish(10.0) == pytest.approx(10.2 + 0.85)


def test_overload_rejects_when_full_and_serves_abandoned_requests():
    """A full queue responds at once; a request whose client gave up still takes its turn."""
    service = Overload(rate=1, queue=5, latency=0.05)
    answers = [service.receive(0, Request(n, 1)) for n in range(6)]
    assert [status(answer) for answer in answers] == [200] * 5 + [503]
    assert answers[5][0] == pytest.approx(0.05)
    assert answers[4][0] == pytest.approx(5.05)  # its client gave up at 2 s
    assert service.receive(2.5, Request(6, 1))[0] == pytest.approx(6.05)  # the next still waits for it
    assert Overload(queue=0, hint=5).receive(0, Request(0, 1))[1].headers == {"Retry-After": "5"}
