"""
The exception that producers raise. It carries a Fault.

    FaultError
    ├── everyday errors (amends.errors): RateLimitedError, TimeoutError (also the builtin), …
    │   └── the same codes in each vocabulary: amends.errors.adcp.RateLimitedError, …
    ├── codes of one vocabulary only: amends.errors.adcp.BudgetTooLowError, …
    ├── ARCPError (amends.errors.arcp): every ARCP error
    └── your own codes, one class each:

        class OutOfStock(FaultError):
            code = "OUT_OF_STOCK"
            recovery = "correctable"
            status = 409
            exit = 6
            adcp_code = "X_SHOP_OUT_OF_STOCK"  # its AdCP name, if it has one

Defining such a class registers its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault
from amends.core.validate import in_seconds
from amends.core.vocabulary import APP, EVERYDAY, Row, row_for

if TYPE_CHECKING:
    from datetime import timedelta

    from amends.core.decision import Decision

__all__ = ["FaultError"]


class FaultError(Exception):
    """
    An exception that carries a Fault as `.fault`. Recovery sets `.decision` and `.history`.

    >>> error = FaultError("The kettle is cold", code="CONFLICT", retry_after=30)
    >>> error.fault.recovery, error.details
    (<Recovery.CORRECTABLE: 'correctable'>, None)
    """

    code: str = "INTERNAL_ERROR"
    """The code of the class; on an instance, the code of its fault."""
    vocabulary: str = EVERYDAY
    message: str
    """The default message of your own class; on an instance, the message of its fault."""

    fault: Fault
    decision: Decision | None = None
    """The last decision of recovery; None without recovery."""
    history: tuple[Any, ...] = ()
    """Every attempt that recovery made; empty without recovery."""

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        retry_after: float | timedelta | None = None,
        details: dict[str, Any] | None = None,
        suggestions: Iterable[str] | str = (),
        field: str | None = None,
        **more: Any,
    ) -> None:
        """
        Create an error with what the caller needs to act on it.

        Args:
            message: what happened, for people; default: the message of the code.
            code: a code other than that of the class.
            retry_after: seconds after which the same request may succeed.
            details: structured context.
            suggestions: recovery steps, the most likely fix first.
            field: the part of the request that is wrong.
            more: any other field of Fault (recovery, trace_id, doc_uri, status, errors, …).

        """
        vocabulary = more.pop("vocabulary") if "vocabulary" in more else self.vocabulary
        code = code or self.code
        if vocabulary == "adcp":
            _check_adcp(code)
        if message is None:
            message = row_for(vocabulary, code, more.get("status")).message
        fault = Fault(
            code=code,
            message=message,
            vocabulary=vocabulary,
            retry_after=None if retry_after is None else in_seconds("retry_after", retry_after),
            details=details,
            suggestions=suggestions,  # type: ignore[arg-type]
            field=field,
            **more,
        )
        self._set_fault(fault)

    def _set_fault(self, fault: Fault) -> None:
        Exception.__init__(self, fault.message)
        self.fault = fault
        # S5 reads err.code, which must be the code of the fault even if the class has another one.
        self.code, self.vocabulary, self.message = fault.code, fault.vocabulary, fault.message

    @classmethod
    def from_fault(cls, fault: Fault) -> FaultError:
        """
        Return an exception for a fault, of the class that its code has in its vocabulary.

        >>> type(FaultError.from_fault(Fault(code="TIMEOUT", vocabulary="arcp"))).__name__
        'TimeoutError'
        """
        from amends.errors.classes import class_for

        return _rebuild(class_for(fault.vocabulary, fault.code), fault)

    @property
    def details(self) -> dict[str, Any] | None:
        """The fault's details. Assigning replaces them, to add context before raising again (R10)."""
        return self.fault.details

    @details.setter
    def details(self, details: dict[str, Any] | None) -> None:
        self.fault = replace(self.fault, details=details)

    def __str__(self) -> str:
        return self.fault.message or self.fault.code

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fault.message!r}, code={self.fault.code!r})"

    def __reduce__(self) -> tuple[Callable[..., FaultError], tuple[Any, ...], dict[str, Any]]:
        # Pickles the fault and the attributes, so that subclasses with other constructors work as well.
        state = dict(self.__dict__)
        if "__notes__" in state:
            state["__notes__"] = list(state["__notes__"])
        return _rebuild, (type(self), self.fault), state

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Register a class that defines a code. Generated classes also define a vocabulary, and are not registered."""
        super().__init_subclass__(**kwargs)
        if "code" in cls.__dict__ and "vocabulary" not in cls.__dict__:
            cls.vocabulary = APP
            _register(cls)


def _rebuild(cls: type[FaultError], fault: Fault) -> FaultError:
    error = cls.__new__(cls)
    error._set_fault(fault)  # noqa: SLF001 - the same module
    return error


def _check_adcp(code: str) -> None:
    """Check that a code is a standard AdCP code or a vendor's (A15)."""
    from amends.core.vocabularies.adcp import check_code

    check_code(code)


def _register(cls: type[FaultError]) -> None:
    """Add the row of a user's own code. Facts that the class does not define come from its parent class."""
    from amends.core.vocabularies.app import add
    from amends.errors.classes import register_class

    given: dict[str, Any] = {}
    parent: Row | None = None
    for above in cls.__mro__[: cls.__mro__.index(FaultError)]:
        if above is not cls and issubclass(above, FaultError) and "code" in above.__dict__:
            parent = row_for(above.vocabulary, above.code)
            break
        # A base class without a code has no row; its attributes count as those of the class.
        given = {**above.__dict__, **given}
    recovery = Recovery(given.get("recovery", parent.recovery if parent else Recovery.TERMINAL))
    base = parent or row_for(EVERYDAY, _NEAREST[recovery])
    first_line = (cls.__doc__ or "").strip().partition("\n")[0]
    message = given.get("message", first_line or base.message)
    adcp_code = given.get("adcp_code")
    if adcp_code is not None:
        _check_adcp(adcp_code)
    add(
        Row(
            code=given["code"],
            recovery=recovery,
            everyday=given.get("everyday", base.everyday),
            message=message,
            suggestion=given.get("suggestion", base.suggestion),
            user_message=given.get("user_message", base.user_message),
            executed=Executed(given.get("executed", base.executed)),
            actor=Actor(given.get("actor", base.actor_under(recovery))),
            status=given.get("status", base.status),
            exit=given.get("exit", base.exit),
            wait=given.get("wait", base.wait),
            adcp_code=adcp_code,
        )
    )
    register_class(cls)


# The nearest everyday code, if only the recovery class is known.
_NEAREST = {
    Recovery.TRANSIENT: "SERVICE_UNAVAILABLE",
    Recovery.CORRECTABLE: "VALIDATION_ERROR",
    Recovery.TERMINAL: "PERMISSION_DENIED",
    Recovery.UNCERTAIN: "INTERNAL_ERROR",
}
