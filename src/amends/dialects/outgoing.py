"""
What may leave. Only faults made in this process pass through here: what came from outside is passed on as it came.

AdCP and problem documents are read by strangers, so what a producer wrote by mistake is taken out (A19). ARCP and
task errors promise their details exactly as raised (R4), so there it is left and a warning logged.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.fault import Fault

__all__ = ["checked", "redacted", "warned"]

_TEXTS = ("message", "title", "user_message")


def redacted(fault: Fault) -> Fault:
    """`fault` with addresses, host names, paths, SQL, stack traces and secrets taken out of its free texts."""
    from amends.core.redaction import URL_MEMBERS, redact, redact_value

    changes: dict[str, Any] = {}
    for name in _TEXTS:
        before = getattr(fault, name)
        if before:
            after = redact(before)
            if after != before:
                changes[name] = after
    if fault.suggestions:
        changes["suggestions"] = tuple(redact(item) for item in fault.suggestions)
    if fault.details:
        changes["details"] = redact_value(fault.details, keep=URL_MEMBERS)
    if fault.extensions:
        changes["extensions"] = redact_value(fault.extensions, keep=URL_MEMBERS)
    if fault.errors:
        changes["errors"] = tuple(redacted(child) for child in fault.errors)
    return replace(fault, **changes) if changes else fault


def checked(fault: Fault) -> None:
    """A14: log a warning where AdCP details differ from their recommended shape or are too large to be read cheaply."""
    if fault.details is None:
        return
    from amends.core.details import check_details

    for warning in check_details(fault.code, fault.details):
        import logging

        logging.getLogger("amends").warning("AdCP details of %s: %s", fault.code, warning)


def warned(fault: Fault, dialect: str) -> None:
    """Log a warning, without the text, when a fault made here carries what looks like a leak."""
    from amends.core.redaction import find

    texts = [fault.message, *fault.suggestions]
    if fault.details:
        from amends.core.wire import compact

        texts.append((compact(fault.details) or b"").decode("utf-8", "replace"))
    kinds = sorted({leak.kind for text in texts if text for leak in find(text)})
    if kinds:
        import logging

        logging.getLogger("amends").warning(
            "a %s error with code %s carries what looks like: %s", dialect, fault.code, ", ".join(kinds)
        )
