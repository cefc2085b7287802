"""Effects and clocks: a step of the wall clock, and a worker that was stopped for longer than its lease and continues."""

import asyncio
import threading
from typing import ClassVar

import httpx
import pytest

from amends import stores
from amends.bindings.httpx import Transport
from amends.effects import Effects
from amends.effects.errors import EffectRunningError
from amends.errors import ConflictError, ServiceUnavailableError
from amends.recovery import TOOL
from amends.recovery.effect_context import check_time_limit, running_as
from amends.recovery.scope import tool_call
from amends.testing import FakeClock
from tests.stores.clocks import SetClock


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path, clock):
    Shop.bank.clear()
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/e.db"
    async with await stores.open(url, clock=clock) as opened:
        yield opened


class Shop:
    """A payment that can be held before it happens, as a process that is stopped there."""

    bank: ClassVar[list[int]] = []

    def __init__(self, effects, **options):
        self.verified = 0
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

        async def verify(order):
            self.verified += 1
            return "receipt" if self.bank else False

        async def pay(order):
            self.reached.set()
            await self.go_on.wait()
            check_time_limit()
            self.bank.append(order)
            return "receipt"

        self.pay = effects.once(key="order", name="pay", verify=verify, **options)(pay)


async def test_a_step_of_the_wall_clock_does_not_pay_twice(store, clock):
    """The second call waits for the first one; `verify` is not asked beside it."""
    async with Effects(store, wait=0.2) as effects:
        shop = Shop(effects)
        first = asyncio.create_task(shop.pay(1))
        await shop.reached.wait()
        for step in (60.0, 86_400.0, -2 * 86_400.0):
            clock.now += step
            with pytest.raises(EffectRunningError):
                await shop.pay(1)
        shop.go_on.set()
        assert await first == "receipt"
        assert (shop.bank, shop.verified) == ([1], 0)


async def test_a_stopped_worker_that_continues_pays_nothing(store, clock):
    """Before its time limit, another caller does not run; after it, the stopped worker sends nothing."""
    async with Effects(store, wait=0.2) as effects:
        stopped = Shop(effects)
        other = Shop(effects)
        lost = asyncio.create_task(stopped.pay(1))
        await stopped.reached.wait()
        clock.up += 40
        other.go_on.set()
        with pytest.raises(EffectRunningError, match="may have it for another 20 seconds") as waiting:
            await other.pay(1)
        assert 19 < waiting.value.fault.retry_after <= 21
        assert (other.verified, other.bank) == (1, [])
        with pytest.raises(ConflictError, match="may still act"):
            await effects.averify("pay:1", happened=False)
        clock.up += 21
        assert await other.pay(1) == "receipt"
        stopped.go_on.set()
        assert await lost == "receipt"
        assert Shop.bank == [1]


async def test_a_payment_of_the_lost_call_is_believed_at_once(store, clock):
    """`verify` that finds the effect needs no time limit."""
    async with Effects(store, wait=0.2) as effects:
        stopped = Shop(effects)
        lost = asyncio.create_task(stopped.pay(1))
        await stopped.reached.wait()
        Shop.bank.append(1)
        clock.up += 31
        assert await stopped.pay(1) == "receipt"
        lost.cancel()


async def test_a_caller_waits_for_the_end_of_a_short_time_limit(store, clock):
    """`timeout=` sets the limit; a caller with the patience for it waits, and `verify` is asked again after it."""
    async with Effects(store, wait=60) as effects:
        stopped, other = Shop(effects, timeout=31.2), Shop(effects)
        lost = asyncio.create_task(stopped.pay(1))
        await stopped.reached.wait()
        clock.up += 31
        other.go_on.set()
        waiting = asyncio.create_task(other.pay(1))
        while not other.verified:
            await asyncio.sleep(0.01)
        clock.up += 1
        assert await waiting == "receipt"
        assert (other.verified, other.bank) == (2, [1])
        lost.cancel()


async def test_our_clients_send_nothing_after_the_time_limit():
    """The request is refused before it is sent; an earlier one of the effect may have happened."""
    sent = []

    def answer(request):
        sent.append(request)
        return httpx.Response(200)

    httpx = pytest.importorskip("httpx")
    transport = Transport(httpx.MockTransport(answer))
    with httpx.Client(transport=transport) as client:
        left = [5.0]
        with running_as("pay:1", "pay:1", lambda: left[0]):
            assert client.post("http://shop.example/pay").status_code == 200
            left[0] = 0.0
            with pytest.raises(TimeoutError, match="time limit of the effect 'pay:1' is over") as late:
                client.post("http://shop.example/pay")
    assert len(sent) == 1
    assert late.value.fault.executed == "maybe"


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionResetError(), httpx.ReadTimeout("late")])
async def test_a_call_without_an_answer_may_still_be_acted_on(store, clock, error):
    """A service that is slower than the caller's patience pays after `verify` looked: no second call before the time limit."""
    bank, calls = [], []

    async def pay(order):
        calls.append(order)
        raise error

    async with Effects(store, wait=0) as effects:
        once = effects.once(key="order", name="pay", verify=lambda order: "receipt" if bank else False)(pay)
        with pytest.raises(EffectRunningError) as early:
            await once(1)
        assert early.value.fault.retry_after == pytest.approx(60, abs=1)
        with pytest.raises(EffectRunningError):
            await once(1)
        bank.append(1)
        assert await once(1) == "receipt"
        assert calls == [1]


async def test_what_an_answer_shows_is_believed_at_once(store, clock):
    """After an answer, whatever it says, and after the time limit, the next call runs."""
    calls = []

    async def pay(order):
        calls.append(order)
        raise ServiceUnavailableError() if order == 1 else TimeoutError()

    async with Effects(store, wait=0) as effects:
        once = effects.once(key="order", name="pay", timeout=5, verify=lambda order: False)(pay)
        for _ in range(2):
            with pytest.raises(ServiceUnavailableError) as failed:
                await once(1)
            assert failed.value.fault.executed == "no"
        for _ in range(2):
            with pytest.raises(EffectRunningError):
                await once(2)
            clock.up += 5
        assert calls == [1, 1, 2, 2]


def test_a_call_of_a_tool_waits_within_the_time_of_its_host(clock):
    """Inside a tool call, the wait for another call with the same key ends 55 s after the tool call began."""
    begun, end = threading.Event(), threading.Event()
    with Effects("memory:") as effects, FakeClock() as time:

        @effects.once(key="order")
        def pay(order):
            begun.set()
            end.wait(20)

        other = threading.Thread(target=pay, args=[1])
        other.start()
        begun.wait(20)
        try:
            with tool_call():
                time.advance(TOOL.ends_within - 0.1)
                with pytest.raises(EffectRunningError, match=r"after 0\.1 seconds"):
                    pay(1)
        finally:
            end.set()
            other.join()
