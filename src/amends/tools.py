"""
A tool's failure as a model should read it, for any agent framework.

    from amends.tools import failure_text, reporting

    @reporting
    def book(day: str) -> str: ...

`failure_text` gives the text of one failure; `reporting` is a tool that answers with it instead of raising. Both say what
`amends.for_llm` says: our facts outside the fence, the failing side's words inside, nothing of a foreign exception.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, ParamSpec

from amends.core.decision import REASONS
from amends.core.fault import Fault
from amends.core.fence import for_llm
from amends.errors.base import FaultError
from amends.foreign import from_exception

__all__ = ["failure_text", "reporting"]

LOG = logging.getLogger("amends.tools")

P = ParamSpec("P")


def failure_text(failure: BaseException | Fault) -> str:
    """
    What a model may read about a failure: what to do, whether it may have happened, and what was tried already.

    >>> print(failure_text(ConnectionRefusedError("db.internal:5432")).splitlines()[0][:60])
    The call failed with code "SERVICE_UNAVAILABLE". Recovery: t
    """
    if isinstance(failure, Fault):
        return for_llm(failure)
    text = for_llm(from_exception(failure))
    tried = _tried(failure)
    return f"{tried}\n{text}" if tried else text


def _tried(failure: BaseException) -> str:
    """What recovery did already, so that a model does not do it again; in our words alone."""
    if not isinstance(failure, FaultError) or failure.decision is None or not failure.history:
        return ""
    times = len(failure.history)
    why = REASONS.get(failure.decision.reason, "")
    return f"The call was made {times} time{'s' if times > 1 else ''} and given up on{f': {why}' if why else ''}."


def reporting(function: Callable[P, Any]) -> Callable[P, Any]:
    """
    The same tool, plain or async; a failure is its answer. What nobody expected goes to the log.

    Cancellation and its like pass through.
    """
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def tool(*args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                return await function(*args, **kwargs)
            except Exception as exc:  # noqa: BLE001 - failures of any kind are what this is for
                return answered(exc, function.__name__)

        return tool

    @functools.wraps(function)
    def plain(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as exc:  # noqa: BLE001
            return answered(exc, function.__name__)

    return plain


def answered(exc: Exception, name: str) -> str:
    """The text, after the log has what the model does not."""
    if isinstance(exc, FaultError):
        LOG.info("tool %s failed with %s", name, exc.fault.code)
    else:
        LOG.error("tool %s failed", name, exc_info=exc)
    return failure_text(exc)
