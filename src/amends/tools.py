"""
The text that a model gets when a tool fails, for any agent framework.

    from amends.tools import failure_text, reporting

    @reporting
    def book(day: str) -> str: ...

`failure_text` returns the text of one failure. `reporting` decorates a tool so that it returns this text instead of
raising. The text is that of `amends.for_llm`: facts outside the fence, the failing side's message inside it without
credentials, and no text of exceptions of other libraries.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, ParamSpec

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.fence import for_llm
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects.outgoing import outgoing
from amends.errors.base import FaultError
from amends.foreign import from_exception
from amends.logs import logger
from amends.proof import Claim, Proof, rests_on
from amends.serving.server_errors import is_about_a_part

__all__ = ["failure_text", "reporting"]

LOG = logger("amends.tools")

P = ParamSpec("P")


@explains_wrong_calls
def failure_text(
    failure: BaseException | Fault,
    *,
    repeats: int = 1,
    hosts: Collection[str] = (),
    arguments: Collection[str] = (),
) -> str:
    """
    Return what a model may read about a failure: what to do, whether the call may have had its effect, what was tried.

    `repeats`, `hosts` and `arguments` are those of `amends.for_llm`.

    >>> print(failure_text(ConnectionRefusedError("db.internal:5432")).splitlines()[0][:60])
    Failed: SERVICE_UNAVAILABLE. Recovery: transient (retry late
    """
    fault = failure if isinstance(failure, Fault) else from_exception(failure)
    text = for_llm(outgoing(fault, "model"), repeats=repeats, hosts=hosts, arguments=arguments)
    if isinstance(failure, Fault):
        return text
    return _after_attempts(failure, text)


@rests_on(Claim.NOT_HAPPENED, Proof.USER)
def tool_fault(exc: BaseException, *, read_only: bool = False) -> Fault:
    """
    Return the fault of an exception that a tool raised (M3, "Failures from inside a handler").

    A call inside the tool that surely had no effect says nothing about what the tool did before it.

    >>> tool_fault(ConnectionRefusedError()).executed.value, tool_fault(ConnectionRefusedError(), read_only=True).executed.value
    ('maybe', 'no')
    """
    fault = from_exception(exc)
    if not is_about_a_part(exc, fault):
        return fault
    return replace(fault, executed=Executed.NO if read_only else Executed.MAYBE)


def _after_attempts(failure: BaseException, text: str) -> str:
    """Return the text, after how often recovery made the call, if it was more than once."""
    if not isinstance(failure, FaultError) or failure.decision is None or len(failure.history) < 2:
        return text
    return f"Tried {len(failure.history)} times. {text}"


@explains_wrong_calls
def reporting(function: Callable[P, Any]) -> Callable[P, Any]:
    """
    Decorate a tool, plain or async, so that it returns the text of a failure instead of raising it.

    Exceptions that are no FaultError are logged with their traceback. Cancellation and other exceptions that are no
    Exception pass through.

    >>> from amends.errors import NotFoundError
    >>> @reporting
    ... def seats(train: int) -> int:
    ...     raise NotFoundError("There is no such train")
    >>> seats(7).splitlines()[0]
    'Failed: NOT_FOUND. Recovery: correctable (change the request). It had no effect.'
    """
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def tool(*args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                return await function(*args, **kwargs)
            except Exception as exc:  # noqa: BLE001 - the model gets a text for every kind of failure
                return log_and_describe(exc, function.__name__, _parameters(function))

        return tool

    @functools.wraps(function)
    def plain(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as exc:  # noqa: BLE001
            return log_and_describe(exc, function.__name__, _parameters(function))

    return plain


def _parameters(function: Callable[..., object]) -> Collection[str]:
    """Return the names of a tool's parameters: a wrong field of one of these names is named outside the fence."""
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def log_and_describe(
    exc: Exception,
    name: str,
    arguments: Collection[str] = (),
    *,
    fault: Fault | None = None,
    repeats: int = 1,
    hosts: Collection[str] = (),
) -> str:
    """
    Log the failure of the tool `name`, and return its text. The log has details that the model does not get.

    Args:
        exc: the failure.
        name: the tool.
        arguments: the names of the tool's arguments.
        fault: the fault of the failure, if the caller knows more than `tool_fault`.
        repeats: how often the call has failed in a row.
        hosts: the domains on which a set-up page may be.

    """
    if isinstance(exc, FaultError):
        LOG.info("tool %s failed with %s", name, outgoing(exc.fault, "telemetry").code)
    else:
        LOG.error("tool %s failed", name, exc_info=exc)
    described = tool_fault(exc) if fault is None else fault
    return _after_attempts(exc, failure_text(described, repeats=repeats, hosts=hosts, arguments=arguments))
