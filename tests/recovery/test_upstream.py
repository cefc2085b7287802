"""
Tests of the state that callers of one service share: in fake time step by step, in real time with threads and
tasks.
"""

import asyncio
import pickle
import signal
import threading
import time
import tracemalloc

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream, arecover, recover
from amends.errors import RateLimitedError, ServiceUnavailableError, UnauthenticatedError
from amends.recovery import configure, schedule
from amends.recovery import upstream as upstream_module
from amends.recovery.async_library import TaskWaiter, ThreadWaiter
from amends.recovery.classify import fault_of
from amends.recovery.clock import CLOCK
from amends.recovery.quota import Quota
from amends.testing import Script

READ = Operation(name="read", read_only=True)


def gaps(monkeypatch, seconds):
    """Make the gaps between probes this long."""
    for name in ("FIRST_PLAIN", "CAP_PLAIN", "FIRST_SILENT", "CAP_SILENT", "LEAST_CAP"):
        monkeypatch.setattr(schedule, name, seconds)


def trip(upstream, now=0.0):
    """Report five failures, so that the state is SHUT."""
    for _ in range(5):
        upstream.failed(Fault(code="SERVICE_UNAVAILABLE"), now, now - 0.01, 0.5)
    assert upstream.snapshot(now).state == "shut"


def test_a_hint_holds_back_all_operations(clock):
    """The second operation is not sent before the time that the first one's hint named."""
    upstream = Upstream("shop")
    sent = []

    def call():
        sent.append(clock.now())
        if len(sent) == 1:
            raise RateLimitedError(retry_after=20)
        return "ok"

    with pytest.raises(FaultError):
        recover(call, upstream=upstream, policy=Policy(attempts=1))
    assert recover(call, upstream=upstream) == "ok"
    assert sent[1] - sent[0] >= 20


def test_a_hint_of_an_hour_is_not_waited_for(clock):
    """One call receives the hint. The others fail at once, unsent, with the time to come back."""
    upstream, script = Upstream(), Script(RateLimitedError(retry_after=3600), repeat=True)
    for _ in range(10):
        with pytest.raises(RateLimitedError) as caught:
            recover(script, upstream=upstream)
        assert caught.value.decision.reason == "wait-too-long"
    assert script.count == 1
    assert caught.value.history == ()
    assert caught.value.fault.executed == "no"
    assert caught.value.fault.retry_after == pytest.approx(3600)
    assert clock.waits == []


def test_parking_is_not_an_attempt(clock):
    """A call that waits for the end of an outage is sent once, and its attempt has the waiting time."""
    upstream, history = Upstream(), []
    trip(upstream, clock.now())
    assert recover(lambda: "ok", upstream=upstream, operation=READ, history=history) == "ok"
    assert (len(history), history[0].parked) == (1, pytest.approx(0.5, rel=0.3))
    assert upstream.snapshot().state == "open"


def test_an_unsent_call_is_sent_when_its_waiting_is_used_up(clock):
    """The exception is a wait that the server asked for."""
    upstream = Upstream()
    trip(upstream, clock.now())
    script = Script("ok")
    assert recover(script, upstream=upstream, policy=Policy(max_wait=0.1)) == "ok"
    held = Upstream()
    held.failed(Fault(code="RATE_LIMITED", retry_after=5), clock.now(), clock.now(), 0.0)
    with pytest.raises(FaultError):
        recover(Script(), upstream=held, policy=Policy(max_wait=1))


def test_a_repeat_is_given_up_when_its_waiting_is_used_up(clock, monkeypatch):
    """The error has the failure of the call that was sent, and the reason."""
    gaps(monkeypatch, 50.0)
    upstream = Upstream()
    script = Script(ServiceUnavailableError(), repeat=True)
    trip(upstream, clock.now())
    with pytest.raises(ServiceUnavailableError) as caught:
        recover(script, upstream=upstream, operation=READ, policy=Policy(max_wait=5))
    assert caught.value.decision.reason in {"parked", "wait-too-long"}
    assert script.count == 1
    assert upstream.snapshot().parked == 0


def test_a_repeat_without_a_turn_is_given_up(clock, monkeypatch):
    """After its own wait it waits in the queue, at most until `max_wait`."""
    gaps(monkeypatch, 50.0)
    upstream = Upstream()
    upstream.succeeded(clock.now(), clock.now() - 1)
    for _ in range(2):
        upstream.failed(Fault(code="TIMEOUT"), clock.now(), clock.now() - 0.5, 0.5)
    with pytest.raises(FaultError) as caught:
        recover(Script(Fault(code="TIMEOUT")), upstream=upstream, operation=READ, policy=Policy(max_wait=5))
    assert caught.value.decision.reason == "parked"
    assert caught.value.history[0].wait == 5
    assert upstream.snapshot().parked == 0


def test_an_outer_deadline_bounds_the_wait_in_the_queue(clock, monkeypatch):
    """No call is parked beyond the deadline of the outer operation."""
    gaps(monkeypatch, 50.0)
    upstream = Upstream()
    trip(upstream, clock.now())
    began = clock.now()
    assert recover(lambda: recover(Script("x"), upstream=upstream), policy=Policy(deadline=3)) == "x"
    assert clock.now() - began == 3


async def test_a_direct_first_call_is_reported():
    """A first call without a flow reports its outcome to the upstream like any other."""
    upstream = Upstream()
    with pytest.raises(FaultError):
        await arecover(Script(Fault(code="SERVICE_UNAVAILABLE")).acall, upstream=upstream)
    assert upstream.snapshot().calls == 1
    assert await arecover(Script("x").acall, upstream=upstream) == "x"
    assert upstream.snapshot().calls == 2


def test_leave_accepts_a_waiter_that_is_not_queued():
    """It may have waited for credentials only."""
    upstream = Upstream()
    upstream.leave(ThreadWaiter(), 0.0)
    assert upstream.open


async def test_a_waiter_that_was_woken_does_not_sleep():
    """This holds also if it was woken before it went to sleep, and no timer is left."""
    waiter = TaskWaiter()
    waiter.wake()
    waiter.wake()
    await CLOCK.apark(waiter, 60.0)
    waiter.clear()
    asyncio.get_running_loop().call_soon(waiter.wake)
    await CLOCK.apark(waiter, 12345.0)
    ahead = [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]
    assert all(timer.when() - time.monotonic() < 12000 for timer in ahead)


def test_a_call_within_the_probe_is_part_of_it(clock):
    """If two layers use the same upstream, the inner call does not wait for the outer one."""
    upstream = Upstream()
    trip(upstream, clock.now())
    began = clock.now()

    def outer():
        return recover(Script("x"), upstream=upstream, operation=READ)

    assert recover(lambda: recover(outer, upstream=Upstream()), upstream=upstream) == "x"
    assert clock.now() - began == pytest.approx(0.5, rel=0.3)
    assert upstream.snapshot().state == "open"


def test_repeats_are_bounded_by_a_quota(clock):
    """If it is empty, a repeat waits no longer than its backoff was and is then given up, with a time to resume."""
    upstream = Upstream()
    upstream._quota = Quota(per_success=1.5, per_second=0.1, saved=0.0)
    with pytest.raises(ServiceUnavailableError) as caught:
        recover(Script(ServiceUnavailableError()), upstream=upstream, operation=READ)
    assert (caught.value.decision.reason, caught.value.decision.resume_in > 0) == ("budget", True)
    upstream = Upstream()
    upstream._quota = Quota(per_success=1.5, per_second=1.5, saved=1.0)
    script = Script(ServiceUnavailableError(), ServiceUnavailableError(), "ok")
    assert recover(script, upstream=upstream, operation=READ) == "ok"
    assert upstream.snapshot().repeats == 2


def test_operations_without_an_upstream_share_the_quota_of_the_process(clock):
    """The repeats of a bare `recover` wait for each other when most calls fail. `configure` turns that off."""
    script = Script(ServiceUnavailableError(), repeat=True)
    short = Policy(max_wait=10)
    try:
        for _ in range(40):
            with pytest.raises(ServiceUnavailableError) as caught:
                recover(script, operation=READ, policy=short)
        assert caught.value.decision.reason in {"parked", "wait-too-long"}
        assert 40 < script.count < 100
        configure(quota=None)
        with pytest.raises(ServiceUnavailableError) as caught:
            recover(script, operation=READ)
        assert caught.value.decision.reason == "attempts"
        with pytest.raises(TypeError):
            configure(quota=3)
    finally:
        configure()


def test_a_client_error_ends_an_outage(clock):
    """A 404 shows that the service works, as a 200 does."""
    upstream = Upstream()
    trip(upstream, clock.now())
    with pytest.raises(FaultError):
        recover(Script(Fault(code="NOT_FOUND")), upstream=upstream)
    assert upstream.snapshot().state == "open"


def test_an_unclassified_exception_is_no_outage(clock):
    """It shows nothing about the service, so the upstream stays open."""
    upstream = Upstream()
    for _ in range(20):
        with pytest.raises(FaultError):
            recover(Script(KeyError("x")), upstream=upstream)
    assert upstream.open


def test_snapshot_and_repr_show_the_state():
    """For dashboards and logs."""
    upstream = Upstream("shop")
    first = upstream.snapshot(5.0)
    assert (first.name, first.state, first.parked, first.resumes_in, first.calls) == (
        "shop",
        "open",
        0,
        0.0,
        0,
    )
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=5), 5.0, 4.0, 0.0)
    assert upstream.snapshot(5.0).resumes_in == 5.0
    assert "shut" in repr(upstream)
    assert upstream.snapshot().name == "shop"


def test_a_turn_that_cannot_be_used_is_given_back():
    """A waiter that is interrupted after its turn was granted does not block the others."""
    upstream = Upstream()
    trip(upstream)
    one, two = ThreadWaiter(), ThreadWaiter()
    assert upstream.look(one, 0.0) == pytest.approx(0.5)
    assert upstream.look(two, 0.0) == float("inf")
    assert upstream.look(one, 6.0) == 0.0
    upstream.leave(one, 6.0)
    assert two.granted
    assert upstream.look(two, 6.0) == 0.0
    assert upstream.force(two, 6.0)


def test_force_is_refused_while_the_server_asks_for_no_calls():
    """The waiter leaves the queue."""
    upstream, waiter = Upstream(), ThreadWaiter()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=5), 0.0, 0.0, 0.0)
    assert upstream.look(waiter, 1.0) == 5.0
    assert not upstream.force(waiter, 1.0)
    assert upstream.snapshot(1.0).parked == 0


def test_the_next_waiter_is_woken_when_the_first_leaves():
    """It then looks again at the time that was due."""
    upstream = Upstream()
    trip(upstream)
    one, two = ThreadWaiter(), ThreadWaiter()
    upstream.look(one, 0.0)
    upstream.look(two, 0.0)
    upstream.leave(one, 0.0)
    assert two.event.is_set()
    two.clear()
    assert not two.event.is_set()
    assert upstream.look(two, 0.0) == pytest.approx(0.5)


def test_a_long_hint_is_reported_whole_and_probed_early(clock):
    """`resume_in` is what the service said. A new operation is sent after 30 s, and its success ends the wait."""
    upstream, script = (
        Upstream(),
        Script(RateLimitedError(retry_after=86_400), RateLimitedError(retry_after=86_400), "ok"),
    )
    with pytest.raises(RateLimitedError):
        recover(script, upstream=upstream)
    clock.advance(10)
    with pytest.raises(RateLimitedError) as caught:
        recover(script, upstream=upstream)
    assert caught.value.decision.resume_in == pytest.approx(86_390, abs=1)
    assert caught.value.fault.retry_after == pytest.approx(86_390, abs=1)
    clock.advance(20.5)
    with pytest.raises(RateLimitedError):
        recover(script, upstream=upstream)
    clock.advance(91)
    assert recover(script, upstream=upstream) == "ok"
    assert (script.count, upstream.snapshot().state) == (3, "open")


def test_a_scope_has_its_own_state(clock):
    """A hint for one tenant holds back that tenant only. The quota and the credentials are shared."""
    upstream = Upstream("shop")
    one, two = upstream.scope("one"), upstream.scope("two")
    with pytest.raises(RateLimitedError):
        recover(Script(RateLimitedError(retry_after=3600)), upstream=one)
    assert (one.snapshot().state, two.snapshot().state, upstream.snapshot().state) == ("shut", "open", "open")
    assert one._quota is upstream._quota
    assert (one.name, upstream.snapshot().scopes) == ("shop/one", ("one",))
    assert not upstream.idle
    upstream.reset()
    assert one.snapshot().state == "open"
    assert upstream.idle
    assert recover(Script("ok"), upstream=one) == "ok"


def test_scopes_are_bounded(monkeypatch):
    """The one used longest ago is dropped."""
    monkeypatch.setattr(upstream_module, "_MOST_SCOPES", 2)
    upstream = Upstream()
    first = upstream.scope("1")
    upstream.scope("2")
    assert upstream.scope("1") is first
    upstream.scope("3")
    assert tuple(upstream._scopes) == ("1", "3")
    assert upstream.snapshot().scopes == ()


async def test_concurrency_bounds_the_calls_in_flight():
    """The others wait for their turn; failures and interrupted calls give their place back."""
    upstream, running, most = Upstream(concurrency=3), 0, 0

    async def call():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        if most == 3 and running == 1:
            raise KeyError
        return "ok"

    results = await asyncio.gather(
        *(arecover(call, upstream=upstream) for _ in range(20)), return_exceptions=True
    )
    assert most == 3
    assert results.count("ok") > 5
    assert (upstream._controller.inflight, upstream.snapshot().parked) == (0, 0)
    with pytest.raises(ValueError, match="at least 1"):
        Upstream(concurrency=0)


def test_calls_are_paced_where_an_answer_allows_few(clock):
    """`allow` paces the calls if fewer are allowed than arrive; otherwise it changes nothing."""
    upstream = Upstream()
    for _ in range(30):
        recover(Script("ok"), upstream=upstream)
    upstream.allow(1000, 10.0, clock.now())
    assert upstream.open
    upstream.allow(5, 10.0, clock.now())
    assert upstream.snapshot().pace == pytest.approx(0.5)
    recover(Script("ok"), upstream=upstream)
    assert clock.waits == [pytest.approx(2.0)]


def test_an_upstream_is_pickled_without_its_state():
    """Another process learns the state of the service itself."""
    upstream = Upstream("shop", vendor="stripe", own=True, keyed=True, concurrency=4)
    trip(upstream)
    again = pickle.loads(pickle.dumps(upstream))
    assert (again.name, again.vendor, again.own, again.keyed, again.concurrency) == (
        "shop",
        "stripe",
        True,
        True,
        4,
    )
    assert again.snapshot().state == "open"


def test_the_refusal_without_a_hint_is_unavailable():
    """This is the fault of an operation that could not be sent."""
    assert Upstream().refusal(0.0).code == "SERVICE_UNAVAILABLE"


# In real time --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer signal")
def test_an_interrupt_reaches_a_parked_thread():
    """Ctrl-C ends the wait at once, and the call leaves the queue."""
    upstream = Upstream()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=100), time.monotonic(), 0.0, 0.0)

    def interrupt(*_):
        raise KeyboardInterrupt

    def park(waiter, seconds):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        waiter.event.wait(seconds)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with CLOCK.using(park=park), pytest.raises(KeyboardInterrupt):
            recover(Script("x"), upstream=upstream)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert upstream.snapshot().parked == 0


def test_parked_threads_all_succeed_after_an_outage(monkeypatch):
    """Few calls are needed to find out that it is over."""
    gaps(monkeypatch, 0.02)
    upstream = Upstream()
    over, calls, results, lock = time.monotonic() + 0.15, [], [], threading.Lock()

    def call():
        with lock:
            calls.append(1)
        if time.monotonic() < over:
            raise ServiceUnavailableError
        return "ok"

    def work():
        results.append(recover(call, upstream=upstream, operation=READ, policy=Policy(attempts=50)))

    trip(upstream, time.monotonic())
    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == ["ok"] * 20
    assert len(calls) < 20 + 40
    assert upstream.snapshot().parked == 0


async def test_parked_tasks_all_succeed_after_an_outage(monkeypatch):
    """The same on an event loop."""
    gaps(monkeypatch, 0.02)
    upstream = Upstream()
    over, calls = time.monotonic() + 0.1, []

    async def call():
        calls.append(1)
        await asyncio.sleep(0)
        if time.monotonic() < over:
            raise ServiceUnavailableError
        return "ok"

    trip(upstream, time.monotonic())
    work = [arecover(call, upstream=upstream, operation=READ, policy=Policy(attempts=50)) for _ in range(200)]
    assert await asyncio.gather(*work) == ["ok"] * 200
    assert len(calls) < 240


async def test_a_cancelled_task_leaves_the_queue(monkeypatch):
    """A parked call can be cancelled at once, and the next one takes its place."""
    gaps(monkeypatch, 60.0)
    upstream = Upstream()
    trip(upstream, time.monotonic())

    async def call():
        return "ok"

    first = asyncio.create_task(arecover(call, upstream=upstream))
    second = asyncio.create_task(arecover(call, upstream=upstream))
    while upstream.snapshot().parked < 2:
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert upstream.snapshot().parked == 1
    now = time.monotonic()
    upstream.succeeded(now, now)
    assert await second == "ok"


async def test_threads_and_tasks_share_one_queue(monkeypatch):
    """A thread's report wakes a task, and a task's report a thread."""
    gaps(monkeypatch, 0.02)
    upstream = Upstream()
    trip(upstream, time.monotonic())

    def call():
        time.sleep(0.005)
        return "thread"

    async def acall():
        await asyncio.sleep(0.005)
        return "task"

    mixed = [asyncio.to_thread(recover, call, upstream=upstream) for _ in range(4)]
    mixed += [arecover(acall, upstream=upstream) for _ in range(4)]
    assert sorted(await asyncio.gather(*mixed)) == ["task"] * 4 + ["thread"] * 4


def test_a_waiter_of_a_closed_loop_is_not_woken():
    """Waking it raises no error."""

    async def make():
        return TaskWaiter()

    waiter = asyncio.run(make())
    thread = threading.Thread(target=waiter.wake)
    thread.start()
    thread.join()
    assert not waiter.event.is_set()


# Credentials ---------------------------------------------------------------------------------------------------


class Service:
    """A service whose valid token was changed."""

    def __init__(self):
        self.token, self.valid, self.renewals, self.works = "old", "new", 0, True

    def call(self):
        token = self.token
        time.sleep(0.002)
        if token != self.valid:
            raise UnauthenticatedError
        return "in"

    async def acall(self):
        token = self.token
        await asyncio.sleep(0.002)
        if token != self.valid:
            raise UnauthenticatedError
        return "in"

    def refresh(self):
        self.renewals += 1
        time.sleep(0.02)
        if not self.works:
            raise OSError("no")
        self.token = "new"

    async def arefresh(self):
        self.renewals += 1
        await asyncio.sleep(0.02)
        if not self.works:
            raise OSError("no")
        self.token = "new"


async def test_one_renewal_for_all_tasks():
    """Calls that start during the renewal wait for it."""
    service = Service()
    upstream = Upstream(refresh=service.arefresh)

    async def late():
        await asyncio.sleep(0.01)
        return await arecover(service.acall, upstream=upstream)

    work = [arecover(service.acall, upstream=upstream) for _ in range(30)] + [late() for _ in range(5)]
    assert await asyncio.gather(*work) == ["in"] * 35
    assert service.renewals == upstream.snapshot().renewals == 1
    assert upstream.open


def test_one_renewal_for_all_threads():
    """The same with threads."""
    service, results = Service(), []
    upstream = Upstream(refresh=service.refresh)
    threads = [
        threading.Thread(target=lambda: results.append(recover(service.call, upstream=upstream)))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == ["in"] * 20
    assert service.renewals == 1


async def test_a_failed_renewal_fails_all_waiting_calls():
    """None of them tries to renew again."""
    service = Service()
    service.works = False
    upstream = Upstream(refresh=service.arefresh)
    results = await asyncio.gather(
        *(arecover(service.acall, upstream=upstream) for _ in range(10)), return_exceptions=True
    )
    assert all(isinstance(result, UnauthenticatedError) for result in results)
    assert service.renewals == 1
    assert upstream.open


async def test_another_call_renews_if_the_first_is_cancelled():
    """The renewal is not lost."""
    service, renewing = Service(), asyncio.Event()

    async def refresh():
        if not renewing.is_set():
            renewing.set()
            await asyncio.sleep(60)
        await service.arefresh()

    upstream = Upstream(refresh=refresh)
    leader = asyncio.create_task(arecover(service.acall, upstream=upstream))
    await renewing.wait()
    others = [asyncio.create_task(arecover(service.acall, upstream=upstream)) for _ in range(3)]
    await asyncio.sleep(0)
    leader.cancel()
    assert await asyncio.gather(*others) == ["in"] * 3
    assert service.renewals == 1
    with pytest.raises(asyncio.CancelledError):
        await leader


async def test_waiting_for_a_renewal_has_bounds_and_can_be_cancelled():
    """A call waits at most as long as its policy allows."""
    service = Service()
    going = asyncio.Event()

    async def never():
        going.set()
        await asyncio.sleep(60)

    upstream = Upstream(refresh=never)
    leader = asyncio.create_task(arecover(service.acall, upstream=upstream))
    refused = asyncio.create_task(arecover(service.acall, upstream=upstream, policy=Policy(max_wait=0.03)))
    stuck = asyncio.create_task(arecover(service.acall, upstream=upstream))
    await going.wait()
    late = asyncio.create_task(arecover(service.acall, upstream=upstream, policy=Policy(max_wait=0.01)))
    with pytest.raises(UnauthenticatedError):
        await refused
    with pytest.raises(UnauthenticatedError):
        await late
    for task in (stuck, leader):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert upstream.open


def test_calls_one_after_another_are_paced_until_the_named_time(clock):
    """The pace holds although no call waits; where many remain, nothing is paced."""
    upstream = Upstream()
    for left in range(9, -1, -1):
        recover(Script("ok"), upstream=upstream)
        upstream.allow(left, 60.0, clock.now())
    assert 3 <= len(clock.waits) <= 6
    assert sum(clock.waits) > 30
    assert upstream.snapshot().state == "ramp"
    clock.advance(61.0)
    recover(Script("ok"), upstream=upstream)
    assert upstream.open
    many = Upstream()
    for left in range(4999, 4959, -1):
        recover(Script("ok"), upstream=many)
        many.allow(left, 3600.0, clock.now())
    assert many.open


def test_the_next_call_after_none_remain(clock):
    """`allow` with none remaining: the next call is sent when the named time is over, not later."""
    upstream = Upstream()
    for _ in range(30):
        recover(Script("ok"), upstream=upstream)
    upstream.allow(0, 1.5, clock.now())
    recover(Script("ok"), upstream=upstream)
    assert clock.waits == [pytest.approx(1.5)]


def test_a_snapshot_after_the_pause(clock):
    """The seconds until calls resume are never negative."""
    upstream, now = Upstream("a"), clock.now()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=4.0), now, now, 0.0)
    assert upstream.snapshot(now).resumes_in == pytest.approx(4.0)
    assert upstream.snapshot(now + 3).resumes_in == pytest.approx(1.0)
    assert upstream.snapshot(now + 9).resumes_in == 0.0
    assert Upstream("b").snapshot(now).resumes_in == 0.0


def test_a_pause_is_refused_only_while_it_lasts(clock):
    """A call with too little patience is refused until the probe is due."""
    upstream, now = Upstream("a"), clock.now()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=40.0), now, now, 0.0)
    assert upstream.refuses(now, 10.0)
    assert not upstream.refuses(now, 40.0)
    assert not upstream.refuses(now + 40.0, 0.0)


def test_a_call_is_not_refused_at_the_moment_at_which_the_probe_is_due(clock):
    """However long the server asked for no calls."""
    upstream, now = Upstream("a"), clock.now()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=3000), now, now, 0.0)
    due = now + upstream.snapshot(now).resumes_in
    assert now < due < now + 3000
    assert upstream.refuses(due - 0.001, 0.0)
    assert not upstream.refuses(due, 0.0)


def test_a_hint_of_no_time():
    """A wait of 0, or until a date in the past, is none: the failure counts as one without a hint."""
    for code, status in (("RATE_LIMITED", 429), ("SERVICE_UNAVAILABLE", 503)):
        upstream, plain = Upstream("a"), Upstream("b")
        for _ in range(20):
            upstream.failed(Fault(code=code, status=status, retry_after=0), 100.0, 100.0, 0.5)
            plain.failed(Fault(code=code, status=status), 100.0, 100.0, 0.5)
        assert upstream.snapshot(100.0).resumes_in == plain.snapshot(100.0).resumes_in > 0.0
        assert upstream.held_for(100.0) == 0.0


def test_one_call_at_once_is_the_least():
    """A concurrency of none would let no call out."""
    assert Upstream("a", concurrency=1).concurrency == 1
    with pytest.raises(ValueError, match="at least 1"):
        Upstream("a", concurrency=0)


def test_a_call_that_has_just_enough_patience_waits():
    """It is refused if the named time is later than it can wait."""
    upstream = Upstream("shop")
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=20.0), 0.0, -0.01, 0.5)
    assert upstream.snapshot(0.0).state == "shut"
    held = upstream.held_for(0.0)
    assert upstream.refuses(0.0, held - 0.5)
    assert not upstream.refuses(0.0, held)


def test_reset_forgets_what_a_server_named():
    """A refusal after it names no time."""
    upstream = Upstream("shop")
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=3600.0), 0.0, -0.01, 0.5)
    assert upstream.refusal(0.0).retry_after is not None
    upstream.reset()
    trip(upstream, 10.0)
    assert (upstream.held_for(10.0), upstream.refusal(10.0).code) == (0.0, "SERVICE_UNAVAILABLE")
    assert upstream.refusal(10.0).retry_after is None


def test_what_a_snapshot_shows_of_calls_in_flight():
    """Their number, the room while it is limited, and the demand."""
    upstream = Upstream("shop")
    for _ in range(12):
        upstream.begin()
    for _ in range(8):
        upstream.failed(Fault(code="RATE_LIMITED", status=429), 0.1, 0.0, 0.5)
    assert (upstream.snapshot(0.1).in_flight, upstream.snapshot(0.1).room) == (4, None)
    for _ in range(3):
        upstream.look(ThreadWaiter(), 0.2)
    upstream.succeeded(1.0, 0.0)
    shown = upstream.snapshot(1.0)
    assert (shown.state, shown.in_flight, shown.room) == ("ramp", 4, 4)
    assert shown.demand >= 8.0


def test_a_thousand_scopes_are_kept():
    """One more, and the one used longest ago is dropped."""
    upstream = Upstream()
    for number in range(1001):
        upstream.scope(str(number))
    scopes = tuple(upstream._scopes)
    assert (len(scopes), scopes[0]) == (1000, "1")


def test_a_turn_is_given_back_once():
    """A second `leave` of the same waiter does not free the place of another call."""
    upstream = Upstream(concurrency=2)
    one, two, three = ThreadWaiter(), ThreadWaiter(), ThreadWaiter()
    assert upstream.look(one, 0.0) == upstream.look(two, 0.0) == 0.0
    assert upstream.look(three, 0.0) > 0.0
    upstream.leave(one, 0.0)
    upstream.leave(one, 0.0)
    assert three.granted
    four = ThreadWaiter()
    assert upstream.look(four, 0.0) > 0.0


def two_waiters(upstream, now=0.0):
    """Return waiters of a call that may be sent and of one that may not, with room for one call."""
    one, two = ThreadWaiter(), ThreadWaiter()
    assert upstream.look(one, now) == 0.0
    assert upstream.look(two, now) == float("inf")
    return one, two


@pytest.mark.parametrize("how", ["succeeded", "failed", "well", "nothing", "abandoned", "leave"])
def test_every_end_of_a_call_makes_room_for_one(how):
    """Whatever its outcome: with room for one call, the next waiter is let out, and only that one."""
    upstream = Upstream(concurrency=1)
    one, two = two_waiters(upstream)
    three = ThreadWaiter()
    assert upstream.look(three, 0.0) == float("inf")
    if how == "succeeded":
        upstream.succeeded(1.0, 0.0)
    elif how == "failed":
        upstream.failed(Fault(code="SERVICE_UNAVAILABLE"), 1.0, 0.0, 0.5)
    elif how == "well":
        assert upstream.failed(Fault(code="NOT_FOUND"), 1.0, 0.0, 0.5) is False
    elif how == "nothing":
        assert upstream.failed(fault_of(KeyError("x")), 1.0, 0.0, 0.5) is False
    elif how == "abandoned":
        upstream.abandoned(1.0, 0.0)
    else:
        upstream.leave(one, 1.0)
    assert two.granted
    assert two.event.is_set()
    assert not three.granted
    assert upstream.snapshot(1.0).parked == 1


@pytest.mark.parametrize("how", ["succeeded", "failed", "abandoned"])
def test_an_end_that_no_call_belongs_to_makes_no_room(how):
    """The number of calls in flight is not negative."""
    upstream = Upstream(concurrency=1)
    for _ in range(3):
        if how == "succeeded":
            upstream.succeeded(0.0, 0.0)
        elif how == "failed":
            upstream.failed(Fault(code="SERVICE_UNAVAILABLE"), 0.0, 0.0, 0.5)
        else:
            upstream.abandoned(0.0, 0.0)
    two_waiters(upstream)


def test_forced_and_joined_calls_are_in_flight():
    """They take a place each; a call is not forced where there is none."""
    upstream = Upstream(concurrency=2)
    upstream.begin()
    one, two = two_waiters(upstream)
    assert not upstream.force(two, 0.0)
    upstream.leave(one, 0.0)
    three = ThreadWaiter()
    assert upstream.force(three, 0.0)
    assert upstream.look(ThreadWaiter(), 0.0) == float("inf")


def test_an_interrupted_probe_is_sent_by_the_next_waiter():
    """At once."""
    upstream = Upstream()
    trip(upstream)
    one, two = ThreadWaiter(), ThreadWaiter()
    due = upstream.look(one, 0.0)
    upstream.look(two, 0.0)
    assert upstream.look(one, due) == 0.0
    assert not two.granted
    upstream.abandoned(due, due)
    assert two.granted


def test_reset_sends_the_waiting_calls():
    """And no refusal names the time of before."""
    upstream, waiter = Upstream("shop"), ThreadWaiter()
    trip(upstream)
    assert upstream.look(waiter, 0.0) > 0.0
    upstream.reset()
    assert waiter.granted
    assert upstream.snapshot().calls == 0


def test_waiting_calls_are_woken_by_a_long_hint():
    """Longer than half a minute, and holding: those that cannot wait that long fail now. A short one wakes none."""
    for hint, woken in ((20.0, False), (40.0, True)):
        upstream = Upstream()
        trip(upstream)
        one, two = ThreadWaiter(), ThreadWaiter()
        due = upstream.look(one, 0.0)
        upstream.look(two, 0.0)
        upstream.look(one, due)
        two.clear()
        assert upstream.failed(Fault(code="RATE_LIMITED", retry_after=hint), due, due, 0.0)
        three = ThreadWaiter()
        upstream.look(three, due)
        upstream.look(two, due)
        for each in (two, three):
            each.clear()
        assert upstream.failed(Fault(code="RATE_LIMITED", retry_after=hint), due, due - 1.0, 0.0)
        assert three.event.is_set() is woken


def test_what_a_probe_gets_first_in_the_queue():
    """Before the hinted time a call that has not received the hint goes first; otherwise the first in the queue."""
    upstream = Upstream()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=3000), 0.0, 0.0, 0.0)
    repeat, fresh = ThreadWaiter(), ThreadWaiter()
    upstream.look(repeat, 0.0, tries=1)
    upstream.look(fresh, 0.0)
    due = upstream.snapshot(0.0).resumes_in
    upstream.look(fresh, due)
    assert (repeat.granted, fresh.granted) == (False, True)
    upstream = Upstream()
    trip(upstream)
    repeat, fresh = ThreadWaiter(), ThreadWaiter()
    due = upstream.look(repeat, 0.0, tries=1)
    upstream.look(fresh, 0.0)
    upstream.look(fresh, due)
    assert (repeat.granted, fresh.granted) == (True, False)


def test_only_new_operations_that_wait_count_as_arrivals():
    """Repeats do not, and in OPEN the answers are counted instead."""
    for fresh, state, counted in ((True, "shut", 1), (False, "shut", 0), (True, "open", 0)):
        upstream = Upstream(concurrency=1)
        if state == "shut":
            trip(upstream)
        before = upstream._controller.traffic.arrivals
        upstream.look(ThreadWaiter(), 0.0, tries=0 if fresh else 1)
        assert upstream._controller.traffic.arrivals - before == counted


def test_the_quota_of_an_upstream():
    """Successes earn repeats; in other states than OPEN none is taken from it."""
    upstream = Upstream()
    for _ in range(100):
        assert upstream.take_repeat(0.0) == 0.0
    assert upstream.take_repeat(0.0) > 0.0
    for _ in range(2):
        upstream.succeeded(0.0, 0.0)
    assert [upstream.take_repeat(0.0) == 0.0 for _ in range(4)] == [True, True, True, False]
    trip(upstream, 0.0)
    assert upstream.take_repeat(0.0) == 0.0
    assert upstream.snapshot(0.0).repeats == 103


def test_what_a_snapshot_shows_of_an_outage():
    """The next probe, the queue, the share of failures, the round trip; the pace only while calls are paced."""
    upstream = Upstream("shop")
    for number in range(20):
        upstream.succeeded(number + 0.5, float(number))
    upstream.failed(Fault(code="SERVICE_UNAVAILABLE"), 20.0, 19.9, 0.5)
    found = upstream.snapshot(20.0)
    assert (found.state, found.calls, found.pace, found.resumes_in, found.renewals) == (
        "open",
        21,
        None,
        0.0,
        0,
    )
    assert found.failing == pytest.approx(1 / 32)
    assert found.round_trip == pytest.approx(0.5)
    assert (found.repeats, found.repeats_left) == (0, 100.0)
    while upstream.open:
        upstream.failed(Fault(code="SERVICE_UNAVAILABLE"), 20.0, 19.9, 0.5)
    upstream.look(ThreadWaiter(), 20.0)
    found = upstream.snapshot(20.0)
    assert (found.state, found.parked, found.pace) == ("shut", 1, None)
    assert found.resumes_in == pytest.approx(0.5, rel=0.2)


def test_the_declaration_of_an_upstream():
    """Values of the wrong type are refused with an example; the last use is noted."""
    for wrong in ({"name": 7}, {"vendor": 7}, {"own": 1}, {"concurrency": "2"}, {"concurrency": True}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            Upstream(**wrong)
    upstream = Upstream("shop")
    assert (upstream.own, upstream.vendor, upstream.keyed, upstream.concurrency) == (False, None, None, None)
    assert upstream.last_used == 0.0
    upstream.look(ThreadWaiter(), 7.0)
    assert upstream.last_used == 7.0
    upstream.failed(Fault(code="NOT_FOUND"), 9.0, 8.0, 0.5)
    assert upstream.last_used == 9.0
    scope = upstream.scope("seven")
    assert (scope.name, scope.service) == ("shop/seven", "shop")
    assert Upstream().scope("seven").name == "seven"
    with pytest.raises(TypeError, match="name"):
        upstream.scope(7)


def test_how_long_a_server_asked_for_no_calls():
    """The latest time that it named while it was obeyed; nothing before and after."""
    upstream = Upstream()
    assert upstream.held_for(0.0) == 0.0
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=20.0), 0.0, 0.0, 0.0)
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=5.0), 1.0, -1.0, 0.0)
    assert upstream.held_for(1.0) == pytest.approx(19.0)
    assert upstream.held_for(20.0) == 0.0
    refused = upstream.refusal(1.0)
    assert (refused.code, refused.retry_after, refused.executed) == (
        "RATE_LIMITED",
        pytest.approx(19.0),
        "no",
    )
    assert upstream.refusal(30.0).retry_after is None


def test_an_upstream_takes_two_kilobytes():
    """A process may have one for each of ten thousand tenants."""
    names = [str(number) for number in range(500)]
    kept = [None] * 500
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number, name in enumerate(names):
            kept[number] = Upstream(name)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken / len(kept) <= 2048
