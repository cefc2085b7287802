"""Tests of the decorator `recovering`."""

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
    """Options that make the first call direct, and options that need a flow."""
    chosen = dict(request.param)
    if chosen.get("upstream"):
        chosen["upstream"] = Upstream()
    return chosen


def test_a_plain_function_is_retried(options, clock):
    """The call gets its arguments; the function keeps its name, docstring and signature."""
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


def test_an_async_function_is_retried(options, clock):
    """The decorated function stays a coroutine function."""
    script = Script(LIMITED, "page", "again")

    @recovering(**options)
    async def fetch(url: str) -> str:
        return script(url)

    async def main():
        return await fetch("u"), await fetch("v")

    assert inspect.iscoroutinefunction(fetch)
    assert asyncio.run(main()) == ("page", "again")


def test_the_decorator_works_without_parentheses(clock):
    """`@recovering` alone uses the default policy."""

    @recovering
    def fetch():
        return 1

    assert fetch() == 1


def test_events_have_the_name_of_the_function(clock, seen):
    """The function's name is used if the operation has none."""
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
    """`keyed=True` in the decorator makes a new key for each call."""
    keys = []

    @recovering(operation=Operation(keyed=True))
    def pay():
        keys.append(current_operation().key)

    pay()
    pay()
    assert len(set(keys)) == 2


def test_objects_with_an_async_call_are_awaited(clock):
    """Objects with an async `__call__` and partials of async functions are async."""

    class Client:
        async def __call__(self):
            return 1

    async def add(one, two):
        return one + two

    assert asyncio.run(recovering(Client())()) == 1
    assert asyncio.run(recovering(partial(add, 1))(2)) == 3


def test_a_generator_cannot_be_decorated():
    """The decorator raises TypeError, because a generator's body runs after the call."""

    def pages():
        yield 1

    async def apages():
        yield 1

    for function in (pages, apages):
        with pytest.raises(TypeError, match="generator"):
            recovering(function)


@pytest.mark.parametrize("shared", [False, True])
def test_interrupts_pass_and_failures_are_fault_errors(clock, shared):
    """KeyboardInterrupt and cancellation pass unchanged; other failures are raised as FaultError."""
    options = {"upstream": Upstream()} if shared else {}
    with pytest.raises(KeyboardInterrupt):
        recovering(**options)(lambda: Script(KeyboardInterrupt())())()
    with pytest.raises(FaultError):
        recovering(**options)(lambda: Script(Fault(code="NOT_FOUND"))())()

    @recovering(**options)
    async def hang(called):
        called.set()
        await asyncio.sleep(60)

    async def main():
        called = asyncio.Event()
        task = asyncio.create_task(hang(called))
        await called.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_plain_function_that_returns_a_coroutine_is_refused(clock):
    """The error asks for the async function to be decorated."""

    async def fetch():
        return 1

    with pytest.raises(TypeError, match="async"):
        recovering(lambda: fetch())()


def test_a_decorated_call_waits_for_its_upstream(clock):
    """A decorated call, plain or async, waits while its upstream is held."""
    for is_async in (False, True):
        upstream = Upstream()
        upstream.failed(LIMITED, clock.now(), clock.now(), 0.0)
        decorate = recovering(upstream=upstream)
        if is_async:
            assert asyncio.run(decorate(Script("x").acall)()) == "x"
        else:
            assert decorate(Script("x"))() == "x"
    assert clock.waits[0] == 1.5
