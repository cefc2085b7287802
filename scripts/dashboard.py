"""Write deploy/grafana-dashboard.json; `--check` compares only. Each panel is one query."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[1] / "deploy" / "grafana-dashboard.json"
BY = "sum by (upstream)"
PANELS: list[tuple[str, str, str, str]] = [
    ("Calls", f"{BY} (rate(amends_gateway_calls_total[$__rate_interval]))", "reqps", "{{upstream}}"),
    (
        "Failures passed on, by code",
        "sum by (upstream, code) (rate(amends_gateway_failures_total[$__rate_interval]))",
        "reqps",
        "{{upstream}} {{code}}",
    ),
    (
        "Share of calls that failed",
        f"{BY} (rate(amends_gateway_failed_total[$__rate_interval])) / {BY} (rate(amends_gateway_calls_total[$__rate_interval]))",
        "percentunit",
        "{{upstream}}",
    ),
    ("Recovered calls", f"{BY} (rate(amends_gateway_recovered_total[$__rate_interval]))", "reqps", "{{upstream}}"),
    ("Repeats", f"{BY} (rate(amends_gateway_repeats_total[$__rate_interval]))", "reqps", "{{upstream}}"),
    ("Failovers", f"{BY} (rate(amends_gateway_failovers_total[$__rate_interval]))", "reqps", "{{upstream}}"),
    *(
        (
            f"Seconds until an answer began, p{share}",
            f"histogram_quantile(0.{share}, sum by (upstream, le) (rate(amends_gateway_answer_seconds_bucket[$__rate_interval])))",
            "s",
            "{{upstream}}",
        )
        for share in (50, 99)
    ),
    ("Seconds waited per second", f"{BY} (rate(amends_gateway_wait_seconds_total[$__rate_interval]))", "s", "{{upstream}}"),
    ("Calls in flight", f"{BY} (amends_gateway_in_flight)", "short", "{{upstream}}"),
    ("Calls that wait", f"{BY} (amends_gateway_waiting)", "short", "{{upstream}}"),
    ("Credentials and routes that are held back", f"{BY} (amends_gateway_held)", "short", "{{upstream}}"),
    ("Up, by the health path", f"{BY} (amends_gateway_up)", "short", "{{upstream}}"),
    (
        "Duplicates avoided",
        f"{BY} (increase(amends_gateway_duplicates_avoided_total[$__range]))",
        "short",
        "{{upstream}}",
    ),
    (
        "Calls of models that may have been computed twice",
        f"{BY} (increase(amends_gateway_recomputed_total[$__range]))",
        "short",
        "{{upstream}}",
    ),
    ("Refused by the gateway", f"{BY} (rate(amends_gateway_refused_total[$__rate_interval]))", "reqps", "{{upstream}}"),
]  # fmt: skip


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    source = {"type": "prometheus", "uid": "${source}"}
    panels = [
        {
            "id": number + 1,
            "title": title,
            "type": "timeseries",
            "datasource": source,
            "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
            "targets": [{"refId": "A", "datasource": source, "expr": query, "legendFormat": legend}],
        }
        for number, (title, query, unit, legend) in enumerate(PANELS)
    ]
    variable = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "title": "amends gateway",
        "uid": "amends-gateway",
        "schemaVersion": 39,
        "tags": ["amends"],
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": panels,
    }


def main() -> int:
    """Write or compare the file."""
    text = json.dumps(dashboard(), indent=1) + "\n"
    if "--check" in sys.argv:
        return 0 if PATH.read_text() == text else 1
    PATH.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
