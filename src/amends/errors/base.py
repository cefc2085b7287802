"""
FaultError, the base class of all typed errors: an exception that carries a Fault.

    FaultError
    ├── everyday errors (amends.errors): RateLimitedError, TimeoutError (also the builtin), …
    │   └── the same codes of each vocabulary: amends.errors.adcp.RateLimitedError, …
    ├── codes only one vocabulary has: amends.errors.adcp.BudgetTooLowError, …
    ├── ARCPError (amends.errors.arcp): every ARCP error
    └── classes of your own, one per code:

        class OutOfStock(FaultError):
            code = "OUT_OF_STOCK"
            recovery = "correctable"
            status = 409
            exit = 6
            title = "Out of stock"  # `type` and `title` of its problem documents
            adcp_code = "X_SHOP_OUT_OF_STOCK"  # its AdCP name, if it has one

Defining such a class registers its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault
from amends.core.hints import excluded, finite
from amends.core.text import strip, truncate
from amends.core.validate import in_seconds, shown
from amends.core.vocabulary import APP, EVERYDAY, Row, is_registered, row_for
from amends.core.vocabulary import vocabulary as vocabulary_of
from amends.core.wire import plain
from amends.core.wrong_calls import missing_option

if TYPE_CHECKING:
    from datetime import timedelta

    from amends.core.decision import Decision

__all__ = ["FaultError", "class_for", "class_name", "find_class", "is_about_a_call", "register_class"]


class FaultError(Exception):
    """
    The base class of all typed errors. `.fault` describes the failure; recovery sets `.decision` and `.history`.

    >>> error = FaultError("The kettle is cold", code="CONFLICT", retry_after=30)
    >>> error.fault.recovery, error.details
    (<Recovery.CORRECTABLE: 'correctable'>, None)
    """

    code: str = "INTERNAL_ERROR"
    """On a class, its code; on an instance, the code of its fault."""
    vocabulary: str = EVERYDAY
    message: str
    """On a class of your own, the default message; on an instance, the message of its fault."""

    fault: Fault
    decision: Decision | None = None
    """Recovery's last decision; None if the error did not pass through recovery."""
    history: tuple[Any, ...] = ()
    """Every attempt that recovery made; empty if the error did not pass through recovery."""
    delivered: int = 0
    """The number of items that `recover_stream` had yielded before the failure."""
    relayed: bool = False
    """Whether an upstream's failure was passed on with `chain.relay`, which declares that nothing else was done."""
    passed_on: BaseException | None = None
    """The exception that `chain.relay` was given."""
    own: bool = False
    """Whether a client with `own=True` raised it: the failing service is part of our system."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of the HTTP response, as given to the constructor."""
    key: str | None = None
    """The idempotency key that the failed call carried: a repeat of a call that may have had its effect needs the same."""
    key_is_new: bool = False
    """Whether the key was made for this one call: code that is called again makes another key, and the service then acts twice."""
    waits_for_key: bool = False
    """Whether the service still works on an earlier request with this key: the wait costs no attempt, once per call."""

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        retry_after: float | timedelta | None = None,
        details: dict[str, Any] | None = None,
        suggestions: Iterable[str] | str = (),
        field: str | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        **more: Any,
    ) -> None:
        """
        Create the error and its Fault.

        A transient error with `retry_after` tells the caller to send the same request again, so its `executed` is "no"
        unless `executed=` says otherwise. Time-outs, internal errors and cancellations are excepted.

        Args:
            message: what happened, for people; default: the message of the code.
            code: the code, if it differs from the class's.
            retry_after: the number of seconds after which the same request may succeed. A negative, infinite or NaN
                value counts as none; one of more than a year counts as a year.
            details: structured context.
            suggestions: recovery steps, most likely fix first.
            field: the part of the request that caused the failure.
            headers: headers that an HTTP response for this error gets, such as `{"Allow": "GET"}`.
            more: any other field of Fault (recovery, executed, trace_id, doc_uri, status, errors, …).

        Raises:
            TypeError: an option has a name that errors do not have.
            ValueError: `status` is not an error status, or a value is not one of the possible ones.

        """
        vocabulary = more.pop("vocabulary") if "vocabulary" in more else self.vocabulary
        code = code or self.code
        if vocabulary == EVERYDAY and is_registered(code):
            vocabulary = APP
        _check_status(more.get("status"))
        cls: object = self.__class__
        for name in ("type", "title"):
            # Class attributes of your own classes.
            if name not in more and isinstance(getattr(cls, name, None), str):
                more[name] = getattr(cls, name)
        if not _FIELDS.issuperset(more):
            wrong = next(option for option in more if option not in _FIELDS)
            raise TypeError(missing_option(type(self).__name__, wrong, sorted({*_FIELDS, "headers"})))
        if message is None:
            message = row_for(vocabulary, code, more.get("status")).message
        fault = Fault(
            code=code,
            message=message,
            vocabulary=vocabulary,
            retry_after=_wait(retry_after),
            details=details,
            suggestions=suggestions,  # type: ignore[arg-type]
            field=field,
            **more,
        )
        if "executed" not in more and getattr(cls, "executed", None) is None and _invites(fault):
            fault = replace(fault, executed=Executed.NO)
        self._set_fault(fault)
        if headers:
            self.headers = _pairs(headers)

    def _set_fault(self, fault: Fault) -> None:
        Exception.__init__(self, fault.message if fault.origin is None else _shown(fault))
        self.fault = fault
        # ARCP handlers read err.code (S5): it is the fault's code, which can differ from the class's.
        self.code, self.vocabulary, self.message = fault.code, fault.vocabulary, fault.message

    @classmethod
    def from_fault(cls, fault: Fault) -> FaultError:
        """
        Return an exception that carries `fault`, of the class of its code and vocabulary.

        >>> type(FaultError.from_fault(Fault(code="TIMEOUT", vocabulary="arcp"))).__name__
        'TimeoutError'
        """
        return _from_class(class_for(fault.vocabulary, fault.code), fault)

    @property
    def details(self) -> dict[str, Any] | None:
        """The details of the fault. Assign to replace them, for example to add context before re-raising (R10)."""
        return self.fault.details

    @details.setter
    def details(self, details: dict[str, Any] | None) -> None:
        self.fault = replace(self.fault, details=details)

    def __str__(self) -> str:
        """Return the message, else the code; of a received error stripped and cut, because a stranger wrote it."""
        return _shown(self.fault)

    def __repr__(self) -> str:
        message = _shown(self.fault) if self.fault.message else ""
        return f"{type(self).__name__}({message!r}, code={self.fault.code!r})"

    def __reduce__(self) -> tuple[Callable[..., FaultError], tuple[Any, ...], dict[str, Any]]:
        # pickle and copy do not call the constructor, so a subclass may have any signature.
        state = dict(self.__dict__)
        if "__notes__" in state:
            state["__notes__"] = list(state["__notes__"])
        if not _is_picklable(state.get("response")):
            del state["response"]  # the responses of aiohttp belong to their connection
        return _from_class, (type(self), self.fault), state

    def __init_subclass__(cls, **kwargs: object) -> None:
        """
        Register the code of a user's class. A generated class sets `vocabulary` and is not registered.

        Raises:
            ValueError: the class has the vocabulary adcp, and a code that AdCP does not allow a producer (A15).

        """
        super().__init_subclass__(**kwargs)
        if (
            "code" in cls.__dict__
            and cls.__dict__.get("vocabulary") == "adcp"
            and cls.__module__ != _MODULES["adcp"]
        ):
            _check_adcp(cls.code)
        if "code" in cls.__dict__ and "vocabulary" not in cls.__dict__:
            cls.vocabulary = APP
            _register(cls)


def _is_picklable(value: object) -> bool:
    if value is None:
        return True
    import pickle

    try:
        pickle.dumps(value)
    except Exception:  # noqa: BLE001 - `__reduce__` of any class may raise anything
        return False
    return True


_LONGEST_TEXT = 256
"""Bytes of the text of a received error."""


def _shown(fault: Fault) -> str:
    """Return the text of an error: as its author wrote it, or of a received one without invisible characters and cut."""
    text = fault.message or fault.code
    return text if fault.origin is None else truncate(strip(text), _LONGEST_TEXT)


def _from_class(cls: type[FaultError], fault: Fault) -> FaultError:
    """Return an instance of `cls` that carries `fault`, without calling its constructor."""
    error = cls.__new__(cls)
    error._set_fault(fault)  # noqa: SLF001 - a method of this module's class
    return error


def class_for(vocabulary: str, code: str) -> type[FaultError]:
    """
    Return the class of a code; if it has none, the base class of its vocabulary.

    >>> class_for("adcp", "BUDGET_TOO_LOW").__name__, class_for("adcp", "NO_SUCH_CODE").__name__
    ('BudgetTooLowError', 'FaultError')
    """
    return find_class(vocabulary, code) or FaultError


LONGEST_WAIT = 365 * 86400.0
"""The longest wait in seconds that an error is raised with."""


def _wait(value: float | timedelta | None) -> float | None:
    """The wait in seconds; None for one that cannot be meant, so that a computed wait never replaces the error itself."""
    if value is None:
        return None
    seconds = finite(in_seconds("retry_after", value))
    return None if seconds is None or seconds < 0 else min(seconds, LONGEST_WAIT)


def _invites(fault: Fault) -> bool:
    """Whether the error invites its caller to send the same request again (M3)."""
    if fault.recovery is not Recovery.TRANSIENT or not fault.retry_after:
        return False
    row = row_for(fault.vocabulary, fault.code, fault.status)
    status = fault.status or row.status
    intent = fault.intent is not None
    return not (excluded(fault.code, status, intent=intent) or excluded(row.everyday))


def _check_status(status: object) -> None:
    """Refuse a status that is no error."""
    if status is None:
        return
    if not isinstance(status, int) or isinstance(status, bool):
        raise TypeError(f"status is int, not {type(status).__name__}")
    if not 400 <= status <= 599:
        raise ValueError(
            f"status is an HTTP error status from 400 to 599, not {int(status)}: return a response for anything else"
        )


def _pairs(headers: Any) -> tuple[tuple[str, str], ...]:
    items = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise TypeError(
            f'headers is a mapping of strings, not {type(items).__name__}: write {{"X-Name": "…"}}'
        )
    pairs = tuple(tuple(pair) if isinstance(pair, tuple | list) else () for pair in items)
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(each, str) for each in pair):
            raise TypeError(f"headers are pairs of strings, not {shown(pair)}")
    return pairs


def _check_adcp(code: str) -> None:
    """Raise ValueError unless the code is one of AdCP's or has a vendor's form (A15)."""
    from amends.core.vocabularies.adcp import check_code

    check_code(code)


_FIELDS = frozenset(Fault.__struct_fields__)


def _register(cls: type[FaultError]) -> None:
    """Add a row for the code of a user's class. Attributes that the class does not set come from its parent class."""
    from amends.core.vocabularies.app import add

    given: dict[str, Any] = {}
    parent: Row | None = None
    for above in cls.__mro__[: cls.__mro__.index(FaultError)]:
        if above is not cls and issubclass(above, FaultError) and "code" in above.__dict__:
            parent = row_for(above.vocabulary, above.code)
            break
        # A base class without a code has no row of its own; this class inherits its attributes.
        given = {**above.__dict__, **given}
    # Enum members, such as those of HTTPStatus, become the text or number they hold.
    given = {name: plain(given[name]) for name in Row.__struct_fields__ if name in given}
    _check_status(given.get("status"))
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
            suggestion=given.get("suggestion", base.suggestion_under(recovery)),
            user_message=given.get("user_message", base.user_message_under(recovery)),
            executed=Executed(given.get("executed", base.executed)),
            actor=Actor(given.get("actor", base.actor_under(recovery))),
            status=given.get("status", base.status),
            exit=given.get("exit", base.exit),
            wait=given.get("wait", base.wait),
            adcp_code=adcp_code,
        )
    )
    register_class(cls)


# The everyday code that supplies the defaults of a class which sets only its recovery.
_NEAREST = {
    Recovery.TRANSIENT: "SERVICE_UNAVAILABLE",
    Recovery.CORRECTABLE: "VALIDATION_ERROR",
    Recovery.TERMINAL: "PERMISSION_DENIED",
    Recovery.UNCERTAIN: "INTERNAL_ERROR",
}


# The exception class of each vocabulary and code: generated classes by name, users' classes by registration.
_MODULES = {
    EVERYDAY: "amends.errors",
    **{name: f"amends.errors.{name}" for name in ("adcp", "task", "cli", "arcp")},
}
# The http vocabulary has the everyday codes.
_MODULES["http"] = _MODULES[EVERYDAY]

# Vocabularies that allow application codes (S1, S2). A code outside their tables gets the class that this program
# registered for it.
_ALLOW_APP_CODES = frozenset({"http", "cli"})

_USER_CLASSES: dict[str, type[FaultError]] = {}


def class_name(code: str) -> str:
    """
    Return the class name of a code: CamelCase with the suffix Error, which is not doubled.

    >>> class_name("RATE_LIMITED"), class_name("INTERNAL_ERROR")
    ('RateLimitedError', 'InternalError')
    """
    return "".join(part.capitalize() for part in code.removesuffix("_ERROR").split("_")) + "Error"


def find_class(vocabulary: str, code: str) -> type[FaultError] | None:
    """
    Return the class of a code; if it has none, the base class of its vocabulary, or None for FaultError itself.

    Use `class_for` if a class is always needed.

    >>> find_class("adcp", "BUDGET_TOO_LOW").__name__, find_class("adcp", "NO_SUCH_CODE")
    ('BudgetTooLowError', None)
    """
    if vocabulary == APP:
        return _USER_CLASSES.get(code)
    if (
        vocabulary in _ALLOW_APP_CODES
        and code in _USER_CLASSES
        and code not in vocabulary_of(vocabulary).rows
    ):
        return _USER_CLASSES[code]
    module = _MODULES.get(vocabulary)
    if module is None:
        return None
    classes: object = import_module(module)
    found = getattr(classes, class_name(code), None) if code.isascii() else None
    if isinstance(found, type) and getattr(found, "code", None) == code:
        return found
    return getattr(classes, "ARCPError", None)


def register_class(cls: type[FaultError]) -> None:
    """
    Register a user's class under its code.

    Defining a class with a `code` calls it, so a program seldom needs to:

        class OutOfStock(FaultError):
            code = "OUT_OF_STOCK"

        assert find_class("app", "OUT_OF_STOCK") is OutOfStock
    """
    _USER_CLASSES[cls.code] = cls


def is_about_a_call(error: FaultError) -> bool:
    """
    Return whether an error is about a call that a handler made, and not one that it raised for its own caller (M3).

    It was received from the service, or a client of an own service or recovery raised it: about an exception of a library, about a result, or about a
    call that was not sent. An error that the server's own function raised inside `recover` is the server's.

    >>> from amends.core.fault import Origin
    >>> received = FaultError.from_fault(Fault(code="CONFLICT", origin=Origin(dialect="problem", path="body")))
    >>> is_about_a_call(received), is_about_a_call(FaultError(code="CONFLICT"))
    (True, False)
    """
    if error.fault.origin is not None or error.own:
        return True
    last = error.history[-1].error if error.history else None
    return error.decision is not None and not isinstance(last, FaultError)
