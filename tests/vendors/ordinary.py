"""Successful answers of services that describe something failed, or use the names of error members for other things."""

from collections.abc import Iterator
from typing import Any

# Members that look like an error and are none, as services send them in successful answers.
TRAPS: tuple[dict[str, Any], ...] = (
    {"error": None},
    {"error": {"code": None, "message": None, "param": None}},
    {"error": ""},
    {"errors": []},
    {"errors": None},
    {"errors": {}},
    {"status": "failed"},
    {"status": "error"},
    {"state": "FAILED"},
    {"conclusion": "failure"},
    {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    {"code": "US"},
    {"code": 429, "name": "Too Many Requests"},
    {"type": "error", "name": "log level"},
    {"title": "How to handle errors", "detail": "A chapter"},
    {"reason": "rate_limit_exceeded"},
    {"message": "rate limit exceeded, please retry after 30 seconds"},
    {"retry_after": 30},
    {"retryable": False},
    {"last_error": {"code": "rate_limit_exceeded", "message": "x"}},
    {"status_code": 500, "checked_url": "https://example.com"},
    {"error_count": 3, "errors": [{"file": "a.py", "line": 3, "rule": "E501", "severity": "error"}]},
    {"success": True, "errors": [], "messages": []},
    {"ok": True, "error": None},
    {"failure_code": "card_declined", "outcome": {"network_status": "declined_by_network"}},
    {"warnings": [{"code": "deprecated", "message": "x"}]},
    {"errcode": 0, "errmsg": "ok"},
    {"base_resp": {"status_code": 0, "status_msg": "success"}},
    {"error_code": 0, "error_msg": ""},
    {"error_code": "E_NONE", "result": []},
    {"sys": {"type": "Entry", "id": "RateLimitExceeded"}},
    {"tag": "quota_exceeded", "path": "/a"},
)

# Objects of services.
OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "finish_reason": "content_filter",
                "message": {"role": "assistant", "content": "insufficient_quota"},
            }
        ],
        "usage": {"total_tokens": 9},
    },
    {
        "id": "ftjob-1",
        "object": "fine_tuning.job",
        "model": "gpt-4o",
        "hyperparameters": {},
        "trained_tokens": None,
    },
    {
        "id": "batch_1",
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "request_counts": {"failed": 2, "total": 5},
    },
    {"id": "run_1", "object": "thread.run", "thread_id": "t"},
    {
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "tool_use", "name": "x", "input": {}}],
        "stop_reason": "refusal",
    },
    {
        "id": 7,
        "web_url": "https://gitlab.example.com/j/7",
        "stage": "test",
        "failure_reason": "script_failure",
    },
    {
        "id": 8,
        "head_sha": "abc",
        "html_url": "https://github.com/o/r/runs/8",
        "output": {"annotations_count": 2},
    },
    {"id": "ch_1", "object": "charge", "paid": False, "amount": 500, "currency": "eur"},
    {
        "id": "pi_1",
        "object": "payment_intent",
        "last_payment_error": {"code": "card_declined", "type": "card_error"},
    },
    {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {}},
    {
        "took": 3,
        "timed_out": False,
        "hits": {"total": {"value": 1}, "hits": [{"_source": {"error": {"type": "x"}}}]},
    },
    {"name": "projects/p/operations/o", "done": True, "response": {"@type": "type.googleapis.com/x"}},
    {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "SAFETY"}], "usageMetadata": {}},
    {"data": {"viewer": {"login": "x"}}},
    {"data": [{"id": "1", "attributes": {"errors": ["a"]}}], "meta": {"total": 1}},
    {"items": [{"id": 1, "status": "failed"}], "total": 1},
    {"jobs": [{"id": 1, "error": "timeout"}]},
    {"result": {"id": "z", "error": {"message": "of a probe"}}},
    {"channel": "C1", "ts": "1.2", "text": "error: ratelimited"},
    {"rows": [[1, "RESOURCE_EXHAUSTED"]], "columns": ["n", "status"]},
)

ALONE: tuple[Any, ...] = (
    {"rate": {"limit": 60, "remaining": 0, "reset": 1704067200}, "resources": {}},
    {"resultType": "vector", "result": []},
    {"quota": {"used": 100, "limit": 100, "exceeded": True}},
    {"type": "book", "title": "Errors and Omissions"},
    {"code": "DE", "name": "Germany"},
    {"code": "SAVE10", "message": "Welcome"},
    {"status": "ok", "code": 0},
    {"status": {"state": "FAILED"}, "id": "run"},
    {"errors": ["first note", "second note"]},
    {"errors": [{"code": "E501", "message": "line too long", "line": 3}]},
    {"errors": [{"message": "unused import", "ruleId": "no-unused"}], "filePath": "a.js"},
    {"results": [{"errorCount": 1, "messages": [{"ruleId": "x", "severity": 2, "message": "y"}]}]},
    {"error": False, "message": "saved"},
    {"error": 0, "data": []},
    {"error": {}, "data": {}},
    {"error": "none", "value": 3},
    {"exception": None, "stack": None},
    {"level": "error", "msg": "rate limit exceeded", "time": "2024-01-01T00:00:00Z"},
    {"log": [{"level": "ERROR", "code": "insufficient_quota"}]},
    {"data": None, "code": "333334", "message": "Query execution in progress", "success": True},
    {"code": "333333", "message": "in progress", "statementHandle": "h", "statementStatusUrl": "/x"},
    {"access_token": "x", "token_type": "bearer", "scope": "", "expires_in": 3600},
    {"device_code": "x", "user_code": "A-B", "interval": 5, "expires_in": 900},
    {"jsonrpc": "2.0", "id": 1, "result": {"error": None}},
    {"took": 1, "errors": False, "items": [{"index": {"status": 201}}]},
    {"UnprocessedItems": {}},
    {"Failed": [], "Successful": [{"Id": "1"}]},
    [{"id": 1, "error": None}, {"id": 2}],
    [{"code": "EUR"}, {"code": "USD"}],
    [],
    "plain text that says error: too many requests",
    "<html><body>Error page theme preview</body></html>",
    '<?xml version="1.0"?><ListBucketResult><Name>b</Name></ListBucketResult>',
    'data: {"choices":[{"delta":{"content":"error"}}]}\n\ndata: [DONE]\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"overloaded_error"}}\n\n',
    '{"model":"x","response":"a","done":false}\n{"model":"x","response":"","done":true}\n',
    5,
    None,
    True,
)


def bodies() -> Iterator[Any]:
    """Yield every object alone and with every trap, and the other bodies."""
    yield from ALONE
    for made in OBJECTS:
        yield made
        for trap in TRAPS:
            yield {**made, **{name: value for name, value in trap.items() if name not in made}}
