"""A repeat on purpose that fails: the effect that was done before stays in the ledger."""

import asyncio

import pytest

from amends.durable.batch import wait_for_background
from amends.effects import AlreadyDoneError, Effects, InDoubtError
from amends.errors import RateLimitedError, ServiceUnavailableError
from tests.effects.simulation import Clock


class Bar:
    """Counts cups; `fail` is raised instead."""

    def __init__(self, effects, verify=None):
        self.cups, self.fail = [], None

        @effects.once(verify=verify)
        async def order(item):
            if self.fail is not None:
                raise self.fail
            self.cups.append(item)
            return len(self.cups)

        self.order = order


async def test_a_repeat_that_did_not_happen(effects):
    """The key is not free, because the first call had its effect; the same reason can be given again."""
    bar = Bar(effects)
    assert await bar.order("tea") == 1
    bar.fail = RateLimitedError("Slow down", retry_after=1)
    with pytest.raises(RateLimitedError):
        await bar.order("tea", again="for the guest")
    bar.fail = None
    with pytest.raises(AlreadyDoneError) as done:
        await bar.order("tea")
    assert done.value.outcome == 1
    assert [(each.state, each.times) for each in await effects.alist()] == [("done", 1)]
    assert await bar.order("tea", again="for the guest") == 2
    assert [(each.state, each.times, each.outcome) for each in await effects.alist()] == [("done", 2, 2)]


async def test_a_doubtful_repeat_that_a_person_answers(effects):
    """ "It did not happen" is about the repeat, not about the first call."""
    bar = Bar(effects)
    assert await bar.order("tea") == 1
    bar.fail = TimeoutError()
    with pytest.raises(InDoubtError) as doubt:
        await bar.order("tea", again="for the guest")
    bar.fail = None
    answered = await effects.averify(doubt.value.key, happened=False)
    assert (answered.state, answered.times, answered.outcome) == ("done", 1, 1)
    with pytest.raises(AlreadyDoneError):
        await bar.order("tea")
    assert bar.cups == ["tea"]
    assert await bar.order("tea", again="for the guest") == 2


@pytest.mark.parametrize("later", [False, True])
async def test_a_doubtful_repeat_that_verify_answers(effects, later):
    """`verify` finds that the repeat did not happen: at once, or when the next call asks."""
    found = [None if later else False]
    bar = Bar(effects, verify=lambda item: found[0])
    assert await bar.order("tea") == 1
    bar.fail = ServiceUnavailableError()
    with pytest.raises(Exception):  # noqa: B017 - in doubt, or the failure itself
        await bar.order("tea", again="for the guest")
    bar.fail, found[0] = None, False
    with pytest.raises(AlreadyDoneError):
        await bar.order("tea")
    assert await bar.order("tea", again="for the guest") == 2
    assert bar.cups == ["tea", "tea"]


async def test_a_repeat_that_happened(effects):
    """The answer completes the repeat."""
    bar = Bar(effects)
    await bar.order("tea")
    bar.fail = TimeoutError()
    with pytest.raises(InDoubtError) as doubt:
        await bar.order("tea", again="for the guest")
    answered = await effects.averify(doubt.value.key, happened=True, outcome=2)
    assert (answered.state, answered.times, answered.outcome) == ("done", 2, 2)
    assert await bar.order("tea") == 2


async def test_two_equal_repeats_of_which_the_first_does_not_happen(clocked):
    """The second one waited for it, and is made itself: the outcome of the first effect is not its outcome."""
    effects, clock = clocked
    cups, running, go_on = [], asyncio.Event(), asyncio.Event()

    @effects.once
    async def order(item):
        if len(cups) == 1 and not running.is_set():
            running.set()
            await go_on.wait()
            raise RateLimitedError("Slow down", retry_after=1)
        cups.append(item)
        return len(cups)

    await order("tea")
    clock.now += 60
    first = asyncio.create_task(order("tea", again="for the guest"))
    await running.wait()
    second = asyncio.create_task(order("tea", again="for the guest"))
    while not effects._waiters._waiting:
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(RateLimitedError):
        await first
    assert await second == 2
    assert len(cups) == 2


@pytest.fixture
async def clocked():
    clock = Clock()
    async with Effects("memory:", clock=clock) as effects:
        yield effects, clock


async def test_a_caller_that_is_cancelled_while_it_claims(effects, monkeypatch):
    """The call surely did not happen, so the key is free, or the effect that was done before is restored."""
    bar = Bar(effects)
    keys = await effects._handles.keys()
    acquire = keys.acquire
    claimed, answered = asyncio.Event(), asyncio.Event()

    async def slow(*args, **options):
        taken = await acquire(*args, **options)
        claimed.set()
        await answered.wait()
        return taken

    async def cancelled(**options):
        with monkeypatch.context() as patch:
            patch.setattr(keys, "acquire", slow)
            claimed.clear()
            answered.clear()
            calling = asyncio.create_task(bar.order("tea", **options))
            await claimed.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            answered.set()
            await wait_for_background()

    await cancelled()
    assert await effects.alist() == []
    assert await bar.order("tea") == 1
    await cancelled(again="for the guest")
    assert [(each.state, each.times) for each in await effects.alist()] == [("done", 1)]
    assert bar.cups == ["tea"]


def test_a_repeat_in_a_plain_function():
    """The same without event loop."""
    failing = [False]
    with Effects("memory:") as effects:

        @effects.once
        def order(item):
            if failing[0]:
                raise RateLimitedError("Slow down", retry_after=1)
            return f"one {item}"

        order("tea")
        failing[0] = True
        with pytest.raises(RateLimitedError):
            order("tea", again="for the guest")
        failing[0] = False
        with pytest.raises(AlreadyDoneError):
            order("tea")
