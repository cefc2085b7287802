"""The error codes of the CLI agent spec (S2), with the exit code of the default profile (mappings M4)."""

from __future__ import annotations

from amends.core.enums import Actor, Executed, Recovery
from amends.core.vocabularies.everyday import VOCABULARY as EVERYDAY
from amends.core.vocabulary import Row, Vocabulary, table

__all__ = ["VOCABULARY"]


def _row(
    code: str, recovery: Recovery, exit: int, suggestion: str, *, everyday: str | None = None, **more: object
) -> Row:
    base = EVERYDAY.rows[everyday or code]
    values: dict[str, object] = {
        "everyday": base.code,
        "message": base.message,
        "user_message": base.user_message,
        "executed": base.executed,
        "actor": base.actor,
        "status": base.status,
        **more,
    }
    return Row(code=code, recovery=recovery, exit=exit, suggestion=suggestion, **values)  # type: ignore[arg-type]


ROWS = (
    _row("VALIDATION_ERROR", Recovery.CORRECTABLE, 2, "Correct the named argument before running it again"),
    _row(
        "USAGE_ERROR",
        Recovery.CORRECTABLE,
        3,
        "Look at --help for the commands and flags there are",
        everyday="VALIDATION_ERROR",
        message="Unknown command or flag, or an argument is missing",
    ),
    _row("NOT_FOUND", Recovery.CORRECTABLE, 4, "Check the name, or list what there is"),
    _row(
        "CONFLICT",
        Recovery.CORRECTABLE,
        6,
        "Look at the current state before running it again",
        executed=Executed.MAYBE,
    ),
    # 7: may be repeated immediately (C7).
    _row("TIMEOUT", Recovery.TRANSIENT, 7, "Run it again where a repeat is safe", wait=0.0),
    _row(
        "PERMISSION_DENIED",
        Recovery.TERMINAL,
        8,
        "Get other credentials or more rights before running it again",
        actor=Actor.USER,
    ),
    # 9 without a hint: the spec's own runner waits five seconds (M4).
    _row("RATE_LIMITED", Recovery.TRANSIENT, 9, "Wait for retry_after_ms, then run it again", wait=5.0),
    _row("SERVICE_UNAVAILABLE", Recovery.TRANSIENT, 12, "Run it again later, waiting longer each time"),
    _row(
        "NETWORK_ERROR",
        Recovery.TRANSIENT,
        12,
        "Check the connection, then run it again",
        everyday="SERVICE_UNAVAILABLE",
        message="The network did not carry the request",
    ),
    _row("INTERNAL_ERROR", Recovery.UNCERTAIN, 1, "Run it once more where a repeat is safe, then report it"),
    # Codes of the newer exit table (profile v2) that S2 does not have.
    _row(
        "PARTIAL_FAILURE",
        Recovery.UNCERTAIN,
        1,
        "Find out what was done before doing the rest",
        everyday="INTERNAL_ERROR",
        message="It began and did not finish",
        user_message="Only part of that was done. Please check what is still missing.",
        executed=Executed.YES,
        actor=Actor.CALLER,
    ),
    _row(
        "PRECONDITION_FAILED",
        Recovery.CORRECTABLE,
        6,
        "Set up what the command needs first",
        everyday="CONFLICT",
        message="Something the command needs first is not there",
    ),
    _row(
        "AUTH_REQUIRED",
        Recovery.CORRECTABLE,
        8,
        "Sign in or refresh the credentials, then run it again",
        everyday="UNAUTHENTICATED",
    ),
    _row(
        "PAYMENT_REQUIRED",
        Recovery.TERMINAL,
        8,
        "Have the account's owner settle it",
        everyday="PERMISSION_DENIED",
        message="A payment is required",
        user_message=EVERYDAY.rows["PAYMENT_REQUIRED"].user_message,
    ),
    _row(
        "REDIRECTED",
        Recovery.CORRECTABLE,
        3,
        "Use the replacement the error names",
        everyday="VALIDATION_ERROR",
        message="This command has another name now",
    ),
)

_BY_CODE = table(ROWS)
VOCABULARY = Vocabulary(
    name="cli",
    title="Command-line errors",
    rows=_BY_CODE,
    # M1: a failure without a known code is uncertain, and C12 limits that to one more run.
    unknown=_BY_CODE["INTERNAL_ERROR"],
)
