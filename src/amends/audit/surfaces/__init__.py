"""
Audits of services: HTTP APIs, MCP servers, A2A agents and ARCP runtimes.

    evidence    what was sent and what was answered
    questions   the rubric, as a table
    reading     what one answer says, read with `amends.extract`
    score       the score and the findings; pure
    http, mcp, a2a, arcp    the probes of each kind of service
    exchange, jsonrpc, wsgi    sending them, bounded in number, rate and time
    proxy       the gateway between, with answers that are lost, slow or cut
    text, html, sarif, baseline    the reports
"""

from __future__ import annotations

from amends.audit.surfaces.evidence import Answer, Evidence
from amends.audit.surfaces.score import Finding, SurfaceReport, score

__all__ = ["Answer", "Evidence", "Finding", "SurfaceReport", "score"]
