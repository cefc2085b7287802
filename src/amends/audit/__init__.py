"""
Scores command lines by the CLI agent spec's rubric for retry hints, and keeps the evidence.

    from amends.audit import observe, score

    report = score(observe(["tool"], call="get 42", env={"TOOL_URL": "{url}"}))
"""

from __future__ import annotations

from amends.audit.evidence import Evidence, Observation
from amends.audit.probes import observe
from amends.audit.rubric import Report, score
from amends.audit.views import html

__all__ = ["Evidence", "Observation", "Report", "html", "observe", "score"]
