"""The findings of a service as SARIF 2.1.0, which code-scanning services read."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from amends._version import __version__
from amends.audit.surfaces.questions import QUESTIONS
from amends.audit.surfaces.score import SurfaceReport

__all__ = ["sarif"]


_SCHEME = re.compile(r"[a-z]{1,10}://")


def sarif(report: SurfaceReport) -> dict[str, object]:
    """Return the SARIF document. A leak and a failure reported as success are errors; the rest are warnings and notes."""
    rules = [
        {
            "id": f"amends/{one.id}",
            "shortDescription": {"text": one.asks},
            "help": {"text": f"{one.fix} ({one.clause})"},
            "defaultConfiguration": {"level": _level(one.weight)},
        }
        for one in QUESTIONS
    ]
    results = [
        {
            "ruleId": f"amends/{one.id}",
            "level": _level(one.weight),
            "message": {"text": f"{one.asks} no: {', '.join(one.probes)}. {one.fix}"},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": _uri(report.target)}},
                    "logicalLocations": [{"fullyQualifiedName": one.sent}],
                }
            ],
            "partialFingerprints": {"amends/v1": one.key},
            "properties": {"target": report.target, "evidence": one.evidence},
        }
        for one in report.findings
    ]
    driver = {"name": "amends audit", "semanticVersion": __version__, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _uri(target: str) -> str:
    """
    Return a target as a relative URI, without the scheme of an address.

    GitHub's code scanning refuses a whole file if one URI has another scheme than the checkout, which is `file`, or is empty.

    >>> _uri("http://127.0.0.1:8000/api"), _uri("uvx some-server")
    ('127.0.0.1%3A8000/api', 'uvx%20some-server')
    """
    scheme = _SCHEME.match(target)
    rest = unquote(target[scheme.end() :]) if scheme else target
    return quote(rest, safe="/") or "target"


def _level(weight: int) -> str:
    return "error" if weight >= 8 else "warning" if weight >= 4 else "note"
