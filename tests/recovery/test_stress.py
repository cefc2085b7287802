"""
Many threads and tasks against one upstream, with injected failures, in real time.

Invariants: no operation makes more calls than its policy allows, the budget is never overdrawn, no call stays
parked, the counters agree at the end, and the run ends. A watchdog prints every stack if it does not.
"""

import asyncio
import faulthandler
import random
import sys
import threading
import time
from collections import Counter

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream, arecover, recover
from amends.errors import RateLimitedError, ServiceUnavailableError, UnauthenticatedError
from amends.errors import TimeoutError as TimedOut
from amends.recovery import schedule
from amends.recovery.clock import CLOCK
from amends.recovery.quota import Quota

READ = Operation(name="read", read_only=True)
# The default constants, about a hundred times as fast.
FAST = {"FIRST_PLAIN": 0.005, "CAP_PLAIN": 0.05, "FIRST_SILENT": 0.02, "CAP_SILENT": 0.05, "LEAST_CAP": 0.05}
QUOTA = (1.5, 300.0, 30.0)
ATTEMPTS = 4


class Service:
    """A service that fails by chance, completely for a while, with hints, and with expired credentials."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.lock = threading.Lock()
        self.calls = Counter()
        self.renewals = 0
        self.token = self.valid = 0
        self.renewed = -100.0
        self.began = time.monotonic()

    def answer(self, name):
        """Answer one call: raise, or return its name."""
        with self.lock:
            self.calls[name] += 1
            chance = self.dice.random()
            if chance > 0.999 and time.monotonic() - self.renewed > 2.0:
                self.valid += 1
                self.renewed = time.monotonic()
            token_is_good = self.token == self.valid
        if not token_is_good:
            raise UnauthenticatedError
        phase = (time.monotonic() - self.began) % 0.5
        if 0.2 < phase < 0.3 or chance < 0.05:
            raise ServiceUnavailableError
        if chance < 0.06:
            raise RateLimitedError(retry_after=0.01)
        if chance < 0.07:
            raise TimedOut
        if chance < 0.08:
            raise KeyError(name)
        return name

    def refresh(self):
        """Renew the credentials."""
        with self.lock:
            self.renewals += 1
            self.token = self.valid


@pytest.fixture
def watched(monkeypatch):
    """Dump the stack of every thread and end the process if a test hangs."""
    for name, value in FAST.items():
        monkeypatch.setattr(schedule, name, value)
    faulthandler.dump_traceback_later(110, exit=True, file=sys.__stderr__)
    # Sleeps are a hundred times shorter.
    with CLOCK.using(sleep=lambda s: time.sleep(s / 100), asleep=lambda s: asyncio.sleep(s / 100)):
        yield
    faulthandler.cancel_dump_traceback_later()


def check(service, upstream, results, operations):
    """Assert the invariants at the end of a run."""
    assert sum(results.values()) == operations
    assert results["too many"] == 0
    assert max(service.calls.values()) <= ATTEMPTS
    snapshot = upstream.snapshot()
    assert snapshot.parked == 0
    assert snapshot.calls == sum(service.calls.values())
    elapsed = time.monotonic() - service.began
    per_success, per_second, saved = QUOTA
    earned = saved + per_success * snapshot.calls + per_second * elapsed
    assert 0 <= snapshot.repeats <= earned
    assert snapshot.repeats_left >= 0
    assert not upstream.renewal.leading
    assert not upstream.renewal.waiters
    assert results["ok"] > operations * 0.8


def run_threads(threads, each):
    """Run `threads` threads with `each` operations per thread."""
    service = Service(seed=threads)
    upstream = Upstream("stress", refresh=service.refresh)
    upstream._quota = Quota(*QUOTA)
    results, lock = Counter(), threading.Lock()
    policy = Policy(attempts=ATTEMPTS, max_wait=120.0)

    def slowly(name):
        time.sleep(0.001)
        return service.answer(name)

    def work(number):
        for index in range(each):
            name = (number, index)
            try:
                recover(slowly, name, upstream=upstream, operation=READ, policy=policy)
                outcome = "ok"
            except FaultError as error:
                outcome = error.decision.reason if len(error.history) <= ATTEMPTS else "too many"
            with lock:
                results[outcome] += 1

    crowd = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(threads)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(100)
        assert not thread.is_alive(), "deadlock"
    check(service, upstream, results, threads * each)


async def run_tasks(tasks, each):
    """Run `tasks` tasks with `each` operations per task."""
    service = Service(seed=tasks)
    upstream = Upstream("stress", refresh=service.refresh)
    upstream._quota = Quota(*QUOTA)
    results = Counter()
    policy = Policy(attempts=ATTEMPTS, max_wait=120.0)

    async def call(name):
        await asyncio.sleep(0.001)
        return service.answer(name)

    async def work(number):
        for index in range(each):
            try:
                await arecover(call, (number, index), upstream=upstream, operation=READ, policy=policy)
                results["ok"] += 1
            except FaultError as error:
                results[error.decision.reason if len(error.history) <= ATTEMPTS else "too many"] += 1

    async with asyncio.timeout(100):
        await asyncio.gather(*(work(number) for number in range(tasks)))
    check(service, upstream, results, tasks * each)


def test_sixty_four_threads(watched):
    """64 threads with 40 operations each."""
    run_threads(64, 40)


async def test_three_hundred_tasks(watched):
    """300 tasks with 6 operations each."""
    await run_tasks(300, 6)


def test_threads_and_loops_at_once(watched):
    """Three event loops and eight threads use one upstream; some tasks are cancelled."""
    service = Service(seed=5)
    upstream = Upstream("mixed", refresh=service.refresh)
    upstream._quota = Quota(*QUOTA)
    policy = Policy(attempts=ATTEMPTS, max_wait=120.0)
    done = Counter()

    async def call(name):
        await asyncio.sleep(0.001)
        return service.answer(name)

    async def one(name):
        try:
            await arecover(call, name, upstream=upstream, operation=READ, policy=policy)
        except FaultError:
            pass

    async def many(number):
        tasks = [asyncio.create_task(one((number, index))) for index in range(60)]
        await asyncio.sleep(0.01)
        for task in tasks[::7]:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        done[number] += sum(not isinstance(result, Exception) for result in ended)

    def plainly(number):
        for index in range(20):
            try:
                recover(service.answer, (number, index), upstream=upstream, operation=READ, policy=policy)
            except FaultError:
                pass
            done[number] += 1

    crowd = [threading.Thread(target=lambda n=n: asyncio.run(many(n)), daemon=True) for n in range(3)]
    crowd += [threading.Thread(target=plainly, args=(n,), daemon=True) for n in range(10, 18)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(100)
        assert not thread.is_alive(), "deadlock"
    assert sum(done.values()) == 3 * 60 + 8 * 20
    assert max(service.calls.values()) <= ATTEMPTS
    assert upstream.snapshot().parked == 0


async def test_two_thousand_parked_calls_drain(watched):
    """They wait until the hint has passed, and then all succeed."""
    await parked_calls_drain(2_000)


async def parked_calls_drain(count):
    """Park `count` calls behind one hint, and wait until all have succeeded."""
    upstream = Upstream("parked")
    now = CLOCK.now()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=0.3 + count / 20_000), now, now, 0.0)

    async def call():
        return 1

    tasks = [asyncio.create_task(arecover(call, upstream=upstream)) for _ in range(count)]
    await asyncio.sleep(0.1)
    while upstream.snapshot().parked < count and upstream.snapshot().state == "held":
        await asyncio.sleep(0.05)
    assert sum(await asyncio.gather(*tasks)) == count
    assert upstream.snapshot().parked == 0


@pytest.mark.soak
def test_sixty_four_threads_for_long(watched):
    """64 threads with 150 operations each."""
    run_threads(64, 150)


@pytest.mark.soak
async def test_ten_thousand_tasks(watched):
    """10,000 tasks with 2 operations each."""
    await run_tasks(10_000, 2)


@pytest.mark.soak
async def test_a_hundred_thousand_parked_calls(watched, caplog):
    """They take less than 800 MB of memory, and all succeed."""
    import resource

    # pytest keeps every record that it captures, and each of these calls logs that it waits.
    caplog.set_level("CRITICAL", logger="amends.recovery")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await parked_calls_drain(100_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 800_000  # kilobytes
