"""
The recommended `details` of seven AdCP codes, checked where they are written (A14).

They are recommendations: any key may be missing, and others may be added. So nothing is refused here; a producer
is told what a reader will stumble over, and a reader never asks. The keys are the published schemas' (3.2.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

__all__ = ["MAX_BYTES", "SHAPES", "Kind", "check_details"]

MAX_BYTES = 500
"""Details stay under this many bytes of compact UTF-8 JSON: every one of them costs a reader's context."""


class Kind(msgspec.Struct, frozen=True):
    """What one recommended key holds."""

    words: str
    type: Any
    """As msgspec understands it, for decoded JSON."""


_NUMBER = Kind("a number", float)
_STRING = Kind("a string", str)
_STRINGS = Kind("a list of strings", list[str])
_VERSION = Kind("a number or a string", float | str)

SHAPES: Mapping[str, Mapping[str, Kind]] = {
    "RATE_LIMITED": {
        "limit": _NUMBER,
        "remaining": _NUMBER,
        "window_seconds": _NUMBER,
        "scope": Kind("one of account, tool, global", Literal["account", "tool", "global"]),
    },
    "BUDGET_TOO_LOW": {"minimum_budget": _NUMBER, "currency": _STRING},
    "AUDIENCE_TOO_SMALL": {"minimum_size": _NUMBER, "current_size": _NUMBER},
    "ACCOUNT_SETUP_REQUIRED": {"setup_url": _STRING, "setup_steps": _STRINGS},
    "CREATIVE_REJECTED": {"policy_id": _STRING, "policy_url": _STRING, "reasons": _STRINGS},
    "POLICY_VIOLATION": {
        "origin": Kind("one of buyer_plan, registry, seller", Literal["buyer_plan", "registry", "seller"]),
        "policy_id": _STRING,
        "seller_policy_ref": _STRING,
        "policy_url": _STRING,
        "violated_rules": _STRINGS,
        "category": _STRING,
    },
    "CONFLICT": {"resource_id": _STRING, "expected_version": _VERSION, "current_version": _VERSION},
}


def check_details(code: str, details: object) -> tuple[str, ...]:
    """
    What is wrong with the details a producer wants to send, in plain words; empty when nothing is.

    Never raises, and never repeats a value: warnings end up in logs. What counts is what goes over the wire, so a
    tuple is a list here and NaN is null. A code without a recommended shape is only measured.
    """
    if details is None:
        return ()
    try:
        wire = msgspec.json.encode(details)
        found = msgspec.json.decode(wire)
    except Exception:  # noqa: BLE001 - the value is the user's own and may raise anything while it is read
        return ("details cannot be written as JSON",)
    warnings = []
    if len(wire) >= MAX_BYTES:
        warnings.append(f"details take {len(wire)} bytes of JSON; keep them under {MAX_BYTES}")
    shape = SHAPES.get(code)
    if shape is not None:
        if isinstance(found, dict):
            warnings += [
                f"details.{key} should be {kind.words}, or be left out"
                for key, kind in shape.items()
                if key in found and not _fits(found[key], kind)
            ]
        else:
            warnings.append("details should be an object, or be left out")
    return tuple(warnings)


def _fits(value: object, kind: Kind) -> bool:
    """Whether a decoded value is what its key should hold."""
    try:
        msgspec.convert(value, kind.type)
    except msgspec.ValidationError:
        return False
    return True
