"""
JSON Schemas of the Fault, of the output of `amends decode`, and of every dialect.

The first three are generated from the types. The dialects' schemas are JSON files in this folder.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec

__all__ = ["NAMES", "schema"]

_FILES = ("problem", "envelope", "task", "adcp", "arcp")
NAMES = ("fault", "decode", "service", *_FILES)
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """
    Return the schema called `name`.

    >>> schema("problem")["type"]
    'object'

    Raises:
        LookupError: if there is no schema of this name; the message lists the names.

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
    if name == "service":
        from amends.vendors.service_file import ServiceFile

        return {"$schema": _DRAFT, "title": "Failures of one service", **msgspec.json.schema(ServiceFile)}
    raise LookupError(f"no schema {name!r}; the schemas are {', '.join(NAMES)}")
