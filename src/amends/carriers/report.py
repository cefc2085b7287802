"""The reading of a response and the decisions about it, as `amends decode` prints them (mappings M6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.decision import NON_FATAL, NOTHING_FOUND, Decision, decide
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import UNBOUNDED
from amends.core.reading import Reading
from amends.core.travel import KEY
from amends.core.wire import DOCUMENTS, Unreadable, read
from amends.proof import Claim, Proof, rests_on
from amends.vendors.registry import names as service_names

__all__ = ["Report", "report"]

_REPEATABLE = Operation(idempotent=True)
_ONCE = Operation()


class Report(msgspec.Struct, frozen=True, gc=False):
    """What `amends decode` prints for one response."""

    found: bool
    """Whether an error was found; for http and cli a status or exit code alone counts."""
    failed: bool
    """Whether the response reports a failure."""
    fatal: bool
    """False for an error about a part of a response that did not fail."""
    via: str | None
    vendor: str | None
    """The service whose format was recognised; None if it was one of our formats, or unknown."""
    path: str | None
    error: Any
    """The object as received."""
    fault: Fault | None
    decision: Decision
    """For an operation whose repeat is safe."""
    decision_unsafe: Decision
    """For an operation that changes something, and whose repeat is not known to be safe."""


def report(via: str | None, reading: Reading, document: Any = None, *, safe: bool = True) -> Report:
    """
    Return the report of a reading.

    The decisions are about a first failure, without jitter and without limits on attempts or waiting.

    Args:
        via: how the document was read.
        reading: what was read.
        document: the whole document; what it states about `executed` beside the error counts, too.
        safe: whether a repeat of the operation is safe; otherwise both decisions are those for an unsafe one.

    """
    fault = reading.fault
    if fault is None:
        return Report(
            *(False, reading.failed, reading.fatal, via, None, reading.path, reading.error, None),
            *(NOTHING_FOUND, NOTHING_FOUND),
        )
    fatal = reading.fatal
    if fatal:
        repeatable = safe and _may_repeat(fault, document, reading.error)
        unsafe = decide(fault, policy=UNBOUNDED, operation=_ONCE)
        decision = decide(fault, policy=UNBOUNDED, operation=_REPEATABLE) if repeatable else unsafe
    else:
        decision = unsafe = NON_FATAL
    details, intent = fault.details, fault.intent
    if (details is not None and not details) or (intent is not None and not intent):
        # Empty fields are left out of the fault; `error` still has them.
        fault = replace(fault, details=details or None, intent=intent or None)
    vendor = (
        None if fault.origin is None or fault.origin.dialect not in service_names() else fault.origin.dialect
    )
    return Report(
        *(True, reading.failed, fatal, via, vendor, reading.path, reading.error, fault, decision, unsafe)
    )


@rests_on(Claim.MAY_REPEAT, Proof.USER)
def _may_repeat(fault: Fault, document: Any, error: Any) -> bool:
    """
    Return whether the decision may assume that a repeat is safe: the caller of `report` says so, unless the wire objects.

    A document that states `executed: maybe` (M8) comes from a service that cannot say whether a repeat would be the second time.
    With the idempotency key of the call in it, the assumption stays. What a document states never gives it.
    """
    if fault.executed is not Executed.MAYBE:
        return True
    stated = False
    for item in (*_objects(error), *_objects(document)):
        if any(item.get(name) == "maybe" for name in _STATEMENTS):
            stated = True
        if any(isinstance(name, str) and name.lower() in _KEYS and item[name] for name in item):
            return True
    return not stated


_MAX_OBJECTS = 1000
_STATEMENTS = ("executed",)
_KEYS = frozenset({"idempotency-key", "idempotencykey", "idempotency_key", KEY})
"""Members and headers in which a key is shown, in lower case."""


def _objects(document: Any) -> Iterator[dict[Any, Any]]:
    """Yield the objects of a document, also those of a body that is JSON text; a bounded number of them."""
    waiting, room = [document], _MAX_OBJECTS
    while waiting and room:
        value = waiting.pop()
        if isinstance(value, dict):
            room -= 1
            yield value
            body = value.get("body")
            if isinstance(body, DOCUMENTS):
                try:
                    waiting.append(read(body))
                except Unreadable:
                    pass
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value[:_MAX_OBJECTS]
