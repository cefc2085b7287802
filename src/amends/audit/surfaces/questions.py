"""
The rubric of services, as data: questions about failures, not about formats. Every format that `extract` reads counts.

The score has the scale of the CLI agent spec, 0 to 3. A level is reached if all its questions and those of the lower levels
are answered with yes. A leak is worse than everything else: with one the score is 0. The weight orders the findings.
"""

from __future__ import annotations

import msgspec

__all__ = ["QUESTIONS", "Question"]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question about the failures of a service."""

    id: str
    level: int
    weight: int
    asks: str
    fix: str
    """What the service's author does about a no, in one sentence."""
    clause: str
    surfaces: tuple[str, ...] = ("http", "mcp", "a2a", "arcp")


_PROBLEM = "Agent Surface problem details"
_CLI = "CLI agent spec, retry hints"
_ADCP = "AdCP transport errors"
_ARCP = "ARCP errors"

QUESTIONS: tuple[Question, ...] = (
    Question(
        id="leak",
        level=1,
        weight=10,
        asks="does it keep the inside of the service to itself?",
        fix="Answer unexpected exceptions with a message of your own; log the exception's text instead of sending it.",
        clause=f"{_ADCP} A19",
    ),
    Question(
        id="failure",
        level=1,
        weight=8,
        asks="is a failure reported as a failure?",
        fix="Answer what cannot be done with an error status, an error object or isError, never as a success.",
        clause=f"{_ADCP} A1; {_CLI} C1",
    ),
    Question(
        id="retry-some",
        level=1,
        weight=7,
        asks="does any failure say whether the same request may succeed later?",
        fix="Add a machine-readable verdict to errors: is_retriable, retryable or recovery, or a documented code.",
        clause=f"{_PROBLEM} P2; {_CLI} C2",
    ),
    Question(
        id="retry-all",
        level=2,
        weight=6,
        asks="does every failure say whether the same request may succeed later?",
        fix="Add the verdict to these failures, too; handlers of the framework's own errors are often forgotten.",
        clause=f"{_PROBLEM} P2; {_CLI} C2",
    ),
    Question(
        id="when",
        level=2,
        weight=5,
        asks="does a failure that may be retried say when?",
        fix="Send Retry-After or retry_after_ms with every retriable failure.",
        clause=f"{_PROBLEM} P3; {_CLI} C3; {_ADCP} A10",
    ),
    Question(
        id="again",
        level=2,
        weight=5,
        asks="does it answer again after a lost, slow or cut answer, and after a restart?",
        fix="Tie nothing to one connection, and answer a request whose answer was lost when it is sent again.",
        clause=f"{_PROBLEM} P9; {_ARCP} R6",
    ),
    Question(
        id="field",
        level=2,
        weight=5,
        asks="does it name the field that has to change?",
        fix="Name the wrong or missing field of an invalid request in a member of its own.",
        clause=f"{_PROBLEM} P6, P7; {_CLI} C5; {_ADCP} A10",
        surfaces=("http", "mcp"),
    ),
    Question(
        id="executed",
        level=3,
        weight=4,
        asks="does it say whether the call had its effect?",
        fix="Use a status or code that means refused before execution, or add a member such as executed.",
        clause=f"{_PROBLEM} P9; {_ADCP} A18",
    ),
    Question(
        id="once",
        level=3,
        weight=4,
        asks="is a write that is sent again with its key executed once?",
        fix="Store the answer under the Idempotency-Key, and send it again instead of executing the request again.",
        clause=f"{_PROBLEM} P9; {_ARCP} R9",
        surfaces=("http",),
    ),
    Question(
        id="consistent",
        level=3,
        weight=3,
        asks="do all failures have one shape?",
        fix="Write every error with the same function, including those of the framework, the router and the gateway.",
        clause=f"{_PROBLEM} P8; {_ARCP} R2",
    ),
    Question(
        id="docs",
        level=3,
        weight=2,
        asks="does it say where to read more?",
        fix="Link each error to a page about it: doc_uri, or an absolute type.",
        clause=f"{_PROBLEM} P4",
        surfaces=("http",),
    ),
    Question(
        id="trace",
        level=3,
        weight=2,
        asks="does it have an id that support can look up?",
        fix="Send the trace or request id in the error or in a header, and log it.",
        clause=f"{_PROBLEM} P5",
        surfaces=("http",),
    ),
)
