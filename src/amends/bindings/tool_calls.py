"""
What every binding for an agent framework does around a tool call.

- A failure becomes the text of `amends.for_llm` for the model, and a typed fault for the program (`on_failure`).
- A tool that promised that a repeat is safe (`read_only`) is recovered within bounds.
- The others go through the ledger of effects, if there is one: a call that the model makes again does not have its effect
  again.
- A failure does not end the run. The third time in a row that a tool fails in the same way, the text says to stop; the fifth
  time the tool is closed for this run, and further calls are answered without calling it.

A binding makes one `ToolCalls`, gets a `Run` for each run of an agent, and passes every call to `Run.acall` or `Run.call`.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict, Unpack

import msgspec

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.errors import CancelledError
from amends.logs import logger
from amends.recovery import arecover, recover
from amends.recovery.async_library import within
from amends.recovery.policies import TOOL
from amends.recovery.scope import tool_call
from amends.serving.time_limit import call_within
from amends.tools import log_and_describe, tool_fault

if TYPE_CHECKING:
    from amends.effects import Effects

__all__ = ["OneRun", "Options", "Run", "ToolCalls", "ToolFailure"]

LOG = logger("amends.tools")

CLOSED_AFTER = 5
"""Failures of one kind in a row after which a tool is closed for the run."""
AGAIN, _ASKING = "again", frozenset({"ALREADY_DONE", "SIMILAR_CALL"})
"""The argument with which a model answers the ledger, and the codes of its questions."""
_SHOWN = 85
"""Characters of a tool's name and a code that fit into a text of 160 bytes."""
MAX_RUNS = 1000
"""Runs whose failures are counted at the same time; the oldest is forgotten first."""


class ToolFailure(msgspec.Struct, frozen=True, kw_only=True):
    """
    A tool call that failed: the text for the model, and the fault for the program.

    `Run.call` and `Run.acall` return it, and `on_failure` is called with it.

    >>> def buy() -> str:
    ...     raise CancelledError("The customer left")
    >>> failure = ToolCalls().run("run-1").call("buy", {}, buy)
    >>> failure.tool, failure.fault.code
    ('buy', 'CANCELLED')
    """

    tool: str
    text: str
    fault: Fault
    repeats: int = 1
    """How often in a row the tool failed in this way in this run."""
    closed: bool = False
    """Whether the tool is closed for the rest of the run."""
    error: Exception | None = None


class Options(TypedDict, total=False):
    """
    The options of `ToolCalls`, which all bindings take.

    >>> options: Options = {"read_only": ["search"], "timeout": 30.0}
    >>> ToolCalls(**options).timeout
    30.0
    """

    effects: Effects | None
    scope: str | Callable[[Hashable], str] | None
    read_only: Collection[str]
    policy: Policy | None
    hosts: Collection[str]
    on_failure: Callable[[ToolFailure], object] | None
    timeout: float | None


class ToolCalls:
    """
    The tool calls of an agent.

    Args:
        effects: the ledger for tools that did not promise that a repeat is safe.
        scope: separates the ledger's derived keys, for example by task; a text, or a function of the run's key.
        read_only: names of tools that only read.
        policy: limits of recovery; by default `amends.recovery.TOOL`.
        hosts: domains of set-up pages that the model may be shown.
        on_failure: is called with each `ToolFailure`.
        timeout: seconds for one call of a tool. A plain function then runs in a thread, which cannot be stopped, but the run goes on.

    >>> calls = ToolCalls(read_only=["search"])
    >>> run = calls.run("run-1")
    >>> def search() -> str:
    ...     raise PermissionError("the key of db.internal")
    >>> print(run.call("search", {}, search).text)
    Failed: PERMISSION_DENIED. Recovery: terminal (ask a person). It had no effect.
    """

    def __init__(
        self,
        *,
        effects: Effects | None = None,
        scope: str | Callable[[Hashable], str] | None = None,
        read_only: Collection[str] = (),
        policy: Policy | None = None,
        hosts: Collection[str] = (),
        on_failure: Callable[[ToolFailure], object] | None = None,
        timeout: float | None = None,
    ) -> None:
        for option, names in (("read_only", read_only), ("hosts", hosts)):
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise TypeError(f"{option} is a list of names, not {type(names).__name__}")
        self.effects, self.scope, self.hosts = effects, scope, tuple(hosts)
        self.read_only, self.timeout = frozenset(read_only), timeout
        self.policy = TOOL if policy is None else policy
        self.on_failure = on_failure
        self._runs: OrderedDict[Hashable, Run] = OrderedDict()

    def run(self, key: Hashable, owner: object = None) -> Run:
        """Return the run of a key: the framework's run id, or the id() of an object (`owner`) that belongs to one run."""
        found = self._runs.get(key)
        if found is None or found.owner is not owner:
            found = self._runs[key] = Run(self, key, owner)
            if len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)
        else:
            self._runs.move_to_end(key)
        return found


class OneRun:
    """
    The base of bindings for frameworks that do not say which run a call belongs to: one object serves one run.

    >>> class Binding(OneRun):
    ...     def call_tool(self, name: str, tool: Callable[[], object]) -> object:
    ...         return self.calls.run(self.key).call(name, {}, tool)
    >>> Binding(read_only=["search"]).call_tool("search", lambda: "page 1")
    'page 1'

    Args:
        run: the key of the run, if one object serves several.
        options: those of `ToolCalls`.

    """

    def __init__(self, *, run: Hashable = None, **options: Unpack[Options]) -> None:
        self.calls = ToolCalls(**options)
        self.key = run


class Run:
    """
    The tool calls of one run of an agent, and the failures it has seen.

    `ToolCalls.run` returns it. Pass each tool call to it.

    >>> run = ToolCalls().run("run-1")
    >>> run.call("add", {"a": 1, "b": 2}, lambda: 1 + 2)
    3
    """

    def __init__(self, calls: ToolCalls, key: Hashable, owner: object = None) -> None:
        self._calls, self._key, self.owner = calls, key, owner
        self._failed: dict[str, dict[str, int]] = {}
        self._closed: dict[str, Fault] = {}
        self._asked: set[str] = set()
        """The tools about which the ledger asked for a reason: their argument `again` is the answer."""

    async def acall(
        self,
        name: str,
        arguments: Mapping[str, object],
        call: Callable[[], object],
        *,
        read_only: bool = False,
        passing: tuple[type[BaseException], ...] = (),
        asking: tuple[type[BaseException], ...] = (),
        restore: Callable[[object], object] | None = None,
    ) -> object:
        """
        Call a tool, and return its result or a `ToolFailure`.

        Args:
            name: the tool.
            arguments: the arguments of the model.
            call: calls the tool with them.
            read_only: the tool itself says that it only reads.
            passing: exceptions of the framework that are not for the model; they pass through.
            asking: as `passing`, and the framework calls the tool anew, for example when a person has answered: the
                ledger frees the key.
            restore: makes the framework's result of a plain value, if the ledger hands out the outcome of another call.

        """
        closed = self._if_closed(name)
        if closed is not None:
            return closed
        tried = _Attempt(passing, asking)
        try:
            with tool_call():
                result = await self._acall(name, arguments, call, tried, read_only=read_only)
        except Exception as error:  # noqa: BLE001 - every failure becomes a text; cancellation is no Exception
            return self._raised(name, arguments, error, tried, read_only)
        self._failed.pop(name, None)
        return result if tried.ran or restore is None else restore(result)

    async def _acall(
        self,
        name: str,
        arguments: Mapping[str, object],
        call: Callable[[], object],
        tried: _Attempt,
        *,
        read_only: bool,
    ) -> object:
        made = self._calls
        reads = read_only or name in made.read_only
        limit = None if reads else made.timeout  # recovery has the limit of each attempt

        async def once() -> object:
            with tried:
                result = call()
                if not inspect.isawaitable(result):
                    return result
                return await (result if limit is None else within(limit, result))

        if reads:
            operation = Operation(name=name, read_only=True)
            return await arecover(once, policy=made.policy, operation=operation, timeout=made.timeout)
        if made.effects is None:
            return await once()
        arguments, again = self._reason(name, arguments)
        return await made.effects.acall(name, once, arguments, scope=self._scope(), again=again)

    def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        call: Callable[[], object],
        *,
        read_only: bool = False,
        passing: tuple[type[BaseException], ...] = (),
        asking: tuple[type[BaseException], ...] = (),
        restore: Callable[[object], object] | None = None,
    ) -> object:
        """Do the same as `acall`, for a plain function."""
        closed = self._if_closed(name)
        if closed is not None:
            return closed
        made, tried = self._calls, _Attempt(passing, asking)

        def once() -> object:
            with tried:
                return call() if made.timeout is None else call_within(made.timeout, call)

        try:
            with tool_call():
                result = self._call(name, arguments, once, read_only=read_only)
        except Exception as error:  # noqa: BLE001
            return self._raised(name, arguments, error, tried, read_only)
        self._failed.pop(name, None)
        return result if tried.ran or restore is None else restore(result)

    def _call(
        self, name: str, arguments: Mapping[str, object], once: Callable[[], object], *, read_only: bool
    ) -> object:
        made = self._calls
        if read_only or name in made.read_only:
            return recover(once, policy=made.policy, operation=Operation(name=name, read_only=True))
        if made.effects is None:
            return once()
        arguments, again = self._reason(name, arguments)
        return made.effects.call(name, once, arguments, scope=self._scope(), again=again)

    def _raised(
        self,
        name: str,
        arguments: Mapping[str, object],
        error: Exception,
        tried: _Attempt,
        read_only: bool,
    ) -> ToolFailure:
        """Return a failure. Raises the exception of the framework that ended the call, if one did."""
        if tried.stopped is not None:
            raise tried.stopped
        return self.failed(name, arguments, error, read_only=read_only)

    def failed(
        self, name: str, arguments: Mapping[str, object], error: Exception, *, read_only: bool = False
    ) -> ToolFailure:
        """Count a failure, and return it. Bindings call this for failures that a framework hands them."""
        fault = tool_fault(error, read_only=read_only or name in self._calls.read_only)
        if fault.code in _ASKING and fault.field == AGAIN:
            self._asked.add(name)
        counts = self._failed.setdefault(name, {})
        repeats = counts[fault.code] = counts.get(fault.code, 0) + 1
        names = tuple(map(str, arguments))
        text = log_and_describe(error, name, names, fault=fault, repeats=repeats, hosts=self._calls.hosts)
        if repeats >= CLOSED_AFTER:
            self._closed[name] = fault
            text = _closed_text(name, fault)
        return self._report(
            ToolFailure(
                tool=name, text=text, fault=fault, repeats=repeats, closed=name in self._closed, error=error
            )
        )

    def _if_closed(self, name: str) -> ToolFailure | None:
        fault = self._closed.get(name)
        if fault is None:
            return None
        return self._report(
            ToolFailure(
                tool=name, text=_closed_text(name, fault), fault=fault, repeats=CLOSED_AFTER + 1, closed=True
            )
        )

    def _report(self, failure: ToolFailure) -> ToolFailure:
        if self._calls.on_failure is not None:
            try:
                self._calls.on_failure(failure)
            except Exception:
                # A hook must neither end the run nor show the model its text.
                LOG.exception("on_failure failed for the tool %s", failure.tool)
        return failure

    def _reason(self, name: str, arguments: Mapping[str, object]) -> tuple[Mapping[str, object], str | None]:
        """Return the arguments of the tool, and the reason for which the model does it once more."""
        again = arguments.get(AGAIN)
        if again and (not isinstance(again, str) or name not in self._asked):
            return arguments, None  # an argument of the tool's own
        reason = again if isinstance(again, str) and again else None
        return {each: value for each, value in arguments.items() if each != AGAIN}, reason

    def _scope(self) -> str | None:
        scope = self._calls.scope
        return scope(self._key) if callable(scope) else scope


class _Attempt:
    """The call of a tool: whether it ran, and the exception of the framework with which it stopped."""

    def __init__(
        self, passing: tuple[type[BaseException], ...], asking: tuple[type[BaseException], ...]
    ) -> None:
        self._passing, self._asking = passing + asking, asking
        self.ran = False
        self.stopped: BaseException | None = None

    def __enter__(self) -> None:
        self.ran = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, self._passing):
            return
        self.stopped = error
        # Recovery does not repeat a cancelled call, and the ledger reads from it whether the key is free.
        executed = Executed.NO if isinstance(error, self._asking) else Executed.MAYBE
        raise CancelledError("The framework stopped the tool", executed=executed) from error


def _closed_text(name: str, fault: Fault) -> str:
    """Return the text of a closed tool. The model has the details from the failures before."""
    short = name.isidentifier() and len(name) + len(fault.code) <= _SHOWN
    return (
        f"{name if short else 'This tool'} is closed for this run: it failed {CLOSED_AFTER} times with {fault.code}. "
        "Do not call it again."
    )
