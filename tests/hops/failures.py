"""The twelve failures, and what has to arrive at the caller: each is raised or met by the last server of a chain."""

import os
from pathlib import Path
from typing import NamedTuple

import httpx
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider

from amends import Fault, FaultError
from amends.bindings.httpx import AsyncTransport
from amends.core.policy import Policy
from amends.errors import (
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    ServiceUnavailableError,
    ValidationError,
)
from amends.errors import (
    TimeoutError as TimedOutError,
)
from amends.recovery import time_left

SECRET = "hunter2"
"""Never leaves the process that has it."""
ATTEMPTS = 3
POLICY = Policy(attempts=ATTEMPTS)
COUNTS = "HOPS_COUNTS"
"""The environment variable with the file that gets a byte for each call of the last service."""


class OutOfStockError(FaultError):
    """That product is sold out"""

    code = "OUT_OF_STOCK"
    recovery = "correctable"
    status = 409
    suggestion = "Order another product"


class Truth(NamedTuple):
    """What the caller of a chain of own services has to get."""

    code: str
    recovery: str
    executed: str
    message: str | None = None
    wait: float | None = None
    field: str | None = None
    suggestions: tuple[str, ...] = ()
    parts: int = 0


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


SPECIAL = {"time": _note_time, "own-trace": _fail_in_own_trace}
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
        2,
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
        2,
    ),
    "lost": Truth("TIMEOUT", "transient", "maybe"),
    "slow-down": Truth("RATE_LIMITED", "transient", "maybe", None, 2.0),
    "refused": Truth("SERVICE_UNAVAILABLE", "terminal", "no"),
}
"""Where the failure came out of a call (the last three) or is a bug, the message is our own and not compared."""
