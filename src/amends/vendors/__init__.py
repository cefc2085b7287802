"""
Failures in the formats of services: what their code words mean, and where they are found.

The facts about a service are data: one file per service, compiled into `services.json` (docs/services.md). The other modules read
shapes: `evidence` the members of a JSON body, `markup` XML and HTML, `streams` event streams, `successes` failures inside successful
answers. `reading` puts them together. Everything is loaded on first use.

Only machine-readable code words decide, together with the status; prose never does.
"""

from __future__ import annotations

from amends.vendors.model import Key, Vendor
from amends.vendors.registry import check, hosts, load_installed, names, vendor
from amends.vendors.service_file import load

__all__ = ["NAMES", "Key", "Vendor", "check", "hosts", "load", "load_installed", "names", "vendor"]

NAMES: tuple[str, ...]
"""The names of all services: `names()`."""


def __getattr__(name: str) -> object:
    if name == "NAMES":
        return names()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
