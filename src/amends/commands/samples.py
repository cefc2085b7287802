"""One sample failure of each dialect, for `amends try --samples`."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SAMPLES"]

SAMPLES: tuple[tuple[str, str, str, Mapping[str, object]], ...] = (
    (
        "An HTTP API is rate limited",
        "http",
        "adcp",
        {
            "status": 429,
            "headers": {"Content-Type": "application/problem+json", "Retry-After": "7"},
            "body": {
                "type": "https://shop.example/errors/rate-limited",
                "title": "Too many requests",
                "status": 429,
                "detail": "The limit of this account is reached",
                "is_retriable": True,
                "retry_after_ms": 6500,
                "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            },
        },
    ),
    (
        "A command refuses an argument",
        "cli",
        "http",
        {
            "exit": 2,
            "stdout": '{"ok": false, "error": {"code": "VALIDATION_ERROR", "message": "Not an e-mail address", '
            '"retryable": false, "fix_required": "Correct --email before running it again"}}',
            "stderr": "",
        },
    ),
    (
        "An agent's tool is not connected",
        "task",
        "cli",
        {
            "id": "task-41",
            "status": "failed",
            "error": {
                "code": "MCP_NOT_CONNECTED",
                "message": "The calendar is not connected",
                "details": {"mcp": "calendar", "requiredBy": "scheduling-agent"},
                "recoverable": True,
            },
        },
    ),
    (
        "An MCP tool answers with an AdCP error",
        "mcp",
        "task",
        {
            "isError": True,
            "content": [{"type": "text", "text": "Budget too low."}],
            "structuredContent": {
                "adcp_error": {
                    "code": "BUDGET_TOO_LOW",
                    "message": "The budget does not reach the product's minimum",
                    "recovery": "correctable",
                    "field": "packages[0].budget",
                    "suggestion": "Raise the budget of the first package",
                }
            },
        },
    ),
    (
        "An ARCP job runs out of time",
        "arcp",
        "http",
        {
            "arcp": "1.1",
            "id": "m-9",
            "type": "job.error",
            "job_id": "job-7",
            "payload": {
                "code": "TIMEOUT",
                "message": "The job took longer than its 30 seconds",
                "retryable": True,
                "details": {"max_runtime_sec": 30},
            },
        },
    ),
)
"""(title, via, the vocabulary to translate it to, the response)"""
