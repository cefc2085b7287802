"""
Exceptions that litellm makes from those of other libraries.

litellm keeps neither the body nor, for some providers, the status: an overload of Anthropic (529) becomes a 500, and a
connection that was refused gets a made-up response. What it converted is in the chain of the exception, and is read there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amends.core.wire import Unreadable, read
from amends.foreign.attributes import headers_of, status_of, usual
from amends.foreign.classes import row_for_class
from amends.foreign.safe_attr import attribute, is_exception
from amends.foreign.sdk_names import sdk_of

__all__ = ["converted_from", "is_converted", "litellm_response"]

_DEPTH = 8
_NO_ANSWER = frozenset({"SERVICE_UNAVAILABLE", "TIMEOUT"})


def is_converted(exc: BaseException) -> bool:
    """Return whether litellm made this exception from another one."""
    return type(exc).__module__ == "litellm.exceptions"


def converted_from(exc: BaseException) -> BaseException | None:
    """Return the failure of the network that litellm converted; None if there was an answer, or if nothing is known."""
    for inner in _chain(exc):
        cls = type(inner)
        if cls.__module__.startswith("litellm."):
            continue
        if status_of(inner) is not None:
            return None
        row = row_for_class(cls)
        if row is not None and row.meaning.code in _NO_ANSWER:
            return inner
    return None


def litellm_response(exc: BaseException) -> dict[str, object] | None:
    """Return the answer that litellm converted, or what litellm itself keeps of it."""
    for inner in _chain(exc):
        if type(inner).__module__.startswith("litellm.llms."):
            found = _provider_response(inner)
        elif sdk_of(type(inner)) is not None and not is_converted(inner):
            found = usual(inner)
        else:
            continue
        if found is not None and found["body"]:
            return _wrapped(found)
    return usual(exc)


def _provider_response(exc: BaseException) -> dict[str, object] | None:
    """Litellm's own clients: the message is the body."""
    text, status = attribute(exc, "message"), status_of(exc)
    if not isinstance(text, str) or status is None:
        return None
    try:
        body = read(text)
    except Unreadable:
        return None
    return {"status": status, "headers": headers_of(exc), "body": body} if isinstance(body, dict) else None


def _wrapped(found: dict[str, object]) -> dict[str, object]:
    body = found["body"]
    if isinstance(body, Mapping) and "error" not in body:
        return {**found, "body": {"error": body}}
    return found


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that led to this one."""
    for _ in range(_DEPTH):
        held = (attribute(exc, name) for name in ("original_exception", "__cause__", "__context__"))
        inner = next((each for each in held if is_exception(each) and each is not exc), None)
        if inner is None:
            return
        yield inner
        exc = inner
