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

import copy
import inspect
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from amends.bindings.model_calls import ModelCalls
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.fence import fenced_result
from amends.core.named_options import NamedOptions
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.core.wrong_calls import explains_wrong_calls, refuse_unknown
from amends.errors import CancelledError, InternalError, NotFoundError, ValidationError
from amends.logs import logger
from amends.recovery import arecover, recover
from amends.recovery.async_library import within
from amends.recovery.effect_context import current_scope
from amends.recovery.policies import TOOL
from amends.recovery.scope import tool_call
from amends.serving.time_limit import call_within
from amends.tools import log_and_describe, tool_fault

if TYPE_CHECKING:
    from amends.effects import Effects

__all__ = [
    "CHECK",
    "Caller",
    "OneRun",
    "Options",
    "ReturnedError",
    "Run",
    "ToolCalls",
    "ToolEffect",
    "ToolFailure",
    "check_description",
    "unknown_tool_text",
]

LOG = logger("amends.tools")

CLOSED_AFTER = 5
"""Failures of one kind in a row after which a call is closed for the run."""
REOPENED_AFTER = 60.0
"""Seconds after the last failure in which a closed call is made once, to see whether it works again."""
FORGOTTEN_AFTER = 600.0
"""Seconds after which a failure does not count any more."""
MAX_COUNTS = 1000
"""Calls whose failures a run counts at the same time; the oldest is forgotten first."""
_CONTENTS = ("content", "raw_output", "return_value")
"""Members of the frameworks' results that hold what the model reads."""
AGAIN, _ASKING = "again", frozenset({"ALREADY_DONE", "SIMILAR_CALL"})
"""The argument with which a model answers the ledger, and the codes of its questions."""
CHECK = "check_"
"""What the name of a tool begins with that finds out whether an earlier call happened."""


def check_description(name: str) -> str:
    """Return the description of the tool with which a model finds out whether a call of another one happened."""
    return f"Find out whether an earlier call of {name} happened. Takes the same arguments, and does nothing else."


def unknown_tool_text(names: Iterable[str]) -> str:
    """
    Return what the model reads about a tool that does not exist.

    >>> unknown_tool_text(["pay"])
    'There is no tool of this name, so nothing happened. There are: pay.'
    """
    known = sorted({str(name)[:64] for name in names})[:_MOST_NAMES]
    there_are = f" There are: {', '.join(known)}." if known else ""
    return f"There is no tool of this name, so nothing happened.{there_are}"


_MOST_NAMES = 50
"""Tools that are named to a model."""
_SHOWN = 85
"""Characters of a tool's name and a code that fit into a text of 160 bytes."""
_NOTHING = object()
_OUTER: ContextVar[str | None] = ContextVar("amends_tool_scope", default=None)
"""The scope of the tool call that this code runs in."""
MAX_RUNS = 1000
"""Runs whose failures are counted at the same time; the oldest is forgotten first."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """
    Who makes a call, as far as the framework says it. The function given as `scope` gets it.

    A run id is made anew after a restart, so a scope that is made of it alone does not find the payments of before.

    >>> Caller(thread="t-1", user="ann").user
    'ann'
    """

    run: Any = None
    thread: str | None = None
    """The thread or conversation."""
    session: str | None = None
    user: str | None = None
    context: Any = None
    """
    The framework's own object of the call, where the application may have put its user: `ToolRuntime` of LangChain, `ToolContext` of
    the OpenAI Agents SDK and of ADK, `RunContext` of pydantic-ai, `FunctionInvocationContext` of the Agent Framework,
    `ExecuteToolContext` of Strands, `Context` of LlamaIndex, `CrewContext` of CrewAI, the agent of smolagents.
    """

    @property
    def scope(self) -> str | None:
        """The scope that separates conversations; None if the framework names none. A user alone is none."""
        if self.thread is None and self.session is None:
            return None
        return msgspec.json.encode([self.thread, self.session, self.user]).decode()


class ToolEffect(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedOptions):
    """
    What a tool does to the world, as its author declares it: `effects={"pay": ToolEffect(key="order")}`.

    >>> ToolEffect(key=("shop", "order")).expires_in
    172800.0
    """

    key: str | tuple[str, ...] | None = None
    """The arguments that identify the effect, in all scopes. Without it, the key is made of the scope and all arguments."""
    verify: Callable[..., object] | None = None
    """Called with the arguments if the outcome is not known; as in `Effects.once`."""
    check: str | None = None
    """The name of a tool of the agent with which the model can look up whether the effect happened."""
    similar: float | None = None
    """Ask before a call that is nearly identical to one of the last so many seconds."""
    expires_in: float = 172800.0
    timeout: float | None = None
    """Seconds from the begin of a call in which it can have its effect, as in `Effects.once`; 60 if it is not given."""


class ReturnedError(Exception):
    """
    A result with which a tool, or the framework for it, says that the call failed.

    A binding returns it from `failure_of`. The model gets the result as it is, and the ledger does not record it as done.

    Args:
        ran: whether the tool may have run. False if the framework refused the arguments.

    >>> ReturnedError(ran=False).ran
    False
    """

    def __init__(self, *, ran: bool = True) -> None:
        super().__init__("The tool returned an error")
        self.ran = ran


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

    effects: Effects | Mapping[str, ToolEffect] | None
    ledger: Effects | None
    scope: str | Callable[[Caller], str] | None
    read_only: Collection[str]
    policy: Policy | None
    hosts: Collection[str]
    on_failure: Callable[[ToolFailure], object] | None
    timeout: float | None
    model_policy: Policy | None
    fallback_models: Sequence[object]


class ToolCalls:
    """
    The tool calls of an agent.

    Args:
        effects: the ledger for tools that did not promise that a repeat is safe; or, with `ledger=`, the effects of tools by name.
        ledger: the ledger, if `effects` declares the effects of tools.
        scope: separates the ledger's derived keys, by user and conversation; a text, or a function of the `Caller`. It is needed
            with a ledger, unless the framework names a conversation that is the same after a restart.
        read_only: names of tools that only read.
        policy: limits of recovery; by default `amends.recovery.TOOL`.
        hosts: domains of set-up pages that the model may be shown.
        on_failure: is called with each `ToolFailure`.
        timeout: seconds for one call of a tool. A plain function then runs in a thread, which cannot be stopped, but the run goes on.
        model_policy: limits of the recovery of the model's own calls; by default `amends.bindings.model_calls.MODEL`, and
            `amends.recovery.policies.NONE` leaves them alone.
        fallback_models: models that are asked when the agent's own is out of quota, overloaded or silent, or the context is too long.
        names_conversations: the binding gives the thread or session of each call, so `scope` may be left out.

    >>> calls = ToolCalls(read_only=["search"])
    >>> run = calls.run("run-1")
    >>> def search() -> str:
    ...     raise PermissionError("the key of db.internal")
    >>> print(run.call("search", {}, search).text)
    Failed: PERMISSION_DENIED. Recovery: terminal (ask a person). It had no effect.
    """

    @explains_wrong_calls
    def __init__(
        self,
        *,
        effects: Effects | Mapping[str, ToolEffect] | None = None,
        ledger: Effects | None = None,
        scope: str | Callable[[Caller], str] | None = None,
        read_only: Collection[str] = (),
        policy: Policy | None = None,
        hosts: Collection[str] = (),
        on_failure: Callable[[ToolFailure], object] | None = None,
        timeout: float | None = None,
        model_policy: Policy | None = None,
        fallback_models: Sequence[object] = (),
        names_conversations: bool = False,
    ) -> None:
        for option, names in (("read_only", read_only), ("hosts", hosts)):
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise TypeError(f"{option} is a list of names, not {type(names).__name__}")
        self.declared: dict[str, ToolEffect] = {}
        if isinstance(effects, Mapping):
            if ledger is None:
                raise TypeError(
                    "effects= declares what tools do, so the ledger is given as ledger=Effects(...)"
                )
            self.declared, effects = _declared(effects, read_only), ledger
        elif ledger is not None:
            if effects is not None:
                raise TypeError(
                    "give the ledger once: as ledger=, with the effects of tools by name as effects="
                )
            effects = ledger
        if effects is not None and not scope and not (names_conversations and scope is None):
            raise TypeError(
                "a ledger needs scope=, which separates the calls of users and conversations: give a text, or a function such as "
                "scope=lambda caller: f'{caller.user}/{caller.thread}'"
            )
        self.models = ModelCalls(model_policy, fallback_models)
        self.effects, self.scope, self.hosts = effects, scope, tuple(hosts)
        self.read_only, self.timeout = frozenset(read_only), timeout
        self.policy = TOOL if policy is None else policy
        self.on_failure = on_failure
        self.offered: set[str] = set()
        """Tools for which the agent has a tool that finds out whether an earlier call happened."""
        self.logged: set[str] = set()
        """Tools that the ledger covers without a declaration."""
        self.clock: Callable[[], float] = time.monotonic
        self._runs: OrderedDict[Hashable, Run] = OrderedDict()

    def covers(self, name: str, *, read_only: bool = False) -> bool:
        """Return whether calls of a tool go through the ledger. `read_only`: the tool itself says that it only reads."""
        if self.effects is None:
            return False
        return name in self.declared or not (read_only or name in self.read_only)

    def can_check(self, name: str) -> bool:
        """Return whether the outcome of a tool can be looked up: its effect is declared with a verification."""
        effect = self.declared.get(name)
        return effect is not None and effect.verify is not None

    def check_of(self, name: str) -> str | None:
        """Return the name of the tool with which the model can find out whether a call happened, if the agent has one."""
        effect = self.declared.get(name)
        if effect is not None and effect.check is not None:
            return effect.check
        return CHECK + name if name in self.offered and self.can_check(name) else None

    def offer_check(self, name: str) -> str:
        """
        Return the name of the tool that finds out whether a call happened; the agent has it from now on.

        Raises:
            ValueError: the effect of the tool is not declared with a verification.

        """
        if not self.can_check(name):
            raise ValueError(
                f"{name!r} has no verification: declare it with effects={{{name!r}: ToolEffect(verify=...)}}"
            )
        self.offered.add(name)
        return CHECK + name

    def find(self, key: Hashable, owner: object = None) -> Run | None:
        """Return the run of a key if a tool was called in it."""
        run = self._runs.get(key)
        return run if run is not None and run.owner is owner else None

    def run(self, key: Hashable, owner: object = None, caller: Caller | None = None) -> Run:
        """
        Return the run of a key: the framework's run id, or the id() of an object (`owner`) that belongs to one run.

        `caller` is what the framework says about the conversation of this call.
        """
        run = self._runs.get(key)
        if run is None or run.owner is not owner:
            run = self._runs[key] = Run(self, key, owner)
            if len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)
        else:
            self._runs.move_to_end(key)
        # The caller is not kept with the run: its context holds whatever the framework has of it.
        return run if caller is None else run.called_by(caller)


class OneRun:
    """
    The base of bindings for frameworks whose tools do not get the run that a call belongs to.

    >>> class Binding(OneRun):
    ...     def call_tool(self, name: str, tool: Callable[[], object]) -> object:
    ...         return self.current.call(name, {}, tool)
    >>> Binding(read_only=["search"]).call_tool("search", lambda: "page 1")
    'page 1'

    Args:
        run: the key of the run, if the object serves one run.
        options: those of `ToolCalls`.

    """

    def __init__(self, *, run: Hashable = None, **options: Unpack[Options]) -> None:
        refuse_unknown(type(self).__name__, options, (*Options.__annotations__, "run"))
        self.calls = ToolCalls(**options)
        self.key = run

    def running(self) -> Caller:
        """Return what the framework says about the run that this code is in. A binding overrides it where it can find out."""
        return Caller()

    @property
    def current(self) -> Run:
        """The run that this code is in. Where the framework does not say which, all calls belong to one."""
        caller = self.running()
        if self.key is not None:
            return self.calls.run(self.key, caller=replace(caller, run=self.key))
        if caller.run is None or isinstance(caller.run, str):
            return self.calls.run(caller.run, caller=caller)
        owner = caller.run  # the identity of an object that belongs to one run
        return self.calls.run(id(owner), owner=owner, caller=replace(caller, run=id(owner)))


class Run:
    """
    The tool calls of one run of an agent, and the failures it has seen.

    `ToolCalls.run` returns it. Pass each tool call to it.

    >>> run = ToolCalls().run("run-1")
    >>> run.call("add", {"a": 1, "b": 2}, lambda: 1 + 2)
    3
    """

    def __init__(self, calls: ToolCalls, key: Hashable, owner: object = None) -> None:
        self._calls, self.owner = calls, owner
        self.caller = Caller(run=key)
        self._failed: OrderedDict[tuple[str, str, str], _Count] = OrderedDict()
        """The failures in a row, by tool, code and arguments; an outage has no arguments."""
        self._doubts: set[str] = set()
        """Tools of which a call is in doubt."""
        self._asked: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The calls about which the ledger asked for a reason: their argument `again` is the answer."""

    def called_by(self, caller: Caller) -> Run:
        """Return this run for a call of somebody: it counts with this one, and its scope is made of `caller`."""
        run = copy.copy(self)
        run.caller = caller
        return run

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
        failure_of: Callable[[object], Exception | None] | None = None,
        takes_again: bool = True,
        stored: Callable[[object], object] | None = None,
        directs: bool = False,
    ) -> object:
        """
        Call a tool, and return its result or a `ToolFailure`.

        Args:
            name: the tool.
            arguments: the arguments that the tool receives: with defaults, and without those that it does not have.
            call: calls the tool with them.
            read_only: the tool itself says that it only reads.
            passing: exceptions of the framework that are not for the model; they pass through.
            asking: as `passing`, and the framework calls the tool anew, for example when a person has answered: the
                ledger frees the key.
            restore: makes the framework's result of a plain value, if the ledger hands out the outcome of another call.
            failure_of: returns a `ReturnedError`, or the failure that a tool reported, if a result says that the call failed.
            takes_again: whether the tool has an argument `again`, with which the model can answer the ledger.
            stored: returns what the ledger records of a result, if it cannot record the result itself.
            directs: the tool hands over to another agent or directs the run: it is neither repeated nor recorded.

        """
        attempt = _Attempt(passing, asking, failure_of, stored)
        asked = self._asked_for(name, arguments, read_only, takes_again, directs)
        closed = self._if_closed(asked)
        if closed is not None:
            return closed
        try:
            with tool_call(), self._within():
                result = await self._acall(asked, call, attempt)
        except Exception as error:  # noqa: BLE001 - every failure becomes a text; cancellation is no Exception
            return self._raised(asked, error, attempt)
        self._succeeded(asked)
        return attempt.result(result, restore)

    async def _acall(self, asked: _Asked, call: Callable[[], object], attempt: _Attempt) -> object:
        calls = self._calls
        limit = None if asked.reads else calls.timeout  # recovery has the limit of each attempt

        async def once() -> object:
            with attempt:
                result = call()
                if not inspect.isawaitable(result):
                    return attempt.checked(result)
                return attempt.checked(await (result if limit is None else within(limit, result)))

        if asked.reads:
            operation = Operation(name=asked.name, read_only=True)
            return await arecover(once, policy=calls.policy, operation=operation, timeout=calls.timeout)
        if calls.effects is None or not asked.covered:
            return await once()
        return await calls.effects.acall(asked.name, once, asked.arguments, **self._options(asked))

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
        failure_of: Callable[[object], Exception | None] | None = None,
        takes_again: bool = True,
        stored: Callable[[object], object] | None = None,
        directs: bool = False,
    ) -> object:
        """Do the same as `acall`, for a plain function."""
        calls, attempt = self._calls, _Attempt(passing, asking, failure_of, stored)
        asked = self._asked_for(name, arguments, read_only, takes_again, directs)
        closed = self._if_closed(asked)
        if closed is not None:
            return closed

        def once() -> object:
            with attempt:
                return attempt.checked(call() if calls.timeout is None else call_within(calls.timeout, call))

        try:
            with tool_call(), self._within():
                result = self._call(asked, once)
        except Exception as error:  # noqa: BLE001
            return self._raised(asked, error, attempt)
        self._succeeded(asked)
        return attempt.result(result, restore)

    def _call(self, asked: _Asked, once: Callable[[], object]) -> object:
        calls = self._calls
        if asked.reads:
            operation = Operation(name=asked.name, read_only=True)
            return recover(once, policy=calls.policy, operation=operation)
        if calls.effects is None or not asked.covered:
            return once()
        return calls.effects.call(asked.name, once, asked.arguments, **self._options(asked))

    def in_doubt(self, name: str) -> bool:
        """Return whether a call of the tool is in doubt in this run, so that a tool that finds out is offered."""
        return name in self._doubts

    async def acheck(self, name: str, arguments: Mapping[str, object]) -> str:
        """Find out whether an earlier call of a tool happened, without making it, and return a text for the model."""
        effects = self._calls.effects
        if effects is None or not self._calls.can_check(name):
            return _NOT_CHECKED
        asked = self._asked_for(name, arguments, False, False, False)

        async def not_made() -> object:
            raise _NotDone("It was not called")

        try:
            outcome = await effects.acall(name, not_made, asked.arguments, **self._options(asked))
        except Exception as error:  # noqa: BLE001 - each end is a text
            return self._checked(asked, error)
        return self._done_text(name, outcome)

    def check(self, name: str, arguments: Mapping[str, object]) -> str:
        """Do the same as `acheck`, for a plain function."""
        effects = self._calls.effects
        if effects is None or not self._calls.can_check(name):
            return _NOT_CHECKED
        asked = self._asked_for(name, arguments, False, False, False)

        def not_made() -> object:
            raise _NotDone("It was not called")

        try:
            outcome = effects.call(name, not_made, asked.arguments, **self._options(asked))
        except Exception as error:  # noqa: BLE001 - each end is a text
            return self._checked(asked, error)
        return self._done_text(name, outcome)

    def _checked(self, asked: _Asked, error: Exception) -> str:
        fault = tool_fault(error)
        if isinstance(error, _NotDone):
            self._doubts.discard(asked.name)
            return f"{asked.name} did not happen: no such call had its effect. It may be called."
        if fault.code == "ALREADY_DONE":
            return self._done_text(asked.name, getattr(error, "outcome", None))
        if fault.code == "EFFECT_UNKNOWN":
            return f"It is still not known whether {asked.name} happened. Do not call it again, and say so."
        return log_and_describe(error, CHECK + asked.name, fault=fault, hosts=self._calls.hosts)

    def _done_text(self, name: str, outcome: object) -> str:
        self._doubts.discard(name)
        result = "" if outcome is None else f"\n{fenced_result(_shown(outcome))}"
        return f"{name} happened. Do not call it again.{result}"

    def _options(self, asked: _Asked) -> dict[str, Any]:
        """Return the options of the ledger for a call."""
        declared = self._calls.declared.get(asked.name)
        if declared is None:
            return {"scope": asked.scope, "again": asked.again}
        options: dict[str, Any] = {
            "scope": asked.scope,
            "again": asked.again,
            "similar": declared.similar,
            "expires_in": declared.expires_in,
            "timeout": declared.timeout,
        }
        if declared.verify is not None:
            options["verify"] = partial(declared.verify, **asked.arguments)
        names = (declared.key,) if isinstance(declared.key, str) else declared.key
        if names and all(name in asked.arguments for name in names):
            from amends.effects.arguments import key_text

            values = [asked.arguments[name] for name in names]
            options["key"] = key_text(values[0] if len(values) == 1 else values)
            options["again"] = None  # the author's key is done once
        return options

    def _asked_for(
        self,
        name: str,
        arguments: Mapping[str, object],
        read_only: bool,
        takes_again: bool,
        directs: bool,
    ) -> _Asked:
        declared = name in self._calls.declared
        reads = not declared and not directs and (read_only or name in self._calls.read_only)
        covered = (declared or not directs) and not reads and self._calls.effects is not None
        reason = arguments.get(AGAIN)
        plain = {each: value for each, value in arguments.items() if each != AGAIN} if covered else arguments
        asked = _Asked(name, plain, _digest(plain), reads, takes_again)
        asked.covered = covered
        if covered:
            if name not in self._calls.declared and name not in self._calls.logged:
                if len(self._calls.logged) < MAX_COUNTS:
                    self._calls.logged.add(name)
                LOG.info("the ledger covers the tool %s, whose effect is not declared", name)
            asked.scope = self._scope()
            if isinstance(reason, str) and reason.strip() and (name, asked.digest) in self._asked:
                asked.again = reason
        return asked

    def require_scope(self) -> None:
        """
        Find out whether the ledger can separate this run from those of other users, before a tool is called.

        Raises:
            TypeError: there is neither a thread or session nor `scope=`.

        """
        if self._calls.scope is None:
            self._scope()

    @contextmanager
    def _within(self) -> Iterator[None]:
        """Give the calls of agents that run inside this tool call the scope of this conversation."""
        if self._calls.effects is None:
            yield
            return
        try:
            scope = self._scope()
        except TypeError:
            scope = None  # a tool that is not recorded needs none
        token = _OUTER.set(scope)
        try:
            yield
        finally:
            _OUTER.reset(token)

    def _scope(self) -> str | None:
        """
        Return the scope of the keys that are derived from the arguments; None for that of the context.

        An agent that runs inside a tool call belongs to the conversation of that call, whatever its framework says: many give it
        an id of its own, made anew each time.

        Raises:
            TypeError: there is none. It reaches the program, before the tool runs.

        """
        chosen: object = self._calls.scope
        outer = _OUTER.get()
        if outer is not None and not isinstance(chosen, str):
            return outer
        if callable(chosen):
            chosen = chosen(self.caller)
            if not isinstance(chosen, str) or not chosen:
                raise TypeError(f"scope= returns a text that is not empty, not {type(chosen).__name__}")
        if isinstance(chosen, str):
            return chosen
        scope = None if current_scope() else self.caller.scope
        if scope is None and not current_scope():
            raise TypeError(
                "this run has no thread or session, so the ledger cannot separate users: run the agent with one (LangGraph: "
                "config={'configurable': {'thread_id': ...}}), or give scope="
            )
        return scope

    def _raised(self, asked: _Asked, error: Exception, attempt: _Attempt) -> object:
        """Return a failure, or the tool's own result that says so. Raises the exception of the framework that ended the call."""
        if attempt.stopped is not None:
            raise attempt.stopped
        if attempt.returned is not None:
            self._count_failure(asked, error, tool_fault(attempt.error or error, read_only=asked.reads))
            return attempt.returned[0]
        return self._count_failure(asked, error)

    def failed(
        self,
        name: str,
        arguments: Mapping[str, object],
        error: Exception,
        *,
        read_only: bool = False,
        ran: bool = True,
    ) -> ToolFailure:
        """
        Count a failure, and return it. Bindings call this for failures that a framework hands them.

        `ran`: False if the framework did not call the tool.
        """
        reads = read_only or name in self._calls.read_only
        fault = tool_fault(error, read_only=reads)
        fault = fault if ran else replace(fault, executed=Executed.NO)
        return self._count_failure(_Asked(name, arguments, _digest(arguments), reads, True), error, fault)

    def _count_failure(self, asked: _Asked, error: Exception, fault: Fault | None = None) -> ToolFailure:
        name = asked.name
        fault = tool_fault(error, read_only=asked.reads) if fault is None else fault
        if fault.code in _ASKING and fault.field == AGAIN and asked.takes_again:
            self._asked[name, asked.digest] = None
            if len(self._asked) > MAX_COUNTS:
                self._asked.popitem(last=False)
        count = self._count(asked, fault)
        text = log_and_describe(
            error,
            name,
            tuple(map(str, asked.arguments)),
            fault=_for_the_model(fault, asked),
            repeats=count.times,
            hosts=self._calls.hosts,
        )
        if fault.code == "ALREADY_DONE":
            text += _first_result(error)
        if asked.covered and fault.code == "EFFECT_UNKNOWN":
            self._doubts.add(name)
            # The program's fault has the command that answers the doubt; a model has no shell.
            text = _doubt_text(self._calls.check_of(name))
        closed = count.times >= CLOSED_AFTER
        if closed:
            text = _closed_text(name, fault)
        return self._report(
            ToolFailure(tool=name, text=text, fault=fault, repeats=count.times, closed=closed, error=error)
        )

    def _count(self, asked: _Asked, fault: Fault) -> _Count:
        """Count a failure. Those of one kind count together if it is an outage, or if the arguments are the same."""
        key = (asked.name, fault.code, "" if fault.recovery is Recovery.TRANSIENT else asked.digest)
        now = self._calls.clock()
        count = self._failed.get(key)
        if count is None or now - count.last > FORGOTTEN_AFTER:
            count = self._failed[key] = _Count(fault)
            if len(self._failed) > MAX_COUNTS:
                self._failed.popitem(last=False)
        count.times, count.last = count.times + 1, now
        self._failed.move_to_end(key)
        return count

    def _succeeded(self, asked: _Asked) -> None:
        self._doubts.discard(asked.name)
        for key in [each for each in self._failed if each[0] == asked.name and each[2] in {"", asked.digest}]:
            del self._failed[key]

    def _if_closed(self, asked: _Asked) -> ToolFailure | None:
        for (name, _, digest), count in self._failed.items():
            if name != asked.name or digest not in {"", asked.digest} or count.times < CLOSED_AFTER:
                continue
            now = self._calls.clock()
            if now - count.last >= max(REOPENED_AFTER, count.fault.retry_after or 0.0):
                count.last = now  # this call finds out, and the others wait for it
                continue
            return self._report(
                ToolFailure(
                    tool=name,
                    text=_closed_text(name, count.fault),
                    fault=count.fault,
                    repeats=CLOSED_AFTER + 1,
                    closed=True,
                )
            )
        return None

    def _report(self, failure: ToolFailure) -> ToolFailure:
        if self._calls.on_failure is not None:
            try:
                self._calls.on_failure(failure)
            except Exception:
                # A hook must neither end the run nor show the model its text.
                LOG.exception("on_failure failed for the tool %s", failure.tool)
        return failure


class _Asked:
    """A call that the model asks for."""

    __slots__ = ("again", "arguments", "covered", "digest", "name", "reads", "scope", "takes_again")

    def __init__(
        self, name: str, arguments: Mapping[str, object], digest: str, reads: bool, takes_again: bool
    ) -> None:
        self.name, self.arguments, self.digest = name, arguments, digest
        self.reads, self.takes_again = reads, takes_again
        self.covered = False
        """Whether it goes through the ledger."""
        self.scope: str | None = None
        self.again: str | None = None


_NOT_CHECKED = "It cannot be found out here whether the call happened. Say that it is not known."


class _NotDone(NotFoundError):
    """There is no effect of this call."""

    executed = "no"


class _Count:
    """The failures of one kind in a row."""

    __slots__ = ("fault", "last", "times")

    def __init__(self, fault: Fault) -> None:
        self.fault, self.times, self.last = fault, 0, 0.0


def _declared(effects: Mapping[str, ToolEffect], read_only: Collection[str]) -> dict[str, ToolEffect]:
    for name, effect in effects.items():
        if not isinstance(effect, ToolEffect):
            raise TypeError(f"effects[{name!r}] is a ToolEffect, not {type(effect).__name__}")
        if name in read_only:
            raise ValueError(
                f"{name!r} is in read_only= and in effects=: a tool that only reads has no effect"
            )
    return dict(effects)


def _digest(arguments: Mapping[str, object]) -> str:
    """Return a hash of the arguments, by which failures are counted."""
    try:
        written = msgspec.json.encode(dict(arguments), enc_hook=repr, order="sorted")
    except Exception:  # noqa: BLE001 - arguments that cannot be written count together
        return "?"
    return sha256(written).hexdigest()


class _Attempt:
    """The call of a tool: whether it ran, and the exception of the framework with which it stopped."""

    def __init__(
        self,
        passing: tuple[type[BaseException], ...],
        asking: tuple[type[BaseException], ...],
        failure_of: Callable[[object], Exception | None] | None = None,
        stored: Callable[[object], object] | None = None,
    ) -> None:
        self._passing, self._asking, self._failure_of = passing + asking, asking, failure_of
        self._stored, self._kept = stored, _NOTHING
        self._value: object = None
        self.stopped: BaseException | None = None
        self.returned: tuple[object] | None = None
        """The result, if it says that the call failed."""
        self.error: Exception | None = None

    def checked(self, result: object) -> object:
        """Return a result. Raises what it says, if it says that the call failed."""
        self.returned = None
        error = None if self._failure_of is None else self._failure_of(result)
        if error is None:
            self._value, self._kept = result, result if self._stored is None else self._stored(result)
            return self._kept
        self.returned = (result,)
        if isinstance(error, ReturnedError):
            # The ledger reads from it whether the tool ran.
            ran = InternalError("The tool returned an error", executed=Executed.MAYBE)
            refused = ValidationError("The framework refused the arguments", executed=Executed.NO)
            error = ran if error.ran else refused
        self.error = error
        raise error

    def result(self, outcome: object, restore: Callable[[object], object] | None) -> object:
        """Return the result of the call: that of the tool, or what `restore` makes of an outcome from elsewhere."""
        if outcome is self._kept:
            return self._value
        return outcome if restore is None else restore(outcome)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, self._passing):
            return
        self.stopped = error
        # Recovery does not repeat a cancelled call, and the ledger reads from it whether the key is free.
        executed = Executed.NO if isinstance(error, self._asking) else Executed.MAYBE
        raise CancelledError("The framework stopped the tool", executed=executed) from error


def _for_the_model(fault: Fault, asked: _Asked) -> Fault:
    """Return a fault of the ledger with steps that the model can take."""
    if fault.code == "ALREADY_DONE" and not asked.takes_again:
        # The tool has no argument with which the model could ask for it once more.
        return replace(fault, message="already done", field=None, suggestions=fault.suggestions[:1])
    return fault


def _doubt_text(check: str | None) -> str:
    """Return the text of an effect that is not known, with the one step that the model can take."""
    step = (
        "Do not call it again: ask a person, and say that it is not known whether it happened."
        if check is None
        else f"Call {check} to find out, with the same arguments."
    )
    return f"Failed: EFFECT_UNKNOWN. It may have had its effect, so it is not repeated. {step}"


def _first_result(error: Exception) -> str:
    """Return the result of the first call, in a fence, if the ledger has it."""
    outcome = getattr(error, "outcome", None)
    return "" if outcome is None else f"\n{fenced_result(_shown(outcome))}"


def _shown(outcome: object) -> str:
    """Return the part of a stored result that is for the model."""
    for member in _CONTENTS:
        if isinstance(outcome, Mapping) and outcome.get(member) not in (None, ""):
            return _shown(outcome[member])
    if isinstance(outcome, list) and all(isinstance(part, Mapping) and "text" in part for part in outcome):
        return "\n".join(str(part["text"]) for part in outcome)
    return outcome if isinstance(outcome, str) else msgspec.json.encode(outcome).decode()


def _closed_text(name: str, fault: Fault) -> str:
    """Return the text of a closed tool. The model has the details from the failures before."""
    short = name.isidentifier() and len(name) + len(fault.code) <= _SHOWN
    return (
        f"{name if short else 'This tool'} is closed for this run: it failed {CLOSED_AFTER} times with {fault.code}. "
        "Do not call it again."
    )
