"""
Translate codes from one vocabulary to another, through the everyday set.

Every row names the nearest everyday code; the table here names each everyday code in every vocabulary (mappings M5).
A translated code may be coarser. `details` then keeps the original under `translated_from`, and translating back
restores it. The recovery class does not change: it is always carried explicitly.
"""

from __future__ import annotations

from msgspec.structs import replace

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.validate import shown
from amends.core.vocabulary import APP, EVERYDAY, Row, names, row_for, vocabulary

__all__ = [
    "ORIGINAL",
    "TARGETS",
    "code_in",
    "default_wait",
    "original",
    "source_row",
    "suggestion_for",
    "transfer",
    "transfer_plainly",
]

ORIGINAL = "translated_from"
"""The key in `details` that keeps {vocabulary, code} of a fault that was translated to a coarser code."""

_WITHOUT_OUR_MEMBERS = frozenset({"adcp", "task", "arcp"})
"""Their formats have no members for suggestions, parts and the like: what was raised is kept for the record."""

TARGETS = ("http", "cli", "task", "adcp", "arcp")
"""The vocabularies a fault can be translated into."""

# everyday code → its code elsewhere; a vocabulary that is not listed uses the same code.
_CODES: dict[str, dict[str, str]] = {
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
    "QUOTA_EXCEEDED": {
        "cli": "PAYMENT_REQUIRED",
        "task": "INTERNAL_ERROR",
        "adcp": "SERVICE_UNAVAILABLE",
        "arcp": "BUDGET_EXHAUSTED",
    },
    "OVERLOADED": {
        "cli": "SERVICE_UNAVAILABLE",
        "task": "AGENT_BUSY",
        "adcp": "SERVICE_UNAVAILABLE",
        "arcp": "INTERNAL_ERROR",
    },
    "CONTEXT_TOO_LONG": {
        "cli": "VALIDATION_ERROR",
        "task": "INVALID_INPUT",
        "adcp": "VALIDATION_ERROR",
        "arcp": "INVALID_REQUEST",
    },
    "CONTENT_REFUSED": {
        "cli": "VALIDATION_ERROR",
        "task": "INVALID_INPUT",
        "adcp": "POLICY_VIOLATION",
        "arcp": "INVALID_REQUEST",
    },
    "PAYMENT_REQUIRED": {
        "task": "INTERNAL_ERROR",
        "adcp": "ACCOUNT_PAYMENT_REQUIRED",
        "arcp": "BUDGET_EXHAUSTED",
    },
    "NOT_READY": {
        "cli": "SERVICE_UNAVAILABLE",
        "task": "AGENT_BUSY",
        "adcp": "SERVICE_UNAVAILABLE",
        "arcp": "INTERNAL_ERROR",
    },
}

# Codes that two vocabularies share with the same meaning: these are not translated through the everyday set.
_SHARED = {
    ("adcp", "arcp"): {"INVALID_REQUEST", "BUDGET_EXHAUSTED"},
    ("arcp", "adcp"): {"INVALID_REQUEST", "BUDGET_EXHAUSTED"},
}


def code_in(target: str, everyday: str, recovery: Recovery | None = None) -> str:
    """Return the code of the vocabulary `target` for an everyday code."""
    if everyday == "UNAUTHENTICATED" and target == "adcp" and recovery is Recovery.TERMINAL:
        return "AUTH_INVALID"
    return _CODES.get(everyday, {}).get(target, everyday)


def original(fault: Fault) -> tuple[str, str] | None:
    """
    Return the (vocabulary, code) that a translated fault was raised with, or None if it was not translated.

    `details` may come from outside, so its note is used only if translating the noted code gives this fault's code.
    A note can make a code more specific, but not turn it into another one.
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
    """Return the row of the code that a fault was raised with, also if it was translated since."""
    name, code = original(fault) or (fault.vocabulary, fault.code)
    return row_for(name, code, fault.status)


def suggestion_for(fault: Fault) -> str:
    """
    Return what the caller of a fault without suggestions can do. It never contradicts the recovery class.

    >>> suggestion_for(Fault(code="SERVICE_UNAVAILABLE"))
    'Try again later, waiting longer each time'
    >>> suggestion_for(Fault(code="SERVICE_UNAVAILABLE", recovery=Recovery.TERMINAL))
    'Do not repeat it; report it to the operator of the service'
    """
    return source_row(fault).suggestion_under(fault.recovery)


# Seconds to wait before a retry, by everyday code, if the author and the row name no wait.
_WAITS = {"RATE_LIMITED": 5.0, "SERVICE_UNAVAILABLE": 5.0}
_WAIT = 1.0


def default_wait(fault: Fault) -> float:
    """
    Return the seconds that a document states for a retriable fault whose author named no wait.

    >>> default_wait(Fault(code="SERVICE_UNAVAILABLE")), default_wait(Fault(code="INTERNAL_ERROR"))
    (5.0, 1.0)
    """
    row = source_row(fault)
    return row.wait or _WAITS.get(row.everyday, _WAIT)


def transfer(fault: Fault, to: str, *, prefix: str | None = None) -> Fault:
    """
    Translate a fault into the vocabulary `to`.

    Args:
        fault: the fault.
        to: one of TARGETS.
        prefix: the vendor's name for own codes in AdCP: with "ACME", OUT_OF_STOCK becomes X_ACME_OUT_OF_STOCK.

    Raises:
        LookupError: if `to` is not one of TARGETS.

    """
    target: object = to
    if not isinstance(target, str) or target not in TARGETS:
        raise LookupError(f"cannot translate into {shown(to)}; choose one of {', '.join(TARGETS)}")
    if fault.vocabulary == to:
        if to == "adcp" and prefix is not None and fault.origin is None:
            code = adcp_code(fault, prefix)
            # Any other replacement is made, and logged, where the error is written.
            fault = replace(fault, code=code) if code.startswith("X_") else fault
        if all(child.vocabulary == to for child in fault.errors):
            return fault
        return replace(fault, errors=tuple(transfer(child, to, prefix=prefix) for child in fault.errors))
    row = row_for(fault.vocabulary, fault.code, fault.status)
    code, details = _code(fault, to, row, prefix)
    changes: dict[str, object] = {"vocabulary": to, "code": code, "details": details}
    if fault.raised is not None:
        if (fault.raised.vocabulary, fault.raised.code) == (to, code):
            changes["raised"] = None
    elif code != fault.code or to in _WITHOUT_OUR_MEMBERS:
        changes["raised"] = fault
    if to == "http" and fault.status is None:
        changes["status"] = row.status or row_for(EVERYDAY, row.everyday).status
    if row.everyday == "CANCELLED" and fault.origin is None and row.recovery is fault.recovery:
        # It was raised here without a recovery, and vocabularies differ on cancellations (M5). A fault from outside
        # keeps the recovery it was received with.
        changes["recovery"] = row_for("http" if to == "http" else EVERYDAY, "CANCELLED").recovery
    if to == "adcp" and _is_stale_version(fault, code):
        changes["recovery"] = Recovery.TRANSIENT
    if fault.errors:
        changes["errors"] = tuple(transfer(child, to, prefix=prefix) for child in fault.errors)
    return replace(fault, **changes)


_VERSIONS = frozenset({"expected_version", "current_version"})


def _is_stale_version(fault: Fault, code: str) -> bool:
    """
    Whether a conflict is about a version that has changed meanwhile (M5): AdCP's own CONFLICT, which is transient.

    Its details have the members that AdCP recommends. The author of any other conflict means one that a repeat does not remove.
    """
    return (
        code == "CONFLICT"
        and fault.origin is None
        and fault.recovery is Recovery.CORRECTABLE
        and fault.details is not None
        and fault.details.keys() >= _VERSIONS
    )


def transfer_plainly(fault: Fault, to: str, *, prefix: str | None = None) -> Fault:
    """Translate a fault as `transfer` does, without the note of its original code (M5: AdCP and problems have none)."""
    found = transfer(fault, to, prefix=prefix)
    if found.details is None or ORIGINAL not in found.details:
        return found
    kept = {name: value for name, value in found.details.items() if name != ORIGINAL}
    return replace(found, details=kept or None)


# The codes of own classes that name only their recovery: their everyday code is no more than a default.
_OWN_DEFAULTS = {
    Recovery.TRANSIENT: ("SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE"),
    Recovery.CORRECTABLE: ("VALIDATION_ERROR", "INVALID_REQUEST"),
    Recovery.TERMINAL: ("PERMISSION_DENIED", "CONFIGURATION_ERROR"),
    Recovery.UNCERTAIN: ("INTERNAL_ERROR", "SERVICE_UNAVAILABLE"),
}


def adcp_code(fault: Fault, prefix: str | None = None) -> str:
    """
    Return the code to send for a fault of the adcp vocabulary that was made here (A15).

    Any code of AdCP's table, or of a vendor's form, is itself. Another one gets the prefix; without one, or if that is not a
    vendor's code either, it is replaced by a published code of the same recovery.

    >>> adcp_code(Fault(code="SOLD_OUT", vocabulary="adcp", recovery="correctable"), "ACME")
    'X_ACME_SOLD_OUT'
    """
    from amends.core.vocabularies.adcp import is_standard_code, is_vendor_code

    if is_standard_code(fault.code) or is_vendor_code(fault.code):
        return fault.code
    if prefix is not None and is_vendor_code(vendor := f"X_{prefix}_{fault.code}"):
        return vendor
    return _OWN_DEFAULTS[fault.recovery][1]


def _own_adcp_code(fault: Fault, row: Row, prefix: str | None) -> str:
    """
    Return the AdCP code of an own code: its `adcp_code`, a vendor code, or a published code of the same recovery.

    A class that is derived from an everyday one has that one's code, if AdCP gives it the same recovery.
    """
    from amends.core.vocabularies.adcp import is_vendor_code

    if row.adcp_code is not None:
        return row.adcp_code
    if prefix is not None and is_vendor_code(vendor := f"X_{prefix}_{fault.code}"):
        return vendor
    default, generic = _OWN_DEFAULTS[fault.recovery]
    code = code_in("adcp", row.everyday, fault.recovery)
    if row.everyday == default or row_for("adcp", code).recovery is not fault.recovery:
        return generic
    return code


def _code(fault: Fault, to: str, row: Row, prefix: str | None) -> tuple[str, dict[str, object] | None]:
    """Return the code in the target, and the details with or without the note of the original code."""
    everyday = row.everyday
    earlier = original(fault)
    if earlier is not None:
        if earlier[0] == to or _has_code(to, *earlier):
            details = {key: value for key, value in (fault.details or {}).items() if key != ORIGINAL}
            return earlier[1], details or None
        # Translate from the original code, which the first translation noted.
        return code_in(to, row_for(*earlier, fault.status).everyday, fault.recovery), fault.details
    if _has_code(to, fault.vocabulary, fault.code):
        return fault.code, fault.details
    own = to == "adcp" and (fault.vocabulary == APP or _is_chosen_at_run_time(fault))
    code = _own_adcp_code(fault, row, prefix) if own else code_in(to, everyday, fault.recovery)
    if code == fault.code and code_in(fault.vocabulary, row_for(to, code).everyday, fault.recovery) == code:
        # The code is the same in both vocabularies, so translating back needs no note.
        return code, fault.details
    note = {"vocabulary": fault.vocabulary, "code": fault.code}
    return code, {**(fault.details or {}), ORIGINAL: note}


def _is_chosen_at_run_time(fault: Fault) -> bool:
    """Whether a fault made here has a code of its own that no class and no table has: `FaultError(code="SOLD_OUT")`."""
    return (
        fault.origin is None and fault.vocabulary == EVERYDAY and fault.code not in vocabulary(EVERYDAY).rows
    )


def _has_code(to: str, name: str, code: str) -> bool:
    """Whether the target uses this code of the vocabulary `name` unchanged."""
    if code in _SHARED.get((name, to), ()):
        return True
    # S1 and S2 allow any code, and a user's own code is more specific than the nearest everyday one.
    return name == APP and to in {"http", "cli"} and code in vocabulary(APP).rows
