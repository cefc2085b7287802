"""`Effects`: the ledger of what agents did, so that a call that is made again does not have its effect again."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any, ParamSpec, Self, TypedDict, TypeVar, Unpack, cast, overload

from msgspec.structs import replace

from amends.core.wrong_calls import explains_wrong_calls
from amends.durable.keys import Claim, KeyRunning
from amends.effects import errors
from amends.effects.calls import AGAIN, Tool
from amends.effects.drivers import Waiters, drive, drive_plain
from amends.effects.durations import seconds
from amends.effects.flow import EffectKeys, Request, ask_about_similar, perform
from amends.effects.handles import Handles
from amends.effects.outcomes import encode_result
from amends.effects.own_transaction import run_inside, run_inside_plain
from amends.effects.records import Effect, effect_of, free
from amends.effects.similar import Similar
from amends.effects.steps import EffectStep, current_steps, restored
from amends.errors import ConflictError as NotInDoubtError
from amends.errors import NotFoundError
from amends.recovery.clock import CLOCK
from amends.recovery.effect_context import within_scope
from amends.recovery.policies import TOOL
from amends.recovery.scope import current_tool_call, time_left
from amends.stores import Clock, Store

__all__ = ["Effects", "Pending", "Scope", "decide"]

P = ParamSpec("P")
R = TypeVar("R")
Function = TypeVar("Function", bound=Callable[..., object])

TWO_DAYS = 172800.0


_WAIT = 60.0
"""Seconds that a call waits for another one with the same key, outside of tool calls."""


class Effects:
    """
    A ledger of effects in a store.

    >>> effects = Effects("memory:")
    >>> @effects.once(key="order")
    ... def pay(order: int) -> str:
    ...     print("paying")
    ...     return f"receipt {order}"
    >>> pay(17)
    paying
    'receipt 17'
    >>> pay(17)
    'receipt 17'
    """

    @explains_wrong_calls
    def __init__(
        self,
        store: Store | str,
        *,
        lease: float = 30.0,
        wait: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        """
        Args:
            store: an open store, or the URL of one: `memory:`, `sqlite:///file`, `nats://host:port/name` or
                `postgresql://user@host/database`.
            lease: seconds after which a process that does not renew its lease counts as dead.
            wait: seconds that a call waits for another one with the same key, before it raises EffectRunningError. By default 60,
                and inside a tool call of an agent what is left of 55 since it began. It never waits longer than its caller.
            clock: replaces the machine's clock in tests.

        """
        self.lease = seconds("lease", lease)
        self.wait = None if wait is None else seconds("wait", wait, least=0.0)
        self._handles = Handles(store, expires_in=TWO_DAYS, lease=self.lease, clock=clock)
        self._waiters = Waiters()
        self._now = time.time if clock is None else clock.wall
        self._tools: dict[str, tuple[str, str]] = {}
        self._prepared = False

    # -------------------------------------------------------------------------------------------------- decorating

    @overload
    def once(self, function: Function) -> Function: ...

    @overload
    def once(
        self,
        function: None = None,
        *,
        key: Callable[..., object] | str | Collection[str] | None = None,
        verify: Callable[..., object] | None = None,
        expires_in: float | timedelta = TWO_DAYS,
        similar: Similar | float | timedelta | None = None,
        name: str | None = None,
        ignore: Collection[str] = (),
        direct: bool = False,
        transaction: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> Callable[[Function], Function]: ...

    @explains_wrong_calls
    def once(
        self,
        function: Function | None = None,
        *,
        key: Callable[..., object] | str | Collection[str] | None = None,
        verify: Callable[..., object] | None = None,
        expires_in: float | timedelta = TWO_DAYS,
        similar: Similar | float | timedelta | None = None,
        name: str | None = None,
        ignore: Collection[str] = (),
        direct: bool = False,
        transaction: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> Function | Callable[[Function], Function]:
        """
        Decorate a function or coroutine function, so that each key has its effect once.

        Args:
            function: the function, if the decorator is used without options.
            key: the arguments that identify the effect: a name, several names, or a function of the arguments. Without it
                the key is derived from the scope, the function's name and all arguments.
            verify: called with the same arguments if the outcome is not known. Returns the result, or True, if the effect
                happened; False if it did not; None if that is not known.
            expires_in: seconds until a finished effect is forgotten. An effect in doubt is never forgotten.
            similar: ask before a call that is nearly identical to one of the last so many seconds.
            name: the name in the ledger, if it differs from the function's.
            ignore: arguments that are no part of the call, such as a connection.
            direct: the function makes one request to a service and nothing else, so that the service's evidence about the
                effect counts.
            transaction: the argument that is a psycopg 3 connection or a SQLAlchemy session to the ledger's Postgres
                database: the record is written in its transaction, together with the effect.
            timeout: seconds from the begin of a call in which it can have its effect; 60 if it is not given. If the process
                is lost, `verify` is not believed before their end when it says that the effect did not happen. The function
                is not cancelled, but our clients send nothing more for it after that time.

        """

        def decorate(decorated: Function) -> Function:
            tool = Tool(
                self._register(decorated, name),
                key=key,
                verify=verify,
                expires_in=expires_in,
                similar=similar,
                ignore=ignore,
                direct=direct,
                function=decorated,
                transaction=transaction,
                timeout=timeout,
            )
            return self._wrap(decorated, tool)

        return decorate if function is None else decorate(function)

    def _register(self, function: object, name: str | None) -> str:
        """Return the function's name in the ledger. Two functions must not share one."""
        module, path = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
        chosen = name or getattr(function, "__name__", "")
        if not chosen:
            raise TypeError("give the name of this function in the ledger: once(name=...)")
        known = self._tools.setdefault(chosen, (module, path))
        if known != (module, path) and "<locals>" not in known[1] + path:
            raise ValueError(
                f"the ledger has another function {chosen!r}, {known[0]}.{known[1]}: give this one a name of its own"
            )
        return chosen

    def _wrap(self, function: Function, tool: Tool) -> Function:
        if tool.transaction is not None and not self._handles.in_postgres:
            raise TypeError(
                'transaction= needs a ledger in Postgres: Effects("postgresql://user@host/database")'
            )
        if tool.transaction is not None and self._handles.codec is not None:
            raise TypeError(
                "transaction= writes the record with your own connection, which no codec encodes: leave one of the two out"
            )
        if isinstance(function, classmethod | staticmethod):
            raise TypeError(f"write @{type(function).__name__} above @effects.once, not below it")
        if isinstance(function, type):
            raise TypeError(f"once takes functions and coroutine functions; {function.__name__} is a class")
        decorated: Any = function  # plain or a coroutine function, which the types do not tell
        wrapper: Any
        named = inspect.isroutine(function) or isinstance(function, functools.partial)
        called = function if named else type(function).__call__
        if inspect.iscoroutinefunction(called):

            @functools.wraps(function)
            async def once(*args: object, **kwargs: object) -> object:
                again = None if tool.takes_again else kwargs.pop(AGAIN, None)
                return await self._run(tool, args, kwargs, lambda: decorated(*args, **kwargs), again=again)

            wrapper = once
            return wrapper  # type: ignore[no-any-return]
        if inspect.isasyncgenfunction(called) or inspect.isgeneratorfunction(called):
            raise TypeError("once takes functions and coroutine functions; a generator has no single outcome")

        @functools.wraps(function)
        def once_plain(*args: object, **kwargs: object) -> object:
            again = None if tool.takes_again else kwargs.pop(AGAIN, None)
            return self._run_plain(tool, args, kwargs, lambda: decorated(*args, **kwargs), again=again)

        wrapper = once_plain
        return wrapper  # type: ignore[no-any-return]

    # ---------------------------------------------------------------------------------------------------- calling

    async def acall(
        self,
        name: str,
        call: Callable[[], Awaitable[R]],
        arguments: Mapping[str, object],
        *,
        key: str | None = None,
        scope: str | None = None,
        again: object = None,
        verify: Callable[[], object] | None = None,
        expires_in: float | timedelta = TWO_DAYS,
        similar: Similar | float | timedelta | None = None,
        direct: bool = False,
        timeout: float | timedelta | None = None,  # noqa: ASYNC109 - it cancels nothing
    ) -> R:
        """
        Make a call that is no decorated function, once: for bindings.

        Args:
            name: the tool.
            call: makes the call.
            arguments: the arguments by name, from which the key is derived.
            key: the key, if the caller has one.
            scope: replaces the scope of the context.
            again: the reason for doing it once more, a text.
            verify: finds out whether the effect happened; see `once`.
            expires_in: seconds until a finished effect is forgotten.
            similar: as in `once`.
            direct: as in `once`.
            timeout: as in `once`.

        """
        tool = Tool(
            name, verify=verify, expires_in=expires_in, similar=similar, direct=direct, timeout=timeout
        )
        result = await self._run(tool, (), arguments, call, again=again, key=key, scope=scope, verify=verify)
        return cast("R", result)

    def call(
        self,
        name: str,
        call: Callable[[], R],
        arguments: Mapping[str, object],
        *,
        key: str | None = None,
        scope: str | None = None,
        again: object = None,
        verify: Callable[[], object] | None = None,
        expires_in: float | timedelta = TWO_DAYS,
        similar: Similar | float | timedelta | None = None,
        direct: bool = False,
        timeout: float | timedelta | None = None,
    ) -> R:
        """
        As `acall`, for a plain function.

        >>> Effects("memory:").call("pay", lambda: "receipt 17", {"order": 17}, key="17")
        'receipt 17'
        """
        tool = Tool(
            name, verify=verify, expires_in=expires_in, similar=similar, direct=direct, timeout=timeout
        )
        result = self._run_plain(tool, (), arguments, call, again=again, key=key, scope=scope, verify=verify)
        return cast("R", result)

    async def _run(
        self,
        tool: Tool,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        call: Callable[[], Awaitable[object]],
        *,
        again: object = None,
        key: str | None = None,
        scope: str | None = None,
        verify: Callable[[], object] | None = None,
    ) -> object:
        request = tool.request(
            args, kwargs, now=self._now, wait=self._patience(), again=again, key=key, scope=scope
        )
        if verify is None and tool.verify is not None:
            verify = functools.partial(tool.verify, *args, **kwargs)
        made = functools.partial(_acall_once, call)
        keys = await self._open()
        if tool.transaction is not None:
            await drive(ask_about_similar(request), keys, self._waiters, made, None)
            return await run_inside(request, tool.connection(args, kwargs), made)
        step = _step_of(request)
        if step is not None and step.ended is not None:
            return restored(step.ended, request.returns)
        try:
            result = await drive(perform(request), keys, self._waiters, made, verify)
        except Exception as error:
            if step is not None:
                step.fail(error)
            raise
        if step is not None:
            step.end(result)
        return result

    def _run_plain(
        self,
        tool: Tool,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        call: Callable[[], object],
        *,
        again: object = None,
        key: str | None = None,
        scope: str | None = None,
        verify: Callable[[], object] | None = None,
    ) -> object:
        request = tool.request(
            args, kwargs, now=self._now, wait=self._patience(), again=again, key=key, scope=scope
        )
        if verify is None and tool.verify is not None:
            verify = functools.partial(tool.verify, *args, **kwargs)
        made = functools.partial(_call_once, call)
        if tool.transaction is not None:
            if not self._prepared:
                # Opening the ledger creates its table.
                self._handles.run(lambda keys: keys.get(""))
                self._prepared = True
            drive_plain(ask_about_similar(request), self._handles, self._waiters, made, None)
            return run_inside_plain(request, tool.connection(args, kwargs), made)
        step = _step_of(request)
        if step is not None and step.ended is not None:
            return restored(step.ended, request.returns)
        try:
            result = drive_plain(perform(request), self._handles, self._waiters, made, verify)
        except Exception as error:
            if step is not None:
                step.fail(error)
            raise
        if step is not None:
            step.end(result)
        return result

    def _patience(self) -> float:
        """Return the seconds for which a call may wait for another one."""
        wait, tool, left = self.wait, current_tool_call(), time_left()
        if wait is None:
            wait = _WAIT
            if tool is not None and TOOL.ends_within is not None:
                took = 0.0 if tool.started is None else CLOCK.now() - tool.started
                wait = min(wait, max(0.0, TOOL.ends_within - took))
        return wait if left is None else min(wait, left)

    async def _open(self) -> EffectKeys:
        try:
            return await self._handles.keys()
        except Exception as error:
            raise errors.unavailable() from error

    # ------------------------------------------------------------------------------------------------------ scopes

    def scope(self, name: str) -> Scope:
        """
        Return the ledger with a scope for derived keys: a context manager, and a decorator of its own.

        >>> effects = Effects("memory:")
        >>> @effects.once
        ... def order(item: str) -> str:
        ...     return f"ordered {item}"
        >>> with effects.scope("task-42"):
        ...     order("tea")
        'ordered tea'
        >>> with effects.scope("task-43"):
        ...     order("tea")
        'ordered tea'
        """
        return Scope(self, name)

    # --------------------------------------------------------------------------------------------------- questions

    def pending(self) -> Pending:
        """
        Return the effects in doubt: iterate over it, or await it in a coroutine.

        >>> list(Effects("memory:").pending())
        []
        """
        return Pending(self)

    async def _effects(self, *, doubt_only: bool) -> list[Effect]:
        keys = await self._open()
        return await _list(keys, doubt_only=doubt_only)

    async def alist(self) -> list[Effect]:
        """Return all effects in the ledger, the newest first."""
        return await self._effects(doubt_only=False)

    def list(self) -> list[Effect]:
        """As `alist`, for a plain function."""
        return self._handles.run(functools.partial(_list, doubt_only=False))

    async def aget(self, key: str) -> Effect | None:
        """Return one effect by its name in the ledger, or None."""
        return await _get(await self._open(), key)

    def get(self, key: str) -> Effect | None:
        """
        As `aget`, for a plain function.

        >>> Effects("memory:").get("pay:17") is None
        True
        """
        return self._handles.run(lambda keys: _get(keys, key))

    async def averify(self, key: str, *, happened: bool, outcome: object = None) -> Effect | None:
        """
        Answer the question of an effect in doubt.

        Args:
            key: its name in the ledger.
            happened: True if it happened: the next call gets the outcome. False if it did not: the next call runs.
            outcome: the result of the call, if it happened.

        Returns:
            The effect; None if it did not happen, and its key is free. If the doubt was about a repeat (`again`) that did
            not happen, the effect that was done before.

        Raises:
            NotFoundError: there is no effect of this name.
            ConflictError: it is not in doubt; or it "did not happen", but the lost call may still act.

        """
        return await decide(await self._open(), key, happened, outcome, self._now)

    def verify(self, key: str, *, happened: bool, outcome: object = None) -> Effect | None:
        """As `averify`, for a plain function."""
        return self._handles.run(lambda keys: decide(keys, key, happened, outcome, self._now))

    # ----------------------------------------------------------------------------------------------------- closing

    async def aclose(self) -> None:
        """Close the ledger's connections to its store on this event loop, and those of plain functions."""
        await self._handles.aclose()

    def close(self) -> None:
        """Close the ledger's connections of plain functions."""
        self._handles.close()

    async def __aenter__(self) -> Self:
        """Return the ledger."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.aclose()

    def __enter__(self) -> Self:
        """Return the ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _step_of(request: Request) -> EffectStep | None:
    """
    Return the step that this call is in the run of an agent with durable steps; None outside of one.

    An agent that is started again makes the same calls again. What the ledger has delivered to an earlier start is then
    handed out, which a second call in one start is not.
    """
    steps = current_steps()
    if steps is None:
        return None
    step = steps.effect(request.name, request.again, request.fresh.fingerprint)
    request.replays = step.hands_out
    if step.ended is None:
        step.begin()
    return step


def _call_once(call: Callable[[], R]) -> R:
    return _only_outcome(call())


async def _acall_once(call: Callable[[], Awaitable[R]]) -> R:
    return _only_outcome(await call())


def _only_outcome(result: R) -> R:
    """Return a result. Raises TypeError if the effect would happen after the record says that it did."""
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError(
            f"the function returned a {type(result).__name__}, which is no outcome: return what it produces"
        )
    return result


class OnceOptions(TypedDict, total=False):
    """The options of `Effects.once`."""

    key: Callable[..., object] | str | Collection[str] | None
    verify: Callable[..., object] | None
    expires_in: float | timedelta
    similar: Similar | float | timedelta | None
    ignore: Collection[str]
    direct: bool
    transaction: str | None
    timeout: float | timedelta | None


class CallOptions(TypedDict, total=False):
    """The options of `Effects.call`."""

    key: str | None
    again: object
    verify: Callable[[], object] | None
    expires_in: float | timedelta
    similar: Similar | float | timedelta | None
    direct: bool
    timeout: float | timedelta | None


class Scope:
    """
    A scope for derived keys.

    Inside the context, every call of a decorated function gets it. A function decorated with its `once` always has it.

    >>> task = Effects("memory:").scope("task-42")
    >>> task.call("pay", lambda: "paid", {"order": 17})
    'paid'
    """

    def __init__(self, effects: Effects, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a scope is text, not {type(name).__name__}")
        self.effects, self.name = effects, name
        self._entered: list[AbstractContextManager[None]] = []

    @overload
    def once(self, function: Function) -> Function: ...

    @overload
    def once(
        self, function: None = None, *, name: str | None = None, **options: Unpack[OnceOptions]
    ) -> Callable[[Function], Function]: ...

    def once(
        self, function: Function | None = None, *, name: str | None = None, **options: Unpack[OnceOptions]
    ) -> Function | Callable[[Function], Function]:
        """As `Effects.once`, with this scope."""

        def decorate(decorated: Function) -> Function:
            chosen = self.effects._register(decorated, name)  # noqa: SLF001 - one module
            tool = Tool(chosen, function=decorated, scope=self.name, **options)
            return self.effects._wrap(decorated, tool)  # noqa: SLF001

        return decorate if function is None else decorate(function)

    def call(
        self,
        name: str,
        call: Callable[[], R],
        arguments: Mapping[str, object],
        **options: Unpack[CallOptions],
    ) -> R:
        """As `Effects.call`, with this scope."""
        return self.effects.call(name, call, arguments, scope=self.name, **options)

    async def acall(
        self,
        name: str,
        call: Callable[[], Awaitable[R]],
        arguments: Mapping[str, object],
        **options: Unpack[CallOptions],
    ) -> R:
        """As `Effects.acall`, with this scope."""
        return await self.effects.acall(name, call, arguments, scope=self.name, **options)

    def __enter__(self) -> Self:
        """Set the scope of the current context."""
        context = within_scope(self.name)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the scope that was set before."""
        self._entered.pop().__exit__(kind, error, trace)

    async def __aenter__(self) -> Self:
        """As `with`."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `with`."""
        self.__exit__(kind, error, trace)


class Pending(Sequence[Effect]):
    """
    The effects in doubt, from `Effects.pending()`: read when they are first needed; await it in a coroutine.

    >>> effects = Effects("memory:")
    >>> @effects.once(key="order")
    ... def pay(order: int) -> str:
    ...     raise ConnectionResetError
    >>> try:
    ...     pay(17)
    ... except errors.InDoubtError:
    ...     [effect.key for effect in effects.pending()]
    ['pay:17']
    """

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._found: list[Effect] | None = None

    def _read(self) -> list[Effect]:
        if self._found is None:
            self._found = self._effects._handles.run(functools.partial(_list, doubt_only=True))  # noqa: SLF001
        return self._found

    def __await__(self) -> Generator[object, None, list[Effect]]:
        return self._effects._effects(doubt_only=True).__await__()  # noqa: SLF001

    async def __aiter__(self) -> AsyncIterator[Effect]:
        for each in await self:
            yield each

    def __iter__(self) -> Iterator[Effect]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    @overload
    def __getitem__(self, index: int) -> Effect: ...

    @overload
    def __getitem__(self, index: slice) -> list[Effect]: ...

    def __getitem__(self, index: int | slice) -> Effect | list[Effect]:
        return self._read()[index]

    def __repr__(self) -> str:
        return repr(self._read())


async def _list(keys: EffectKeys, *, doubt_only: bool) -> list[Effect]:
    found = [
        (record.started, effect_of(name, record))
        async for name, record in keys.scan()
        if not doubt_only or record.state == "doubt"
    ]
    found.sort(key=lambda pair: pair[0], reverse=True)
    return [effect for _, effect in found]


async def _get(keys: EffectKeys, name: str) -> Effect | None:
    record = await keys.get(name)
    return None if record is None else effect_of(name, record)


async def decide(
    keys: EffectKeys, name: str, happened: bool, outcome: object, now: Callable[[], float]
) -> Effect | None:
    """Answer the question of an effect in doubt; see `Effects.averify`."""
    record = await keys.get(name)
    if record is None:
        raise NotFoundError(f"the ledger has no effect {name!r}")
    try:
        taken = await keys.acquire(name, replace(record, state="running"), verifiable=True)
    except KeyRunning:
        raise NotInDoubtError(f"{name!r} is running, and not in doubt") from None
    if not isinstance(taken, Claim) or taken.record.state != "doubt":
        if isinstance(taken, Claim):
            await keys.release(taken)
        raise NotInDoubtError(f"{name!r} is done, and not in doubt")
    if not happened:
        left = keys.call_left(taken)
        if left > 0:
            await keys.release_lease(taken)
            raise NotInDoubtError(
                f"the lost call of {name!r} may still act for {left:.0f} seconds: look it up and answer then",
                retry_after=max(1.0, left),
                recovery="transient",
            )
        return None if await free(keys, taken) is None else await _get(keys, name)
    stored = encode_result(outcome)
    if stored is None:
        await keys.release_lease(taken)
        raise TypeError(f"an outcome is made of JSON values, not {type(outcome).__name__}")
    await keys.complete(taken, outcome=stored, ended=now(), previous=None)
    return await _get(keys, name)
