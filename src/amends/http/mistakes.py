"""
Mistakes of the program that calls: an invalid header value, an address without a scheme, the wrong kind of transport.

They are raised at once and as they are. Nothing was wrong with the service, so nothing is repeated and no Upstream counts
a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from amends.errors.base import FaultError

__all__ = ["mistakes_pass", "raise_if_mistake"]

_KINDS = (
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    AssertionError,
    NotImplementedError,
    ArithmeticError,
    RecursionError,
    ValueError,
)


class _MistakeError(BaseException):
    """Carries a mistake through `recover`, which handles every Exception."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def raise_if_mistake(error: Exception, kinds: tuple[type[Exception], ...] = ()) -> None:
    """
    Raise so that `mistakes_pass` raises the error as it is, if it is a mistake; otherwise return.

    Args:
        error: what an attempt raised.
        kinds: the exceptions of the client's library for mistakes.

    """
    # Errors of TLS certificates are ValueErrors too, but no mistakes of the caller.
    if isinstance(error, kinds) or (
        isinstance(error, _KINDS)
        and not isinstance(error, FaultError)
        and type(error).__module__ not in {"ssl", "_ssl"}
    ):
        raise _MistakeError(error)


@contextmanager
def mistakes_pass() -> Iterator[None]:
    """Raise a mistake that `raise_if_mistake` found inside the block as it is."""
    try:
        yield
    except _MistakeError as found:
        error = found.error
    else:
        return
    raise error
