"""
What a client raises when recovery gave up: `raises="fault"`, `"original"` or `"nothing"`.

- "fault": the typed error of the failure.
- "original": the library's own exception (`httpx2.HTTPStatusError`, `requests.HTTPError`,
  `aiohttp.ClientResponseError`, a connection error), with `fault`, `decision`, `history` and `key` as attributes and a note.
- "nothing": the last response is returned. If there is none, the library's own exception is raised as it is.
"""

from __future__ import annotations

from typing import Any

from amends.core.decision import REASONS
from amends.core.text import one_line
from amends.errors.base import FaultError

__all__ = ["RAISES", "check_raises", "original_of", "return_or_raise"]

_DEPTH = 16
"""The most causes that are followed."""
RAISES = ("fault", "original", "nothing")


def check_raises(raises: str) -> None:
    """Raise ValueError if the value of the option is unknown."""
    if raises not in RAISES:
        raise ValueError(f'raises is "fault", "original" or "nothing", not {raises!r}')


def return_or_raise(error: FaultError, raises: str) -> Any:
    """Return the error's response if `raises` is "nothing" and there is one; otherwise raise as the option says."""
    if raises == "nothing":
        response = getattr(error, "response", None)
        if response is not None:
            return response
        cause = _library_error(error)
        if cause is not None:
            raise cause
    elif raises == "original":
        original = original_of(error)
        if original is not None:
            raise original
    raise error


def original_of(error: FaultError) -> BaseException | None:
    """
    Return the library's own exception for a failure, with the fault attached; None if the library has none.

    A failed response gives what its `raise_for_status` raises. A call that was never sent (its Upstream held it back)
    has no exception of the library.
    """
    original = _library_error(error)
    response = getattr(error, "response", None)
    if response is not None:
        try:
            response.raise_for_status()
        except Exception as exc:  # noqa: BLE001 - the exception is what is asked for
            original = exc
    if original is None:
        return None
    for name in ("fault", "decision", "history", "own", "key", "key_is_new"):
        setattr(original, name, getattr(error, name))
    for note in getattr(error, "__notes__", None) or [_note(error)]:
        original.add_note(note)
    return original


def _library_error(error: FaultError) -> BaseException | None:
    """Return the exception of the client's library that a typed error was made from."""
    cause: BaseException | None = error
    for _ in range(_DEPTH):
        if not isinstance(cause, FaultError):
            return cause
        cause = cause.__cause__
    # A chain of causes may contain itself.
    return None


def _note(error: FaultError) -> str:
    """Return one line for the traceback: the code, the decision, the number of attempts."""
    decision, code = error.decision, one_line(error.fault.code)
    if decision is None:
        return f"amends: {code}"
    attempts = len(error.history)
    return (
        f"amends: {code}, decision: {decision.action.value} "
        f"({REASONS.get(decision.reason, decision.reason)}), attempts: {attempts}"
    )
