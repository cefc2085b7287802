"""
Exception classes of an application, registered with the code that they mean.

`register` is for the whole process; the option `errors={E: "CODE"}` of a binding is for that binding. Both use `Known` and
the same lookup along the MRO. As for every foreign exception, the text of a registered one is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.validate import member, shown
from amends.core.vocabulary import APP, EVERYDAY, row_for, vocabulary
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["Known", "known_errors", "register", "registered_class", "registered_fault"]


class Known(msgspec.Struct, frozen=True):
    """What an exception class means."""

    code: str
    vocabulary: str
    recovery: Recovery | None = None
    executed: Executed | None = None

    def fault(self) -> Fault:
        """Return the fault of an exception of this class, with the message of its code."""
        from amends.errors.base import class_for

        row = row_for(self.vocabulary, self.code)
        recovery = self.recovery or row.recovery
        cls = class_for(self.vocabulary, self.code)
        kind, title = getattr(cls, "type", None), getattr(cls, "title", None)
        return Fault(
            code=self.code,
            message=row.message,
            recovery=recovery,
            vocabulary=self.vocabulary,
            executed=self.executed or row.executed,
            actor=row.actor_under(recovery),
            type=kind if isinstance(kind, str) else None,
            title=title if isinstance(title, str) else None,
        )


_REGISTERED: dict[type[BaseException], Known] = {}
# A code is looked up in this order.
_VOCABULARIES = (EVERYDAY, APP, "http", "adcp", "task", "cli", "arcp")


@explains_wrong_calls
def register(
    kind: type[BaseException],
    *,
    code: str,
    recovery: Recovery | str | None = None,
    executed: Executed | str | None = None,
) -> None:
    """
    Register what an exception class of yours, and its subclasses, mean in this process.

    Server bindings answer with the code, and `recover` and `from_exception` decide by it. The exception's text is not
    sent. Registering a class again replaces its meaning.

    Args:
        kind: the class.
        code: an everyday code, a code of your own, or one of a vocabulary.
        recovery: the recovery class, if it is not the code's own.
        executed: whether the call can have had its effect, if that is not the code's own: "no", "maybe" or "yes".

    Raises:
        TypeError, ValueError: the class is no exception class, or a value is not one of the possible ones.

    >>> import amends
    >>> class SeatTaken(Exception): ...
    >>> amends.register(SeatTaken, code="CONFLICT")
    >>> amends.from_exception(SeatTaken("row 3, seat 14")).code
    'CONFLICT'

    """
    _REGISTERED[_check_class(kind)] = _known(code, recovery, executed)


def known_errors(errors: Mapping[type[BaseException], str]) -> dict[type[BaseException], Known]:
    """
    Return the option `errors={E: "CODE"}` of a binding as a table for `registered_fault`.

    Raises:
        TypeError, ValueError: a key is no exception class, or a code does not exist.

    """
    if not isinstance(errors, Mapping):
        raise TypeError(f'errors is a dict, not {type(errors).__name__}: write {{SeatTaken: "CONFLICT"}}')
    return {
        _check_class(kind): code if isinstance(code, Known) else _known(code, None, None)
        for kind, code in errors.items()
    }


def registered_fault(
    cls: type[BaseException], errors: Mapping[type[BaseException], Known] | None = None
) -> Fault | None:
    """Return the fault of an exception class: a binding's `errors` first, then the process's. None for an unknown class."""
    for table in (errors, _REGISTERED):
        found = _nearest(cls, table)
        if table and found is not None:
            return table[found].fault()
    return None


def registered_class(
    cls: type[BaseException], errors: Mapping[type[BaseException], object] | None = None
) -> type[BaseException] | None:
    """Return the registered class that `registered_fault` decides by: `cls` or one of its base classes."""
    return _nearest(cls, errors) or _nearest(cls, _REGISTERED)


def _nearest(
    cls: type[BaseException], table: Mapping[type[BaseException], object] | None
) -> type[BaseException] | None:
    return next((each for each in cls.__mro__ if each in table), None) if table else None


def _check_class(kind: object) -> type[BaseException]:
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise TypeError(f"an exception class is registered, not {shown(kind)}")
    return kind


def _known(code: object, recovery: Recovery | str | None, executed: Executed | str | None) -> Known:
    for name in _VOCABULARIES:
        if isinstance(code, str) and code in vocabulary(name).rows:
            return Known(
                code,
                name,
                None if recovery is None else member("recovery", recovery, Recovery),
                None if executed is None else member("executed", executed, Executed),
            )
    raise ValueError(
        f"{shown(code)} is no known code: use one of `amends explain`, or define a FaultError class with it first"
    )
