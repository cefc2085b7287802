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


def test_a_plain_function_that_returns_an_awaitable_is_recovered(options, clock):
    """A lambda, a method that returns a coroutine, and a function that returns a Future, with any option."""
    script = Script(LIMITED, "page", LIMITED, "again", "plain")

    async def fetch(url):
        return script(url)

    def later(url):
        return asyncio.ensure_future(fetch(url))

    async def main():
        assert await recovering(**options)(lambda url: fetch(url))("u") == "page"
        assert await recovering(**options)(later)("u") == "again"

    asyncio.run(main())
    assert script.count == 4
    assert recovering(**options)(script)() == "plain"


def test_a_plain_function_may_fail_before_it_returns_its_awaitable(clock):
    """The repeat returns the awaitable, which is recovered as well."""
    outcomes = [LIMITED, LIMITED, "page"]

    async def body(outcome):
        if isinstance(outcome, Fault):
            raise FaultError.from_fault(outcome)
        return outcome

    def fetch():
        outcome = outcomes.pop(0)
        if len(outcomes) == 2:
            raise FaultError.from_fault(outcome)
        return body(outcome)

    assert asyncio.run(recovering(upstream=None)(fetch)()) == "page"
    assert clock.waits == [1.5, 1.5]


def test_an_awaitable_that_is_cancelled(clock):
    """Cancellation passes unchanged, and the upstream stays open."""
    upstream = Upstream()

    async def hang(called):
        called.set()
        await asyncio.Event().wait()

    async def main():
        for options in ({}, {"policy": Policy(deadline=60)}):
            called = asyncio.Event()
            decorated = recovering(upstream=upstream, **options)(lambda called=called: hang(called))
            task = asyncio.ensure_future(decorated())
            await called.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert upstream.open


def test_each_function_has_an_upstream_of_its_own(clock):
    """All calls of a function share it; `upstream=` replaces it, and None gives none."""
    shared = Upstream("shared")

    @recovering
    def one():
        return 1

    @recovering(read_only=True)
    async def two():
        return 2

    assert isinstance(one.upstream, Upstream)
    assert one.upstream.name.endswith("one")
    assert one.upstream is not two.upstream
    assert one() == 1
    assert asyncio.run(two()) == 2
    assert (one.upstream.snapshot().calls, two.upstream.snapshot().calls) == (1, 1)
    decorate = recovering(upstream=shared)
    assert decorate(lambda: 1).upstream is decorate(lambda: 2).upstream is shared
    assert recovering(upstream=None)(lambda: 1).upstream is None
    reused = recovering(read_only=True)
    assert reused(lambda: 1).upstream is not reused(lambda: 2).upstream


def test_the_calls_of_a_function_obey_its_hints(clock):
    """After one call was asked to wait, the next one waits as well."""
    script = Script(Fault(code="RATE_LIMITED", retry_after=3), "late", "later")
    fetch = recovering(script)
    assert fetch() == "late"
    assert clock.waited >= 3


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


@pytest.mark.parametrize("kind", [classmethod, staticmethod])
def test_methods_are_decorated_below(kind):
    """The error says in which order to write the decorators."""
    with pytest.raises(TypeError, match=f"write @{kind.__name__} above @recovering"):
        recovering(kind(print))


def test_what_is_no_function_is_refused_at_once():
    """A value, and an object whose call is a generator."""

    class Lines:
        def __call__(self):
            yield 1

    with pytest.raises(TypeError, match="recovering decorates a function, not int"):
        recovering(3)
    with pytest.raises(TypeError, match="recover_stream"):
        recovering(Lines())
