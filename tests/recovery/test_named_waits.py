"""A wait that a service names is obeyed once; after the first repeat it is not shorter than our own, in every driver."""

import asyncio
from contextlib import aclosing

import pytest

from amends import FaultError, Policy, Upstream, arecover, recover
from amends.core.backoff import Backoff
from amends.errors import ServiceUnavailableError
from amends.recovery import arecover_stream, attempts, recover_stream, recovering
from amends.testing import Script

POLICY = Policy(backoff=Backoff(spread=0.0))


def unavailable():
    """A failure whose sender says: again at once."""
    return ServiceUnavailableError(retry_after=0, executed="no")


class Starts:
    """A call that always fails and notes when it was made."""

    def __init__(self, clock):
        self.clock, self.times = clock, []

    def __call__(self):
        self.times.append(self.clock.now())
        raise unavailable()

    async def awaited(self):
        self()

    @property
    def waits(self):
        return [later - sooner for sooner, later in zip(self.times, self.times[1:], strict=False)]


def plain(call, **options):
    recover(call, **options)


def awaited(call, **options):
    asyncio.run(arecover(call.awaited, **options))


def decorated(call, **options):
    recovering(**options)(lambda: call())()


def looped(call, **options):
    for attempt in attempts(**options):
        with attempt:
            call()


def streamed(call, **options):
    def source():
        call()
        yield 1

    list(recover_stream(source, **options))


def astreamed(call, **options):
    async def source():
        call()
        yield 1

    async def main():
        async with aclosing(arecover_stream(source, **options)) as items:
            async for _ in items:
                pass

    asyncio.run(main())


DRIVERS = [plain, awaited, decorated, looped, streamed, astreamed]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("shared", [False, True])
def test_a_wait_of_0_does_not_spend_all_tries_at_once(clock, driver, shared):
    """The first repeat comes at once, as the service says; the next ones after 2, 4 and 8 s, as without a hint."""
    call = Starts(clock)
    with pytest.raises(FaultError) as caught:
        driver(call, policy=POLICY, upstream=Upstream("shop") if shared else None)
    assert caught.value.decision.reason == "attempts"
    assert len(call.waits) == 4
    assert call.waits[0] < 1
    assert all(wait >= own for wait, own in zip(call.waits[1:], [2, 4, 8], strict=True))


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_callers_own_wait_is_kept(clock, driver):
    """`on` returns 0: the user says that every repeat comes at once."""
    call = Starts(clock)
    with pytest.raises(FaultError):
        driver(call, policy=POLICY, on=lambda error: 0)
    assert call.waits == [0, 0, 0, 0]


def test_a_success_after_a_wait_of_0(clock):
    """A service that needs one repeat at once gets it at once."""
    call = Script(unavailable(), "done")
    assert recover(call, policy=POLICY) == "done"
    assert clock.waited == 0
