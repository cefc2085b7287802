"""The options of `recover` as one value, and how they are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.named_options import NamedOptions
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.validate import check_flag, check_kind, in_seconds, shown
from amends.core.wrong_calls import missing_option
from amends.recovery.classify import On, check_on
from amends.recovery.events import EventHook
from amends.recovery.failover import Failover
from amends.recovery.upstream import Upstream

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = [
    "RAISES",
    "UNKNOWN",
    "Hook",
    "Options",
    "Plan",
    "Raises",
    "RecoveryOptions",
    "fallback_arguments",
    "hook_arguments",
    "plan_for",
]

Raises = Literal["fault", "original", "nothing"]
RAISES = ("fault", "original", "nothing")
"""What is raised when recovery gives up; `recover` describes the values."""

Hook = Callable[..., object]
"""A function of the caller. It gets the fault if it has a required parameter. Async code awaits what it returns."""

_ONE_YEAR = 31_536_000.0
"""Seconds of the longest time-out: an event loop cannot wait for any number."""

UNKNOWN = Operation()
"""An operation without any declaration: it is repeated only if it surely had no effect."""


class RecoveryOptions(TypedDict, total=False):
    """The options that `recover` takes besides the call and its arguments; `recover` describes them."""

    policy: Policy | None
    upstream: Upstream | Failover | None
    operation: Operation | None
    fallback: Callable[..., object] | Iterable[Callable[..., object]] | None
    verify: Hook | None
    on_fix: Hook | None
    refresh: Hook | None
    setup: Hook | None
    examine: Callable[[Any], Fault | None] | bool | None
    on: On | None
    timeout: float | timedelta | None
    read_only: bool
    raises: Raises
    on_event: EventHook | None


class Options(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedOptions):
    """
    Everything that says how to recover, as one value: for `recover`, `arecover`, `recovering`, `attempts` and the streams.

    An option that is given beside it, and is not the default, counts instead.

    >>> from amends import Policy, recover
    >>> from amends.testing import FakeClock, Script
    >>> reads = Options(read_only=True, policy=Policy(attempts=3))
    >>> with FakeClock():
    ...     recover(Script(TimeoutError(), "page 1"), options=reads)
    'page 1'
    """

    policy: Policy | None = None
    """How many calls and how much waiting are allowed. None: the default policy."""
    upstream: Upstream | Failover | None = None
    """The state that all callers of the same service share, or several services that can do the same."""
    operation: Operation | None = None
    """Whether a repeat is safe."""
    fallback: Callable[..., object] | Iterable[Callable[..., object]] | None = None
    """Functions that are called in order where repeating cannot help."""
    verify: Hook | None = None
    """Finds out whether a call that may have had its effect had it."""
    on_fix: Hook | None = None
    """Returns the function to call instead of one whose request has to change."""
    refresh: Hook | None = None
    """Renews credentials that were refused."""
    setup: Hook | None = None
    """Sets up what is missing."""
    examine: Callable[[Any], Fault | None] | bool | None = None
    """Looks at what the call returned; True reads failed responses."""
    on: On | None = None
    """The exceptions that are repeated. None: the failure itself decides."""
    timeout: Any = None
    """Seconds that one call may take, as a number or a timedelta."""
    read_only: bool = False
    """The call changes nothing."""
    raises: Raises = "fault"
    """What is raised when recovery gives up: "fault", "original" or "nothing"."""
    on_event: EventHook | None = None
    """Gets the events of the operation."""

    def given(self) -> dict[str, Any]:
        """
        Return the options that are not the default, by name.

        >>> Options(read_only=True).given()
        {'read_only': True}
        """
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not getattr(_DEFAULTS, name)}


_DEFAULTS = Options()


class Plan(msgspec.Struct, frozen=True):
    """
    The options of one operation. A decorated function keeps one Plan for all its calls.

    `recover` makes a Plan for each call and checks it only after the first call has failed: the checks would double the
    cost of a successful call.
    """

    policy: Policy = DEFAULT
    service: Upstream | Failover | None = None
    """The option `upstream`."""
    operation: Operation = UNKNOWN
    fallback: Callable[..., object] | Iterable[Callable[..., object]] | None = None
    verify: Hook | None = None
    on_fix: Hook | None = None
    refresh: Hook | None = None
    setup: Hook | None = None
    examine: Callable[[Any], Fault | None] | bool | None = None
    on: On | None = None
    timeout: Any = None  # seconds; a timedelta until it is checked
    read_only: bool = False
    raises: str = "fault"
    on_event: EventHook | None = None
    first_wait: float | None = None
    """The most seconds that the first call waits for its turn, if the service named no time. None: as long as the policy allows."""
    direct: bool = False
    """
    Whether the first call can be made without a flow while the upstream is open. It can if the scope has nothing for it
    (no deadline, no key), and if it has no time limit and its result is not examined. Known after `checked`.
    """
    upstream: Upstream | None = None
    failover: Failover | None = None
    """The option `upstream`, if it is one service, and if it is several that can do the same. Known after `checked`."""

    def checked(self) -> Plan:
        """
        Return the plan with checked and completed options: `fallback` is a tuple, `examine` a function or None.

        Raises:
            TypeError, ValueError: an option has the wrong type or value; the message shows a correct one.

        """
        policy, examine = self.policy, self.examine
        service = self.upstream if self.service is None else self.service
        failover = service if isinstance(service, Failover) else None
        upstream = None if isinstance(service, Failover) else service
        check_kind("policy", policy, Policy, "Policy(attempts=3)")
        if upstream is not None:
            check_kind("upstream", upstream, Upstream, 'Upstream("payments")')
        check_kind("operation", self.operation, Operation, 'Operation(name="search", read_only=True)')
        check_flag("read_only", self.read_only)
        check_on(self.on)
        raises: object = self.raises
        if not isinstance(raises, str) or raises not in RAISES:
            raise ValueError(f'raises is "fault", "original" or "nothing", not {shown(raises)}')
        timeout = None if self.timeout is None else min(in_seconds("timeout", self.timeout), _ONE_YEAR)
        if timeout is not None and not timeout > 0:
            raise ValueError("timeout is in seconds and more than 0")
        fallbacks = _as_tuple(self.fallback)
        if not isinstance(examine, bool):
            _check_functions(examine=examine)
        _check_functions(
            verify=self.verify,
            on_fix=self.on_fix,
            refresh=self.refresh,
            setup=self.setup,
            on_event=self.on_event,
        )
        if fallbacks and not policy.fallback:
            policy = replace(policy, fallback=True)
        if examine is True:
            from amends.recovery.classify import fault_in_response

            examine = fault_in_response
            if upstream is not None and upstream.vendor is not None:
                examine = partial(fault_in_response, vendor=upstream.vendor)
        refresh = self.refresh or (None if upstream is None else upstream.refresh)
        operation = self.operation
        if self.read_only and not operation.read_only:
            operation = replace(operation, read_only=True)
        return replace(
            self,
            policy=policy,
            upstream=upstream,
            failover=failover,
            operation=operation,
            fallback=fallbacks,
            refresh=refresh,
            examine=examine or None,
            timeout=timeout,
            direct=not (
                failover or examine or timeout or policy.deadline or operation.key or operation.keyed
            ),
        )

    def new_operation(self) -> Operation:
        """Return the operation of one call. If it is `keyed` and has no key, it gets a new one."""
        operation = self.operation
        if operation.keyed and operation.key is None:
            from uuid import uuid4

            return replace(operation, key=str(uuid4()))
        return operation


def plan_for(options: Options | None = None, **named: Unpack[RecoveryOptions]) -> Plan:
    """
    Return the options of `recover` as a checked Plan. An option that is named, and is not the default, counts instead of that in `options`.

    Raises:
        TypeError, ValueError: an option has the wrong type or value; the message shows a correct one.

    """
    values: dict[str, Any] = {}
    if options is not None:
        check_kind("options", options, Options, "Options(read_only=True, policy=Policy(attempts=3))")
        values = {name: getattr(options, name) for name in Options.__struct_fields__}
    for name, value in named.items():
        if name not in Options.__struct_fields__:
            raise TypeError(missing_option("recovering", name, Options.__struct_fields__))
        if not values or (value is not getattr(_DEFAULTS, name) and value is not DEFAULT):
            values[name] = value
    values["service"] = values.pop("upstream", None)
    for name, default in (("policy", DEFAULT), ("operation", UNKNOWN)):
        if values.get(name) is None:
            values[name] = default
    return Plan(**values).checked()


def _check_functions(**hooks: object) -> None:
    for name, hook in hooks.items():
        if hook is not None and not callable(hook):
            raise TypeError(f"{name} is a function, not {type(hook).__name__}")


def _as_tuple(fallback: object) -> tuple[Callable[..., object], ...]:
    if fallback is None or callable(fallback):
        return () if fallback is None else (fallback,)
    if not isinstance(fallback, Iterable):
        raise TypeError(f"fallback is a function, or several in a list, not {type(fallback).__name__}")
    functions = tuple(fallback)
    for function in functions:
        _check_functions(fallback=function)
    return functions


def fallback_arguments(
    fallback: Hook, args: tuple[object, ...], kwargs: dict[str, object], fault: Fault
) -> tuple[tuple[object, ...], dict[str, object]]:
    """
    Return the arguments for a fallback: those of the call, and the fault if the fallback takes it.

    It takes the fault if it has a parameter `fault`, or if it can be called only with one argument more than the call, or
    only with one argument.
    """
    import inspect

    try:
        signature = inspect.signature(fallback)
    except (TypeError, ValueError):
        return args, kwargs  # a builtin without a signature
    candidates = [(args, kwargs), ((*args, fault), kwargs), ((fault,), {})]
    parameter = signature.parameters.get("fault")
    if parameter is not None and parameter.kind is not parameter.POSITIONAL_ONLY and "fault" not in kwargs:
        candidates = [(args, {**kwargs, "fault": fault}), ((), {"fault": fault}), *candidates]
    for positional, named in candidates:
        try:
            signature.bind(*positional, **named)
        except TypeError:
            continue
        return positional, named
    return args, kwargs


def hook_arguments(hook: Hook, fault: Fault) -> tuple[object, ...]:
    """Return the arguments for a hook: the fault if it has a required positional parameter, otherwise none."""
    import inspect

    try:
        parameters = inspect.signature(hook).parameters.values()
    except (TypeError, ValueError):
        return ()  # a builtin without a signature
    required = any(
        each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD} and each.default is each.empty
        for each in parameters
    )
    return (fault,) if required else ()
