"""
Check the recommended `details` of seven AdCP codes when an error is written (A14).

They are recommendations: any key may be missing, and others may be added. So a producer gets warnings, and nothing is
refused; readers do not check. The keys are those of the published schemas (3.2.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

__all__ = ["MAX_BYTES", "SHAPES", "Kind", "check_details"]

MAX_BYTES = 500
"""Recommended size in bytes of compact UTF-8 JSON. Details take up space in the context of the model that reads them."""


class Kind(msgspec.Struct, frozen=True):
    """The recommended type of one key."""

    description: str
    type: Any
    """The type for `msgspec.convert`."""


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
    Return warnings about the details that a producer wants to send; empty if there are none.

    Never raises, and never quotes a value, because warnings are logged. The JSON is checked: a tuple is a list and
    NaN is null. For a code without a recommended shape only the size is checked.
    """
    if details is None:
        return ()
    try:
        wire = msgspec.json.encode(details)
        found = msgspec.json.decode(wire)
    except Exception:  # noqa: BLE001 - encoding a user's value may raise anything
        return ("details cannot be written as JSON",)
    warnings = []
    if len(wire) >= MAX_BYTES:
        warnings.append(f"details take {len(wire)} bytes of JSON; keep them under {MAX_BYTES}")
    shape = SHAPES.get(code)
    if shape is not None:
        if isinstance(found, dict):
            warnings += [
                f"details.{key} should be {kind.description}, or be left out"
                for key, kind in shape.items()
                if key in found and not _fits(found[key], kind)
            ]
        else:
            warnings.append("details should be an object, or be left out")
    return tuple(warnings)


def _fits(value: object, kind: Kind) -> bool:
    """Whether a decoded value has the recommended type of its key."""
    try:
        msgspec.convert(value, kind.type)
    except msgspec.ValidationError:
        return False
    return True
