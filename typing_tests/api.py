"""
The types of the public names. `mypy` checks this file with the project's strict settings; it is not run.

Every `assert_type` states a type that users rely on. A line with `type: ignore` has to be an error: mypy warns about an
unused ignore. Recovery's signatures are in `recovery.py`.
"""

from __future__ import annotations

import builtins
from typing import Any, assert_type

import amends
from amends import (
    Decision,
    Fault,
    FaultError,
    Operation,
    Policy,
    Recovery,
    State,
    decide,
    decode,
    encode,
    extract,
    for_llm,
    losses,
    translate,
)
from amends.core.enums import Action, Actor, Executed
from amends.core.fault import Origin
from amends.errors import (
    CancelledError,
    InternalError,
    RateLimitedError,
    TimeoutError,  # noqa: A004
    ValidationError,
)
from amends.errors import adcp as adcp_errors
from amends.errors import cli as cli_errors
from amends.errors import task as task_errors
from amends.errors.arcp import ARCPError, PermissionDeniedError, is_retryable_by_default

# Fault: the type of every field.
fault = Fault(code="RATE_LIMITED", retry_after=5)
assert_type(fault.code, str)
assert_type(fault.message, str)
assert_type(fault.recovery, Recovery)
assert_type(fault.vocabulary, str)
assert_type(fault.retry_after, float | None)
assert_type(fault.max_retries, int | None)
assert_type(fault.suggestions, tuple[str, ...])
assert_type(fault.details, dict[str, Any] | None)
assert_type(fault.errors, tuple[Fault, ...])
assert_type(fault.status, int | None)
assert_type(fault.actor, Actor)
assert_type(fault.executed, Executed)
assert_type(fault.extensions, dict[str, Any])
assert_type(fault.origin, Origin | None)
assert_type(fault.retryable, bool)
assert_type(amends.__version__, str)

fault.code = "X"  # type: ignore[misc]
Fault()  # type: ignore[call-arg]
Fault("RATE_LIMITED")  # type: ignore[call-arg]
Fault(code=5)  # type: ignore[arg-type]
Fault(code="X", nonsense=1)  # type: ignore[call-arg]

# Reading and writing.
assert_type(extract({"isError": True}), Fault | None)
assert_type(extract(b"{}", via="mcp"), Fault | None)
assert_type(decode(b"{}", "adcp"), Fault | None)
assert_type(decode({}, dialect="cli"), Fault | None)
assert_type(encode(fault, "problem"), dict[str, Any])
assert_type(losses(fault, "task"), frozenset[str])
assert_type(translate(fault, to="adcp"), tuple[Fault, frozenset[str]])
assert_type(for_llm(fault), str)
encode(RateLimitedError(), "problem")  # type: ignore[arg-type]
translate(fault)  # type: ignore[call-arg]

# Deciding.
decision = decide(fault)
assert_type(decision, Decision)
assert_type(decision.action, Action)
assert_type(decision.delay, float | None)
assert_type(decision.reason, str)
assert_type(
    decide(fault, policy=Policy(), state=State(attempt=2), operation=Operation(), now=1.0, draw=0.5), Decision
)
decide(fault, Policy())  # type: ignore[call-arg]
decide(fault, now="soon")  # type: ignore[arg-type]
assert_type(Recovery("transient"), Recovery)

# Raising.
error = RateLimitedError("Slow down", retry_after=5, details={"limit": 100}, suggestions=["Wait"], field="x")
assert_type(error.fault, Fault)
assert_type(error.code, str)
assert_type(error.message, str)
assert_type(error.details, dict[str, Any] | None)
assert_type(error.decision, Decision | None)
assert_type(FaultError.from_fault(fault), FaultError)
error.details = {"job": "j"}
error.details = None
RateLimitedError("x", suggestions="Wait", trace_id="t", recovery="terminal")
RateLimitedError("x", retry_after="5")  # type: ignore[arg-type]
RateLimitedError("x", 5)  # type: ignore[call-arg, arg-type]

# The class of a vocabulary derives from the everyday class, and TimeoutError from the builtin.
everyday: RateLimitedError = adcp_errors.RateLimitedError("x")
everyday = task_errors.RateLimitedError("x")
everyday = cli_errors.RateLimitedError("x")
late: builtins.TimeoutError = TimeoutError("late")
roots: list[FaultError] = [
    CancelledError(),
    InternalError(),
    ValidationError(),
    adcp_errors.BudgetTooLowError("Too low"),
    task_errors.McpNotConnectedError(),
    cli_errors.UsageError(),
]

# The constructor of ARCPError takes the code first, its subclasses the message.
arcp_error = ARCPError("INVALID_REQUEST", "url is required", details={"a": 1}, retryable=False)
assert_type(arcp_error.retryable, bool)
denied: ARCPError = PermissionDeniedError("no", details={"capability": "net.fetch"})
assert_type(is_retryable_by_default("TIMEOUT"), bool)
ARCPError("INVALID_REQUEST", retryable="no")  # type: ignore[arg-type]


class OutOfStock(FaultError):
    """A class with a code of the user's own."""

    code = "OUT_OF_STOCK"
    recovery = "correctable"
    status = 409
    exit = 6


class OutOfEggs(OutOfStock):
    """A class with its own constructor."""

    code = "OUT_OF_EGGS"

    def __init__(self, left: int) -> None:
        super().__init__(f"{left} eggs left", details={"left": left}, field="eggs")
        self.left = left


eggs = OutOfEggs(3)
assert_type(eggs.left, int)
assert_type(eggs.fault, Fault)
assert_type(OutOfStock.code, str)
user_error: FaultError = eggs
OutOfEggs("three")  # type: ignore[arg-type]


def handle(caught: FaultError) -> str:
    """Class patterns give typed values."""
    match caught:
        case RateLimitedError(fault=Fault(retry_after=float(seconds))):
            return f"{seconds}"
        case OutOfEggs(left=left):
            return f"{left}"
        case _:
            return caught.fault.recovery.value
