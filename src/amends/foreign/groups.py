"""
Exception groups, as task groups raise them: their parts, and one fault for several.

A group of one exception is that exception, in every binding. A group of several is joined by `join` from the faults that the
binding gives to its parts: parts with the same code keep it, others follow M1's row for nested errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import EVERYDAY, row_for
from amends.foreign.safe_attr import attribute

__all__ = ["MAX_PARTS", "combine", "join", "joined", "parts_of", "single"]

MAX_PARTS = 1000
"""The most exceptions of a group that are read, all levels together."""
_DEPTH = 16
"""Levels of groups that are read. A deeper group counts as one exception of an unknown class."""
_MAX_SUGGESTIONS = 10
_EFFECTS = (Executed.NO, Executed.MAYBE, Executed.YES)


def parts_of(exc: BaseException) -> tuple[BaseException, ...]:
    """
    Return the exceptions in a group and in the groups inside it; for any other exception, that exception alone.

    >>> parts_of(ExceptionGroup("tasks", [KeyError(), ExceptionGroup("more", [OSError()])]))
    (KeyError(), OSError())
    """
    if not issubclass(type(exc), BaseExceptionGroup):
        return (exc,)
    return tuple(_leaves(exc, _DEPTH, [MAX_PARTS]))


def _leaves(exc: BaseException, depth: int, left: list[int]) -> Iterator[BaseException]:
    parts = attribute(exc, "exceptions") if depth and issubclass(type(exc), BaseExceptionGroup) else None
    if not isinstance(parts, tuple) or not parts:
        left[0] -= 1
        yield exc
        return
    for part in parts:
        if left[0] <= 0:
            return
        yield from _leaves(part, depth - 1, left)


def single(exc: BaseException) -> BaseException:
    """
    Return the exception inside groups of one; any other exception, and a group of several, is returned as it is.

    >>> single(ExceptionGroup("tasks", [ExceptionGroup("more", [KeyError()])]))
    KeyError()
    """
    parts = parts_of(exc)
    return parts[0] if len(parts) == 1 else exc


def join(exc: BaseException, fault_of: Callable[[BaseException], Fault]) -> Fault:
    """
    Return the fault of an exception; of a group, one fault for all its exceptions, with each of them in `errors`.

    Args:
        exc: what a handler, tool, command or step raised.
        fault_of: returns the fault of one exception. It is not called with a group, except with one that is nested too deep.

    >>> group = ExceptionGroup("tasks", [KeyError(), OSError()])
    >>> join(group, lambda each: Fault(code="VALIDATION_ERROR", field=type(each).__name__)).code
    'VALIDATION_ERROR'

    """
    return joined([fault_of(part) for part in parts_of(exc)])


def joined(parts: Sequence[Fault]) -> Fault:
    """
    Return one fault for the failures of one handler; a single one is returned as it is.

    As `combine`, but if some parts are transient, the others uncertain and none can be corrected, the result is uncertain.
    """
    if len(parts) == 1:
        return parts[0]
    found = combine(parts)
    if found.recovery is Recovery.CORRECTABLE and not any(part.recovery is found.recovery for part in parts):
        # M1 says "correctable", but there is nothing to correct: the part that may be a bug decides.
        first = next(part for part in parts if part.recovery is Recovery.UNCERTAIN)
        return replace(
            first, errors=tuple(parts), executed=found.executed, retry_after=None, attempt=found.attempt
        )
    return found


_SAME = ("status", "type", "title", "actor", "user_message", "doc_uri")
"""What the joined fault has too if it is the same in all parts with one code."""


def _is_shared(name: str, parts: Sequence[Fault]) -> bool:
    return all(getattr(part, name) == getattr(parts[0], name) for part in parts)


def combine(parts: Sequence[Fault], otherwise: tuple[str, str] = ("INTERNAL_ERROR", EVERYDAY)) -> Fault:
    """
    Return one fault for several, with each of them in `errors`.

    If all have the same recovery, so has the result; otherwise it is terminal if any is, and correctable if none is
    (M1). The code is that of the first part with this recovery, or `otherwise`, a code and its vocabulary. `executed` is
    the worst of all, `retry_after` the longest. Parts with the same code keep it, with the first field and the suggestions of the parts with this recovery.
    """
    kinds = {part.recovery for part in parts}
    if len(kinds) == 1:
        recovery = parts[0].recovery
    else:
        recovery = Recovery.TERMINAL if Recovery.TERMINAL in kinds else Recovery.CORRECTABLE
    first = next((part for part in parts if part.recovery is recovery), None)
    code, vocabulary = otherwise if first is None else (first.code, first.vocabulary)
    more: dict[str, Any] = {}
    if len({(part.vocabulary, part.code) for part in parts}) == 1:
        code, vocabulary = parts[0].code, parts[0].vocabulary
        suggestions = dict.fromkeys(
            each for part in parts if part.recovery is recovery for each in part.suggestions
        )
        more = {name: getattr(parts[0], name) for name in _SAME if _is_shared(name, parts)}
        more["field"] = next((part.field for part in parts if part.field is not None), None)
        more["suggestions"] = tuple(suggestions)[:_MAX_SUGGESTIONS]
    if any(part.raised is not None for part in parts):
        more["raised"] = combine([part.raised or part for part in parts], otherwise)
    more["in_doubt"] = any(part.in_doubt for part in parts)
    row = row_for(vocabulary, code, None if first is None else first.status)
    waits = [part.retry_after for part in parts if part.retry_after is not None]
    return Fault(
        code=code,
        message=row.message,
        recovery=recovery,
        vocabulary=vocabulary,
        retry_after=max(waits, default=None) if recovery is Recovery.TRANSIENT else None,
        errors=tuple(parts),
        executed=max((part.executed for part in parts), key=_EFFECTS.index),
        attempt=max((part.attempt for part in parts if part.attempt is not None), default=None),
        **{"actor": row.actor_under(recovery), **more},
    )
