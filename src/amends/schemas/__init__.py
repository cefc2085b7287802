"""
JSON Schemas: of the Fault, of what `amends decode` prints, and of every dialect.

The first two are made from the types, so they cannot drift; the dialects' are files beside this one.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec

__all__ = ["NAMES", "schema"]

_FILES = ("problem", "envelope", "task", "adcp", "arcp")
NAMES = ("fault", "decode", *_FILES)
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """
    The schema called `name`.

    Raises:
        LookupError: when there is none; the message lists what there is.

    """
    if name in _FILES:
        found: dict[str, Any] = msgspec.json.decode(files(__name__).joinpath(f"{name}.json").read_bytes())
        return found
    if name == "fault":
        from amends.core.fault import Fault

        return {"$schema": _DRAFT, "title": "Fault", **msgspec.json.schema(Fault)}
    if name == "decode":
        from amends.carriers.report import Report

        return {"$schema": _DRAFT, "title": "What amends decode prints", **msgspec.json.schema(Report)}
    raise LookupError(f"no schema {name!r}; there are {', '.join(NAMES)}")
