"""
Which exceptions are bugs of the code that raised them (M7).

A bug is INTERNAL_ERROR, and the process that raised it does not repeat the call: it would fail the same way. Classes that
the application registered or that the tables of this package know, and exceptions that carry a response, are read by those
first.
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.core.crosswalk import code_in
from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import EVERYDAY, row_for
from amends.errors.base import FaultError
from amends.foreign.classes import rows
from amends.foreign.registry import Known, registered_fault
from amends.foreign.responses import response_fault
from amends.foreign.safe_attr import attribute

__all__ = ["bug_fault", "is_bug", "is_bug_class"]

_BUGS = frozenset(
    f"builtins.{cls.__name__}"
    for cls in (
        LookupError,
        TypeError,
        AttributeError,
        NameError,
        ArithmeticError,
        AssertionError,
        NotImplementedError,
        RecursionError,
    )
)
_VALUES = frozenset({"builtins.ValueError", "builtins.UnicodeError", "json.decoder.JSONDecodeError"})
"""Bugs where a handler raised them. Elsewhere they may come from a response that was cut off."""
_DEPTH = 16
_MAX_PARTS = 1000


def bug_fault(vocabulary: str = EVERYDAY) -> Fault:
    """
    Return the fault of a bug, in a vocabulary.

    AdCP has neither INTERNAL_ERROR nor "uncertain": there it is SERVICE_UNAVAILABLE and terminal.

    >>> bug_fault("adcp").code, bug_fault("adcp").recovery.value
    ('SERVICE_UNAVAILABLE', 'terminal')
    """
    row = row_for(EVERYDAY, "INTERNAL_ERROR")
    terminal = vocabulary == "adcp"
    raised = None if vocabulary == EVERYDAY else bug_fault()
    return Fault(
        code=code_in(vocabulary, row.code),
        message=row.message,
        recovery=Recovery.TERMINAL if terminal else row.recovery,
        vocabulary=vocabulary,
        executed=Executed.MAYBE,
        actor=Actor.OPERATOR,
        raised=raised,
    )


def is_bug(
    exc: BaseException,
    *,
    in_handler: bool = True,
    errors: Mapping[type[BaseException], Known] | None = None,
) -> bool:
    """
    Return whether an exception is a bug: a LookupError, TypeError, AttributeError and their like without a known cause.

    An exception group is a bug if any of its parts is one.

    Args:
        exc: the exception. Its text is not read, and the function does not raise whatever its attributes do.
        in_handler: a tool, command or handler raised it, so that a ValueError (also of JSON and of text encodings) is a
            bug too. False for a call inside `recover`, where a response that was cut off raises ValueError.
        errors: the classes that a binding's option `errors` names, from `registry.known_errors`. They are no bugs, as
            the classes of `amends.register` are none.

    >>> is_bug(KeyError("order")), is_bug(ConnectionResetError())
    (True, False)
    >>> is_bug(ValueError(), in_handler=False)
    False

    """
    try:
        return _is_bug(exc, in_handler, errors, _DEPTH, [_MAX_PARTS])
    except Exception:  # noqa: BLE001 - an exception class may raise anything when it is inspected
        return False


def _is_bug(
    exc: BaseException,
    in_handler: bool,
    errors: Mapping[type[BaseException], Known] | None,
    depth: int,
    parts_left: list[int],
) -> bool:
    cls = type(exc)
    if issubclass(cls, FaultError) or depth == 0:
        return False
    if issubclass(cls, BaseExceptionGroup):
        parts = attribute(exc, "exceptions")
        for part in parts if isinstance(parts, tuple) else ():
            parts_left[0] -= 1
            if parts_left[0] >= 0 and _is_bug(part, in_handler, errors, depth - 1, parts_left):
                return True
        return False
    return _is_bug_class(cls, in_handler) and registered_fault(cls, errors) is None and not _has_response(exc)


def _is_bug_class(cls: type, in_handler: bool) -> bool:
    """Return whether the nearest class along the MRO that is known at all is one of the bugs."""
    known = rows()
    for base in cls.__mro__:
        name = f"{base.__module__}.{base.__qualname__}"
        if name in _BUGS:
            return True
        if name in _VALUES and (in_handler or name in known):
            return in_handler
        if name in known:
            return False
    return False


def _has_response(exc: BaseException) -> bool:
    try:
        return response_fault(exc) is not None
    except Exception:  # noqa: BLE001 - its attributes may raise anything
        return False


def is_bug_class(cls: type[BaseException], *, in_handler: bool = True) -> bool:
    """
    Return whether the exceptions of a class are bugs, as far as the class shows.

    >>> is_bug_class(KeyError), is_bug_class(RuntimeError)
    (True, False)
    """
    return _is_bug_class(cls, in_handler)
