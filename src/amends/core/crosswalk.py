"""
From one vocabulary to another, through the everyday set.

Every row names its nearest everyday word; this table names each everyday word in every vocabulary (mappings M5).
The code may become coarser on the way: the original survives in `details` under `translated_from`, and going back
restores it. Recovery never changes: it is always carried explicitly.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import APP, EVERYDAY, Row, names, row_for, vocabulary

__all__ = ["ORIGINAL", "TARGETS", "code_in", "original", "source_row", "transfer"]

ORIGINAL = "translated_from"
"""The key in `details` that keeps {vocabulary, code} of a fault that was translated into coarser words."""

TARGETS = ("http", "cli", "task", "adcp", "arcp")
"""The vocabularies a fault can be translated into."""

# everyday word → its word elsewhere; where a vocabulary is not named the word is the same there.
_WORDS: dict[str, dict[str, str]] = {
    "RATE_LIMITED": {"arcp": "INTERNAL_ERROR"},
    "SERVICE_UNAVAILABLE": {"task": "AGENT_UNAVAILABLE", "arcp": "INTERNAL_ERROR"},
    "TIMEOUT": {"adcp": "SERVICE_UNAVAILABLE"},
    "VALIDATION_ERROR": {"task": "INVALID_INPUT", "arcp": "INVALID_REQUEST"},
    "NOT_FOUND": {"task": "INVALID_FIELD_VALUE", "adcp": "REFERENCE_NOT_FOUND", "arcp": "INVALID_REQUEST"},
    "PERMISSION_DENIED": {"task": "INTERNAL_ERROR"},
    "UNAUTHENTICATED": {"cli": "PERMISSION_DENIED", "task": "MCP_AUTH_FAILED", "adcp": "AUTH_MISSING"},
    "CONFLICT": {"task": "INVALID_FIELD_VALUE", "arcp": "INVALID_REQUEST"},
    "INTERNAL_ERROR": {"adcp": "SERVICE_UNAVAILABLE"},
    "CANCELLED": {"cli": "INTERNAL_ERROR", "task": "INTERNAL_ERROR", "adcp": "SERVICE_UNAVAILABLE"},
}

# Where two vocabularies share a word and its meaning, the hub would only blunt it.
_SHARED = {
    ("adcp", "arcp"): {"INVALID_REQUEST", "BUDGET_EXHAUSTED"},
    ("arcp", "adcp"): {"INVALID_REQUEST", "BUDGET_EXHAUSTED"},
}


def code_in(target: str, everyday: str, recovery: Recovery | None = None) -> str:
    """The word of `target` for an everyday word."""
    if everyday == "UNAUTHENTICATED" and target == "adcp" and recovery is Recovery.TERMINAL:
        return "AUTH_INVALID"
    return _WORDS.get(everyday, {}).get(target, everyday)


def original(fault: Fault) -> tuple[str, str] | None:
    """
    (vocabulary, code) a translated fault was raised with, or None when it was never translated.

    `details` may come from outside, so the note is believed only where translating it would give this very fault's
    code: it can make a word finer, never turn it into another.
    """
    kept = (fault.details or {}).get(ORIGINAL)
    if not isinstance(kept, dict):
        return None
    name, code = kept.get("vocabulary"), kept.get("code")
    if not isinstance(name, str) or not isinstance(code, str) or not 0 < len(code) <= 64:
        return None
    if name not in names():
        return None
    row = vocabulary(name).row(code, fault.status)
    if code_in(fault.vocabulary, row.everyday, fault.recovery) != fault.code:
        return None
    return name, code


def source_row(fault: Fault) -> Row:
    """The row of the code a fault was raised with: a translated one's words are its original's."""
    name, code = original(fault) or (fault.vocabulary, fault.code)
    return row_for(name, code, fault.status)


def transfer(fault: Fault, to: str) -> Fault:
    """
    `fault` in the words of the vocabulary `to`.

    Raises:
        LookupError: when `to` is no vocabulary one can translate into.

    """
    if to not in TARGETS:
        raise LookupError(f"cannot translate into {to!r}; choose one of {', '.join(TARGETS)}")
    if fault.vocabulary == to:
        if all(child.vocabulary == to for child in fault.errors):
            return fault
        return replace(fault, errors=tuple(transfer(child, to) for child in fault.errors))
    row = row_for(fault.vocabulary, fault.code, fault.status)
    code, details = _code(fault, to, row.everyday)
    changes: dict[str, Any] = {"vocabulary": to, "code": code, "details": details}
    if to == "http" and fault.status is None:
        changes["status"] = row.status or row_for(EVERYDAY, row.everyday).status
    if row.everyday == "CANCELLED" and fault.origin is None and row.recovery is fault.recovery:
        # Raised without a recovery, so each side has its own view of a cancellation (M5). One that came from
        # outside was decided there.
        changes["recovery"] = row_for("http" if to == "http" else EVERYDAY, "CANCELLED").recovery
    if fault.errors:
        changes["errors"] = tuple(transfer(child, to) for child in fault.errors)
    return replace(fault, **changes)


def _code(fault: Fault, to: str, everyday: str) -> tuple[str, dict[str, Any] | None]:
    """The code in the target, and the details with or without the note of where it came from."""
    earlier = original(fault)
    if earlier is not None:
        if earlier[0] == to or _speaks(to, *earlier):
            details = {key: value for key, value in (fault.details or {}).items() if key != ORIGINAL}
            return earlier[1], details or None
        # What was raised decides, not what it became on the way; the first translation's note names it.
        return code_in(to, row_for(*earlier, fault.status).everyday, fault.recovery), fault.details
    if _speaks(to, fault.vocabulary, fault.code):
        return fault.code, fault.details
    adcp_code = row_for(fault.vocabulary, fault.code, fault.status).adcp_code if to == "adcp" else None
    code = adcp_code or code_in(to, everyday, fault.recovery)
    if code == fault.code and code_in(fault.vocabulary, row_for(to, code).everyday, fault.recovery) == code:
        # The same word on both sides needs no note to come back.
        return code, fault.details
    note = {"vocabulary": fault.vocabulary, "code": fault.code}
    return code, {**(fault.details or {}), ORIGINAL: note}


def _speaks(to: str, name: str, code: str) -> bool:
    """Whether the target can say this code as it is."""
    if code in _SHARED.get((name, to), ()):
        return True
    # S1 and S2 leave codes open, and a user's own code says more than its nearest everyday word.
    return name == APP and to in {"http", "cli"} and code in vocabulary(APP).rows
