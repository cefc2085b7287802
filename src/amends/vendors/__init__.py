"""
Failures in the formats of common services: what their code words mean, and where they are found.

`tables` has one small module per service with its facts. The other modules read shapes: `evidence` the members of a JSON
body, `markup` XML and HTML, `streams` event streams, `successes` failures inside successful answers. `reading` puts them
together. Everything is loaded on first use.

Only machine-readable words decide, together with the status; prose never does.
"""

from __future__ import annotations

from amends.vendors.model import Key, Kind, Vendor
from amends.vendors.registry import NAMES, check, vendor

__all__ = ["NAMES", "Key", "Kind", "Vendor", "check", "vendor"]
