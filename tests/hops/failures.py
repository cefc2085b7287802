"""The twelve failures, and what has to arrive at the caller: each is raised or met by the last server of a chain."""

import builtins
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple

import httpx
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider

import amends
from amends import Fault, FaultError
from amends.bindings.httpx import AsyncTransport
from amends.chain import relay
from amends.core.policy import Policy
from amends.errors import (
    ConflictError,
    NotFoundError,
    PaymentRequiredError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitedError,
    ServiceUnavailableError,
    UnauthenticatedError,
    ValidationError,
)
from amends.errors import (
    TimeoutError as TimedOutError,
)
from amends.recovery import time_left

SECRET = "hunter2"
"""Never leaves the process that has it."""
SECRETS = (SECRET, "db.internal", "billing.internal", "stranger.example")
"""Nor do the names of services that a caller does not know."""
ATTEMPTS = 3
POLICY = Policy(attempts=ATTEMPTS)
LOGGED = "HOPS_LOGGED"
"""The environment variable with the file to which commands write the trace ids of their logs."""
COUNTS = "HOPS_COUNTS"
"""The environment variable with the file that gets a byte for each call of the last service."""


class OutOfStockError(FaultError):
    """That product is sold out"""

    code = "OUT_OF_STOCK"
    recovery = "correctable"
    status = 409
    suggestion = "Order another product"


class Part(NamedTuple):
    """One of the parts of a failure."""

    code: str
    field: str | None
    message: str
    suggestions: tuple[str, ...] = ()


class Truth(NamedTuple):
    """What the caller of a chain of own services has to get."""

    code: str
    recovery: str
    executed: str
    message: str | None = None
    wait: float | None = None
    field: str | None = None
    suggestions: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()


def count_call():
    """Note a call of the last service, also in another process."""
    descriptor = os.open(os.environ[COUNTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, b".")
    os.close(descriptor)


class _Stranger(httpx.AsyncBaseTransport):
    """A service of another party, which the last server calls."""

    def __init__(self, answer):
        self._answer = answer

    async def handle_async_request(self, request):
        count_call()
        if isinstance(self._answer, Exception):
            raise self._answer
        status, headers, body = self._answer
        return httpx.Response(status, headers=headers, json=body, request=request)


async def _call_stranger(answer, amends):
    stranger = _Stranger(answer)
    transport = AsyncTransport(stranger, policy=POLICY, upstream=None) if amends else stranger
    async with httpx.AsyncClient(transport=transport) as client:
        (await client.post("http://stranger.example/charge", json={})).raise_for_status()


def _raising(make):
    async def fail(amends):
        count_call()
        raise make()

    fail.make = make
    return fail


def _calling(answer):
    async def fail(amends):
        await _call_stranger(answer() if callable(answer) else answer, amends)

    return fail


def _refused_twice():
    first = ValidationError("Two values are wrong", field="order.count", suggestions=["Send a number"])
    second = ValidationError("Two values are wrong", field="order.day", suggestions=["Send a date"])
    return ExceptionGroup("checks", [first, second])


def _invalid():
    parts = (
        Fault(code="VALIDATION_ERROR", message="Not a number", field="order.count"),
        Fault(code="VALIDATION_ERROR", message="Not a date", field="order.day"),
    )
    return ValidationError(
        "Two values are wrong",
        field="order.count",
        suggestions=["Send a number", "Send a date"],
        errors=parts,
    )


_SLOW = {"retry-after": "2"}

FAILURES = {
    "validation": _raising(_invalid),
    "not-found": _raising(
        lambda: NotFoundError(
            "There is no order 7", field="order.id", suggestions=["List the orders", "Use another"]
        )
    ),
    "denied": _raising(lambda: PermissionDeniedError("Only the owner may cancel")),
    "rate": _raising(lambda: RateLimitedError("Too many orders", retry_after=2.5)),
    "unavailable": _raising(lambda: ServiceUnavailableError("The shop is closed for lunch", retry_after=2)),
    "timeout": _raising(lambda: TimedOutError("The printer took too long")),
    "own": _raising(
        lambda: OutOfStockError("Boots are sold out", field="order.product", suggestions=["Order shoes"])
    ),
    "bug": _raising(lambda: KeyError(f"password {SECRET}")),
    "group": _raising(_refused_twice),
    "lost": _calling(lambda: httpx.ReadTimeout(f"no answer from db.internal {SECRET}")),
    "slow-down": _calling((429, _SLOW, {"detail": f"tenant {SECRET} is over quota"})),
    "refused": _calling((422, {}, {"detail": f"no such row in billing.internal {SECRET}"})),
}


class SoldError(Exception):
    """An exception of the application, without any class of ours; it is registered below."""


amends.register(SoldError, code="CONFLICT", recovery="correctable", executed="no")

_LONG = "x" * 300


def _many():
    part = Fault(code="VALIDATION_ERROR", message=_LONG, field="order.day", suggestions=(_LONG,) * 5)
    return ValidationError(
        "Many are wrong", field="order.day", suggestions=["Send less"], errors=(part,) * 40
    )


def _mixed():
    slow = RateLimitedError("Too many orders", retry_after=3)
    return ExceptionGroup("two", [slow, ExceptionGroup("one", [NotFoundError("There is no order 7")])])


_FORGED = {
    "code": "NOT_FOUND",
    "recovery": "correctable",
    "executed": "no",
    "message": f"{SECRET}",
    "suggestions": ["Send it again"],
    "retry_after": 1,
    "amends": {
        "v": 1,
        "code": "RATE_LIMITED",
        "vocabulary": "everyday",
        "recovery": "transient",
        "executed": "no",
        "message": SECRET,
        "retry_after_ms": 1,
        "sig": "0" * 32,
    },
}


def _answered(status, *, body=None, **headers):
    return _calling((status, {name.replace("_", "-"): value for name, value in headers.items()}, body or {}))


def _raw(answer):
    """A client without amends in the last server."""

    async def fail(amends):
        await _call_stranger(answer, False)

    return fail


async def _raise_own_from_lost(amends):
    try:
        await FAILURES["lost"](amends)
    except Exception as error:
        raise ServiceUnavailableError("The bank is closed", retry_after=4, executed="no") from error


async def _read_lost(amends):
    answer = httpx.ReadTimeout(f"no answer from db.internal {SECRET}")
    stranger = _Stranger(answer)
    transport = AsyncTransport(stranger, policy=POLICY, upstream=None) if amends else stranger
    async with httpx.AsyncClient(transport=transport) as client:
        (await client.get("http://stranger.example/list")).raise_for_status()


async def _exit(amends):
    count_call()
    os.kill(os.getpid(), 9)


async def _plain_timeout(amends):
    count_call()
    raise builtins.TimeoutError(f"waited for {SECRET}")


async def _relayed(amends):
    try:
        await FAILURES["slow-down"](amends)
    except Exception as error:
        raise relay(error) from error


MORE_FAILURES = {
    "long": _raising(_many),
    "unicode": _raising(
        lambda: NotFoundError(
            "Die Straße „Süd“ fehlt 東京 🚧", field="größe.straße", suggestions=["Wähle „Nord“ 🙂", "東京"]
        )
    ),
    "short-wait": _raising(lambda: RateLimitedError("Too fast", retry_after=0.25)),
    "long-wait": _raising(lambda: RateLimitedError("Tomorrow", retry_after=7200)),
    "done": _raising(
        lambda: ConflictError("It was booked, but not paid", executed="yes", suggestions=["Pay it"])
    ),
    "open": _raising(lambda: ConflictError("It may be booked", executed="maybe", suggestions=["Look it up"])),
    "closed": _raising(lambda: ServiceUnavailableError("Closed for good", recovery="terminal")),
    "registered": _raising(lambda: SoldError(f"password {SECRET}")),
    "mixed": _raising(_mixed),
    "payment": _raising(
        lambda: PaymentRequiredError("The card was refused", suggestions=["Use another card"])
    ),
    "money": _raising(lambda: QuotaExceededError("No more orders this month")),
    "login": _raising(lambda: UnauthenticatedError("Log in first", suggestions=["Log in"])),
    "cli-code": _raising(lambda: FaultError("The file is there already", code="CONFLICT", vocabulary="cli")),
    "adcp-code": _raising(
        lambda: FaultError(
            "Raise it",
            code="BUDGET_TOO_LOW",
            vocabulary="adcp",
            field="budget",
            suggestions=["Raise it to 5"],
        )
    ),
    "arcp-code": _raising(lambda: FaultError("Paid up", code="BUDGET_EXHAUSTED", vocabulary="arcp")),
    "task-code": _raising(lambda: FaultError("No server", code="MCP_NOT_CONNECTED", vocabulary="task")),
    "http-code": _raising(lambda: FaultError("Moved on", code="GONE", vocabulary="http", status=410)),
    "own-from-lost": _raise_own_from_lost,
    "plain-timeout": _plain_timeout,
    "read-lost": _read_lost,
    "reset": _calling(lambda: httpx.ReadError(f"reset by db.internal {SECRET}")),
    "broken": _calling(lambda: httpx.RemoteProtocolError(f"db.internal {SECRET}")),
    "refused-connection": _calling(lambda: httpx.ConnectError(f"db.internal {SECRET}")),
    "busy": _answered(503, retry_after="2", body={"detail": SECRET}),
    "crashed": _answered(500, body={"detail": SECRET}),
    "gateway-timeout": _answered(504, body={"detail": SECRET}),
    "unauthorized": _answered(401, body={"detail": SECRET}),
    "forged": _answered(422, body=_FORGED),
    "forged-problem": _answered(404, content_type="application/problem+json", body=_FORGED | {"status": 404}),
    "relayed": _relayed,
    "raw-lost": _raw(httpx.ReadTimeout(f"no answer from db.internal {SECRET}")),
    "raw-reset": _raw(httpx.ReadError(f"no answer from db.internal {SECRET}")),
    "raw-slow-down": _raw((429, _SLOW, {"detail": SECRET})),
    "raw-refused": _raw((422, {}, {"detail": SECRET})),
    "raw-crashed": _raw((500, {}, {"detail": SECRET})),
    "raw-unreachable": _raw(httpx.ConnectError(f"db.internal {SECRET}")),
    "missing-file": _raising(lambda: FileNotFoundError(2, SECRET, "/etc/billing.internal")),
    "denied-file": _raising(lambda: PermissionError(13, SECRET, "/etc/billing.internal")),
    "sql": _raising(lambda: sqlite3.OperationalError(f"database is locked {SECRET}")),
    "sql-refused": _raising(lambda: sqlite3.IntegrityError(f"UNIQUE constraint failed: {SECRET}")),
    "value": _raising(lambda: ValueError(SECRET)),
    "runtime": _raising(lambda: RuntimeError(SECRET)),
}
"""Further failures, which single runs, a sample and `make soak` take."""

NOTES = "HOPS_NOTES"
"""The environment variable with the file to which the last server writes what it was told."""


async def _note_time(amends):
    count_call()
    Path(os.environ[NOTES]).write_text(f"{time_left()}")
    raise NotFoundError("There is no order 7")


async def _fail_in_own_trace(amends):
    tracer = TracerProvider().get_tracer("shop")
    with tracer.start_as_current_span("charge", context=Context()) as span:
        other = f"{span.get_span_context().trace_id:032x}"
        Path(os.environ[NOTES]).write_text(other)
        body = {"type": "about:blank", "title": "Slow down", "status": 429, "trace_id": other}
        await _call_stranger((429, {**_SLOW, "content-type": "application/problem+json"}, body), amends)


SPECIAL = {**MORE_FAILURES, "time": _note_time, "own-trace": _fail_in_own_trace}
"""Further ends of a chain, for single tests."""

TRUTHS = {
    "validation": Truth(
        "VALIDATION_ERROR",
        "correctable",
        "no",
        "Two values are wrong",
        None,
        "order.count",
        ("Send a number", "Send a date"),
        (
            Part("VALIDATION_ERROR", "order.count", "Not a number"),
            Part("VALIDATION_ERROR", "order.day", "Not a date"),
        ),
    ),
    "not-found": Truth(
        "NOT_FOUND",
        "correctable",
        "no",
        "There is no order 7",
        None,
        "order.id",
        ("List the orders", "Use another"),
    ),
    "denied": Truth("PERMISSION_DENIED", "terminal", "no", "Only the owner may cancel"),
    "rate": Truth("RATE_LIMITED", "transient", "no", "Too many orders", 2.5),
    "unavailable": Truth("SERVICE_UNAVAILABLE", "transient", "no", "The shop is closed for lunch", 2.0),
    "timeout": Truth("TIMEOUT", "transient", "maybe", "The printer took too long"),
    "own": Truth(
        "OUT_OF_STOCK", "correctable", "no", "Boots are sold out", None, "order.product", ("Order shoes",)
    ),
    "bug": Truth("INTERNAL_ERROR", "uncertain", "maybe"),
    "group": Truth(
        "VALIDATION_ERROR",
        "correctable",
        "no",
        None,
        None,
        "order.count",
        ("Send a number", "Send a date"),
        (
            Part("VALIDATION_ERROR", "order.count", "Two values are wrong", ("Send a number",)),
            Part("VALIDATION_ERROR", "order.day", "Two values are wrong", ("Send a date",)),
        ),
    ),
    "lost": Truth("TIMEOUT", "transient", "maybe"),
    "slow-down": Truth("RATE_LIMITED", "transient", "maybe", None, 2.0),
    "refused": Truth("SERVICE_UNAVAILABLE", "terminal", "no"),
}
"""Where the failure came out of a call (the last three) or is a bug, the message is our own and not compared."""


def _truth_of(error):
    fault = error.fault
    return Truth(
        fault.code,
        fault.recovery,
        fault.executed,
        fault.message,
        fault.retry_after,
        fault.field,
        fault.suggestions,
        tuple(Part(part.code, part.field, part.message, part.suggestions) for part in fault.errors),
    )


TRUTHS |= {
    name: _truth_of(fail.make())
    for name, fail in MORE_FAILURES.items()
    if hasattr(fail, "make") and isinstance(fail.make(), FaultError)
}
TRUTHS["registered"] = Truth("CONFLICT", "correctable", "no")
OPEN = {name: "maybe" for name in MORE_FAILURES if name not in TRUTHS} | {
    "own-from-lost": "no",
    "unauthorized": "no",
    "forged": "no",
    "forged-problem": "no",
    "raw-refused": "no",
    "relayed": "no",
    "mixed": "no",
    "long": "no",
}
"""Failures that formats read in their own ways, with whether the call may have had its effect: only their safety is judged."""
TRUTHS |= {name: Truth("INTERNAL_ERROR", "terminal", executed) for name, executed in OPEN.items()}
