"""Functions that recover whenever they are called."""

import asyncio
import inspect
from functools import partial

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream
from amends.recovery import current_operation, recovering
from amends.testing import Script

READ = Operation(name="read", read_only=True)
LIMITED = Fault(code="RATE_LIMITED", retry_after=1.5)

OPTIONS = {
    "plain": {},
    "shared": {"upstream": True},
    "deadline": {"policy": Policy(deadline=60)},
    "examined": {"examine": True},
    "keyed": {"operation": Operation(keyed=True)},
}


@pytest.fixture(params=OPTIONS.values(), ids=OPTIONS.keys())
def options(request):
    """Everything that leads to a path of its own."""
    chosen = dict(request.param)
    if chosen.get("upstream"):
        chosen["upstream"] = Upstream()
    return chosen


def test_a_function_recovers(options, clock):
    """With its arguments, its name and its signature."""
    script = Script(LIMITED, "page", "again")

    @recovering(**options)
    def fetch(url: str, *, fresh: bool = False) -> str:
        """Get a page."""
        return script(url, fresh=fresh)

    assert fetch("u", fresh=True) == "page"
    assert fetch("v") == "again"
    assert script.calls[1] == (("u",), {"fresh": True})
    assert clock.waits == [1.5] or clock.waited >= 1.5
    assert (fetch.__name__, fetch.__doc__) == ("fetch", "Get a page.")
    assert list(inspect.signature(fetch).parameters) == ["url", "fresh"]


def test_an_async_function_recovers(options, clock):
    """And stays a coroutine function."""
    script = Script(LIMITED, "page", "again")

    @recovering(**options)
    async def fetch(url: str) -> str:
        return script(url)

    async def main():
        return await fetch("u"), await fetch("v")

    assert inspect.iscoroutinefunction(fetch)
    assert asyncio.run(main()) == ("page", "again")


def test_it_works_without_brackets(clock):
    """`@recovering` alone is the default policy."""

    @recovering
    def fetch():
        return 1

    assert fetch() == 1


def test_telemetry_knows_the_function_by_its_name(clock, seen):
    """Where the operation has none of its own."""
    recovering(Script(LIMITED, 1, repeat=True))()

    @recovering(operation=READ)
    def second(calls):
        return calls()

    @recovering()
    def third(calls):
        return calls()

    second(Script(LIMITED, 1))
    third(Script(LIMITED, 1))
    names = [event.operation for event in seen if event.kind == "retry"]
    assert names[0] == "Script"
    assert names[1] == "read"
    assert names[2].endswith("third")


def test_each_call_has_a_key_of_its_own(clock):
    """The operation in the decorator is a template."""
    keys = []

    @recovering(operation=Operation(keyed=True))
    def pay():
        keys.append(current_operation().key)

    pay()
    pay()
    assert len(set(keys)) == 2


def test_objects_whose_call_is_async_are_seen(clock):
    """And partial functions."""

    class Client:
        async def __call__(self):
            return 1

    async def add(one, two):
        return one + two

    assert asyncio.run(recovering(Client())()) == 1
    assert asyncio.run(recovering(partial(add, 1))(2)) == 3


def test_a_generator_cannot_be_decorated():
    """Its body runs when the call is long over."""

    def pages():
        yield 1

    async def apages():
        yield 1

    for function in (pages, apages):
        with pytest.raises(TypeError, match="generator"):
            recovering(function)


@pytest.mark.parametrize("shared", [False, True])
def test_interrupts_and_failures_pass(clock, shared):
    """A KeyboardInterrupt at once; a failure as FaultError."""
    options = {"upstream": Upstream()} if shared else {}
    with pytest.raises(KeyboardInterrupt):
        recovering(**options)(lambda: Script(KeyboardInterrupt())())()
    with pytest.raises(FaultError):
        recovering(**options)(lambda: Script(Fault(code="NOT_FOUND"))())()

    @recovering(**options)
    async def hang():
        await asyncio.sleep(60)

    async def main():
        task = asyncio.create_task(hang())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_hidden_coroutine_is_no_result(clock):
    """A plain function that returns one is decorated wrongly, and told so."""

    async def fetch():
        return 1

    with pytest.raises(TypeError, match="async"):
        recovering(lambda: fetch())()


def test_a_call_is_parked_like_any_other(clock):
    """When its upstream is held, plain and async alike."""
    for is_async in (False, True):
        upstream = Upstream()
        upstream.failed(LIMITED, clock.now(), clock.now(), 0.0)
        decorate = recovering(upstream=upstream)
        if is_async:
            assert asyncio.run(decorate(Script("x").acall)()) == "x"
        else:
            assert decorate(Script("x"))() == "x"
    assert clock.waits[0] == 1.5
