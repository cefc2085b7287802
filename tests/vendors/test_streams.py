"""
Failures inside successful answers and streams, in the framing of each service: cases and one test.

Each case has the answer, the codes and recoveries that are right (None: no failure), and what else has to hold.
"""

import base64
import binascii
import json
import struct

import pytest

from amends import extract
from tests.each import each


def sse(*events):
    out = []
    for e in events:
        if isinstance(e, tuple):
            out.append(f"event: {e[0]}\ndata: {json.dumps(e[1]) if not isinstance(e[1], str) else e[1]}\n\n")
        else:
            out.append(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n")
    return "".join(out)


CH = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}
ROLE = {
    "id": "c",
    "object": "chat.completion.chunk",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}],
}


def hdr(n, v):
    return bytes([len(n)]) + n.encode() + b"\x07" + struct.pack(">H", len(v)) + v.encode()


def aws(headers, payload):
    h = b"".join(hdr(k, v) for k, v in headers.items())
    p = json.dumps(payload).encode()
    pre = struct.pack(">II", 16 + len(h) + len(p), len(h))
    pre += struct.pack(">I", binascii.crc32(pre))
    m = pre + h + p
    return m + struct.pack(">I", binascii.crc32(m))


CHUNK = aws(
    {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}, {"bytes": "e30="}
)


def exc(n, **p):
    return aws(
        {":exception-type": n, ":content-type": "application/json", ":message-type": "exception"},
        p or {"message": "x"},
    )


def env(flag, v):
    b = v if isinstance(v, bytes) else json.dumps(v).encode()
    return bytes([flag]) + struct.pack(">I", len(b)) + b


def pb(n, v):
    def var(x):
        o = b""
        while True:
            y = x & 127
            x >>= 7
            if x:
                o += bytes([y | 128])
            else:
                return o + bytes([y])

    if isinstance(v, int):
        return var(n << 3) + var(v)
    v = v.encode() if isinstance(v, str) else v
    return var(n << 3 | 2) + var(len(v)) + v


def status(code, *details):
    m = pb(1, code) + pb(2, "x")
    for t, v in details:
        m += pb(3, pb(1, "type.googleapis.com/google.rpc." + t) + pb(2, v))
    return base64.b64encode(m).decode().rstrip("=")


RI = ("RetryInfo", pb(1, pb(1, 20)))


def quota(qid):
    return ("QuotaFailure", pb(1, pb(1, "s") + pb(2, "d") + pb(3, "svc") + pb(4, "metric") + pb(5, qid)))


def info(reason, **md):
    v = pb(1, reason) + pb(2, "googleapis.com")
    for k, x in md.items():
        v += pb(3, pb(1, k) + pb(2, x))
    return ("ErrorInfo", v)


def trailers(code, *details):
    return {
        "status": 200,
        "headers": {"content-type": "application/grpc"},
        "body": b"",
        "trailers": {
            "grpc-status": str(code),
            "grpc-message": "x",
            "grpc-status-details-bin": status(code, *details),
        },
    }


S = []


def s(name, doc, code, rec, exe=None, wait=None, word=None, vendor=None, ct="text/event-stream"):
    if isinstance(doc, (str, bytes)):
        doc = {"status": 200, "headers": {"content-type": ct}, "body": doc}
    S.append((name, doc, code, rec, exe, wait, word, vendor))


def error(**members):
    return {"error": members}


s(
    "openai chat overload",
    sse(CH, error(message="x", type="server_error", param=None, code=None)),
    "INTERNAL_ERROR",
    "uncertain|transient",
    "maybe",
)
s(
    "openai quota first",
    sse(error(message="x", type="insufficient_quota", param=None, code="insufficient_quota")),
    "QUOTA_EXCEEDED",
    "terminal",
    "maybe",
)
s(
    "openai responses failed",
    sse(
        ("response.created", {"type": "response.created", "response": {"id": "r", "status": "in_progress"}}),
        (
            "response.failed",
            {
                "type": "response.failed",
                "response": {
                    "id": "r",
                    "object": "response",
                    "status": "failed",
                    "error": {"code": "rate_limit_exceeded", "message": "x"},
                },
            },
        ),
    ),
    "RATE_LIMITED",
    "transient",
    "maybe",
    None,
    "rate_limit_exceeded",
)
s(
    "openai responses error",
    sse(
        ("response.created", {"type": "response.created"}),
        (
            "error",
            {
                "type": "error",
                "code": "server_is_overloaded",
                "message": "x",
                "param": None,
                "sequence_number": 2,
            },
        ),
    ),
    "OVERLOADED",
    "transient",
)
s(
    "openai responses nested",
    sse(
        (
            "error",
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "code": "context_length_exceeded",
                    "message": "x",
                    "param": "input",
                },
                "sequence_number": 1,
            },
        )
    ),
    "CONTEXT_TOO_LONG",
    "correctable",
    "maybe",
)
s(
    "anthropic overload",
    sse(
        ("message_start", {"type": "message_start", "message": {}}),
        ("ping", {"type": "ping"}),
        ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ),
    "OVERLOADED",
    "transient",
    None,
)
s(
    "anthropic after",
    sse(
        ("message_start", {"type": "message_start", "message": {}}),
        ("content_block_delta", {"type": "content_block_delta", "delta": {"text": "Hi"}}),
        ("error", {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}),
    ),
    "RATE_LIMITED",
    "transient",
    "maybe",
)
s(
    "anthropic billing",
    sse(("error", {"type": "error", "error": {"type": "billing_error", "message": "x"}})),
    "QUOTA_EXCEEDED",
    "terminal",
    "maybe",
)
s(
    "gemini sse bare",
    sse({"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]})
    + json.dumps(error(code=503, message="x", status="UNAVAILABLE"), indent=2),
    "SERVICE_UNAVAILABLE",
    "transient",
    "maybe",
)
s(
    "gemini array",
    json.dumps(
        [
            {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]},
            error(
                code=429,
                message="x",
                status="RESOURCE_EXHAUSTED",
                details=[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}],
            ),
        ]
    ),
    "RATE_LIMITED",
    "transient",
    None,
    7.0,
    ct="application/json",
)
s(
    "gemini array cut",
    '[{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}\n,\r\n'
    + json.dumps(error(code=500, message="x", status="INTERNAL"))
    + "\n",
    "INTERNAL_ERROR",
    "uncertain|transient",
    "maybe",
    ct="application/json",
)
s(
    "mistral",
    sse(CH, {"object": "error", "message": "x", "type": "service_tier_capacity_exceeded", "code": "3505"}),
    "OVERLOADED|RATE_LIMITED",
    "transient",
    "maybe",
)
s(
    "groq",
    sse(
        ROLE,
        (
            "error",
            error(message="x", type="invalid_request_error", code="tool_use_failed", failed_generation="y"),
        ),
    ),
    "*",
    "correctable|uncertain|transient",
)
s(
    "openrouter",
    sse(
        ": OPENROUTER PROCESSING",
        {
            "id": "g",
            "object": "chat.completion.chunk",
            "error": {"code": 502, "message": "x"},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
        },
    ),
    "BAD_GATEWAY|SERVICE_UNAVAILABLE|INTERNAL_ERROR",
    "transient",
)
s(
    "openrouter comments",
    ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + sse({"error": {"code": 402, "message": "x"}}),
    "QUOTA_EXCEEDED",
    "terminal",
    "maybe",
)
s(
    "choices error",
    json.dumps(
        {
            "id": "g",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "error",
                    "native_finish_reason": "error",
                    "error": {"code": 429, "message": "x", "metadata": {"raw": "y"}},
                    "message": {"role": "assistant", "content": ""},
                }
            ],
            "model": "m",
            "object": "chat.completion",
        }
    ),
    "RATE_LIMITED",
    "transient",
    ct="application/json",
)
s(
    "cohere v2",
    sse(
        ("message-start", {"type": "message-start"}),
        ("message-end", {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "x"}}),
    ),
    "INTERNAL_ERROR",
    "uncertain|transient",
)
s(
    "cohere v1 ndjson",
    '{"is_finished":false,"event_type":"text-generation","text":"Hi"}\n{"is_finished":true,"event_type":"stream-end","finish_reason":"ERROR_TOXIC","response":{}}\n',
    "CONTENT_REFUSED",
    "correctable",
    ct="application/stream+json",
)
s(
    "ollama",
    '{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n{"error":"an error was encountered while running the model"}\n',
    "INTERNAL_ERROR",
    "uncertain|transient",
    "maybe",
    ct="application/x-ndjson",
)
s(
    "vllm",
    sse(CH, {"object": "error", "message": "x", "type": "InternalServerError", "param": None, "code": 500}),
    "INTERNAL_ERROR",
    "uncertain|transient",
    "maybe",
)
s(
    "vllm new",
    sse(CH, error(message="x", type="BadRequestError", param=None, code=400)),
    "VALIDATION_ERROR|BAD_REQUEST",
    "correctable",
    "maybe",
)
s(
    "hf tgi",
    sse({"error": "Request failed during generation: Server error", "error_type": "generation"}),
    "INTERNAL_ERROR",
    "uncertain|transient",
)
s(
    "hf tgi overloaded",
    sse({"error": "Model is overloaded", "error_type": "overloaded"}),
    "OVERLOADED",
    "transient",
)
s(
    "deepseek",
    sse(
        ": keep-alive",
        error(message="Insufficient Balance", type="unknown_error", param=None, code="invalid_request_error"),
    ),
    "VALIDATION_ERROR|BAD_REQUEST",
    "correctable",
)
s(
    "together",
    sse(CH, error(message="x", type="server_error", param=None, code="overloaded")),
    "OVERLOADED",
    "transient",
    "maybe",
)
s(
    "azure content",
    sse(
        error(
            message="x",
            type=None,
            param="prompt",
            code="content_filter",
            status=400,
            innererror={"code": "ResponsibleAIPolicyViolation"},
        )
    ),
    "CONTENT_REFUSED",
    "correctable",
    "maybe",
)
s(
    "bedrock anthropic",
    CHUNK + exc("throttlingException"),
    "RATE_LIMITED",
    "transient",
    None,
    None,
    None,
    None,
    "application/vnd.amazon.eventstream",
)
s(
    "bedrock first",
    exc("serviceUnavailableException"),
    "SERVICE_UNAVAILABLE|OVERLOADED",
    "transient",
    ct="application/vnd.amazon.eventstream",
)
s(
    "bedrock validation",
    exc("validationException"),
    "VALIDATION_ERROR|BAD_REQUEST",
    "correctable",
    "maybe",
    ct="application/vnd.amazon.eventstream",
)
s(
    "bedrock modelStreamError",
    CHUNK + exc("modelStreamErrorException", message="x", originalStatusCode=500, originalMessage="y"),
    "*",
    "uncertain|transient",
    "maybe",
    ct="application/vnd.amazon.eventstream",
)
s("bedrock chunk after exception none", CHUNK + CHUNK, None, None, ct="application/vnd.amazon.eventstream")
s(
    "aws error-code",
    aws({":error-code": "InternalError", ":error-message": "x", ":message-type": "error"}, {}),
    "INTERNAL_ERROR",
    "uncertain|transient",
    ct="application/vnd.amazon.eventstream",
)
s(
    "s3 select error",
    aws({":event-type": "Records", ":message-type": "event"}, {})
    + aws({":message-type": "error", ":error-code": "SlowDown", ":error-message": "x"}, {}),
    "RATE_LIMITED|OVERLOADED",
    "transient",
    ct="application/vnd.amazon.eventstream",
)
s(
    "transcribe",
    exc("LimitExceededException", Message="x"),
    "*",
    "transient|terminal",
    ct="application/vnd.amazon.eventstream",
)
s(
    "connect end",
    env(0, {"text": "Hi"})
    + env(
        2,
        {
            "error": {
                "code": "resource_exhausted",
                "message": "x",
                "details": [{"type": "google.rpc.RetryInfo", "value": "CgIICQ"}],
            }
        },
    ),
    "RATE_LIMITED",
    "transient",
    None,
    9.0,
    ct="application/connect+json",
)
s("connect end ok", env(0, {"text": "Hi"}) + env(2, {}), None, None, ct="application/connect+json")
s(
    "connect unauth",
    env(2, {"error": {"code": "unauthenticated", "message": "x"}}),
    "UNAUTHENTICATED",
    "correctable",
    "maybe",
    ct="application/connect+json",
)
s(
    "connect unavailable after",
    env(0, {"text": "Hi"}) + env(2, {"error": {"code": "unavailable"}}),
    "SERVICE_UNAVAILABLE",
    "transient",
    "maybe",
    ct="application/connect+json",
)
s(
    "grpc-web trailer",
    env(0, b"\x0a\x02Hi") + env(128, b"grpc-status: 8\r\ngrpc-message: x\r\n"),
    "RATE_LIMITED",
    "transient",
    ct="application/grpc-web+proto",
)
s(
    "grpc-web ok",
    env(0, b"\x0a\x02Hi") + env(128, b"grpc-status: 0\r\n"),
    None,
    None,
    ct="application/grpc-web+proto",
)
s(
    "grpc quota day",
    trailers(8, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), RI),
    "QUOTA_EXCEEDED",
    "terminal",
    "no",
    20.0,
)
s(
    "grpc quota minute",
    trailers(8, quota("GenerateRequestsPerMinutePerProjectPerModel"), RI),
    "RATE_LIMITED",
    "transient",
    "no",
    20.0,
)
s(
    "grpc info daily",
    trailers(8, info("RATE_LIMIT_EXCEEDED", quota_limit="defaultPerDayPerProject")),
    "QUOTA_EXCEEDED",
    "terminal",
    "no",
)
s(
    "grpc info rate",
    trailers(8, info("RATE_LIMIT_EXCEEDED", quota_limit="defaultPerMinutePerProject"), RI),
    "RATE_LIMITED",
    "transient",
    "no",
    20.0,
    "RATE_LIMIT_EXCEEDED",
)
s("grpc billing", trailers(7, info("BILLING_DISABLED")), "*", "terminal", "no")
s("grpc key", trailers(3, info("API_KEY_INVALID")), "UNAUTHENTICATED", "correctable", "no")
s(
    "grpc bad field",
    trailers(3, ("BadRequest", pb(1, pb(1, "parent") + pb(2, "x")))),
    "VALIDATION_ERROR|BAD_REQUEST",
    "correctable",
    "no",
)
s("grpc unavailable", trailers(14, RI), "SERVICE_UNAVAILABLE", "transient", "maybe", 20.0)
s(
    "grpc pushback",
    {
        "status": 200,
        "headers": {"content-type": "application/grpc", "grpc-status": "14", "grpc-retry-pushback-ms": "700"},
        "body": b"",
    },
    "SERVICE_UNAVAILABLE",
    "transient",
    None,
    0.7,
)
MP = "--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {}\r\n{}Content-Type: application/json\r\n\r\n{}\r\n"


def mp(*parts):
    return "".join(MP.format(a, h, json.dumps(b)) for a, h, b in parts) + "--b--\r\n"


G429 = (
    "429 Too Many Requests",
    "Retry-After: 12\r\n",
    error(code=429, message="x", errors=[{"reason": "rateLimitExceeded"}]),
)
s(
    "multipart mixed",
    mp(("200 OK", "", {"id": 1}), G429),
    "PARTIAL_FAILURE",
    "correctable",
    "yes",
    ct="multipart/mixed; boundary=b",
)
s(
    "multipart all",
    mp(G429, G429),
    "RATE_LIMITED",
    "transient",
    "maybe",
    12.0,
    ct="multipart/mixed; boundary=b",
)
s(
    "graph batch",
    {
        "status": 200,
        "headers": {},
        "body": {
            "responses": [
                {
                    "id": "1",
                    "status": 429,
                    "headers": {"Retry-After": "10"},
                    "body": error(code="TooManyRequests", message="x"),
                }
            ]
        },
    },
    "RATE_LIMITED",
    "transient",
    "maybe",
    10.0,
)
s(
    "meta batch",
    {
        "status": 200,
        "headers": {},
        "body": [
            {"code": 200, "headers": [], "body": '{"id":"1"}'},
            {
                "code": 400,
                "headers": [],
                "body": json.dumps(error(message="x", type="OAuthException", code=17, fbtrace_id="A")),
            },
        ],
    },
    "PARTIAL_FAILURE",
    "correctable",
    "yes",
)
s(
    "es bulk",
    {
        "status": 200,
        "headers": {},
        "body": {
            "took": 3,
            "errors": True,
            "items": [
                {"index": {"_id": "1", "status": 201}},
                {
                    "index": {
                        "_id": "2",
                        "status": 429,
                        "error": {"type": "es_rejected_execution_exception", "reason": "x"},
                    }
                },
            ],
        },
    },
    "PARTIAL_FAILURE",
    "correctable",
    "yes",
)
s(
    "es bulk all",
    {
        "status": 200,
        "headers": {},
        "body": {
            "took": 3,
            "errors": True,
            "items": [
                {
                    "index": {
                        "_id": "2",
                        "status": 429,
                        "error": {"type": "es_rejected_execution_exception", "reason": "x"},
                    }
                }
            ],
        },
    },
    "RATE_LIMITED|OVERLOADED",
    "transient",
    "maybe",
)
s(
    "dynamo unprocessed none",
    {"status": 200, "headers": {}, "body": {"Responses": {}, "UnprocessedKeys": {}}},
    None,
    None,
)
s(
    "k8s watch",
    '{"type":"ADDED","object":{"kind":"Pod"}}\n{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}\n',
    "*",
    "correctable|terminal",
    ct="application/json",
)
s(
    "docker pull",
    '{"status":"Pulling from library/x","id":"latest"}\n{"errorDetail":{"message":"toomanyrequests: x"},"error":"toomanyrequests: x"}\n',
    "*",
    "transient|uncertain",
    ct="application/json",
)
s(
    "sse crlf",
    "event: error\r\ndata: "
    + json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "x"}})
    + "\r\n\r\n",
    "OVERLOADED",
    "transient",
)
s(
    "sse cr only",
    "event: error\rdata: "
    + json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "x"}})
    + "\r\r",
    "OVERLOADED",
    "transient",
)
s(
    "sse multi data",
    'event: error\ndata: {"type":"error",\ndata: "error":{"type":"overloaded_error","message":"x"}}\n\n',
    "OVERLOADED",
    "transient",
)
s(
    "sse no space",
    'event:error\ndata:{"error":{"code":"rate_limit_exceeded","message":"x"}}\n\n',
    "RATE_LIMITED",
    "transient",
)
s(
    "sse bom",
    "\ufeffdata: "
    + json.dumps(error(code="insufficient_quota", message="x", type="insufficient_quota"))
    + "\n\n",
    "QUOTA_EXCEEDED",
    "terminal",
    "maybe",
)
s(
    "sse no end",
    "data: " + json.dumps(error(code="insufficient_quota", message="x", type="insufficient_quota")),
    "QUOTA_EXCEEDED",
    "terminal",
    "maybe",
)
s(
    "sse id retry",
    "id: 1\nretry: 3000\nevent: error\ndata: "
    + json.dumps(error(code="rate_limit_exceeded", message="x"))
    + "\n\n",
    "RATE_LIMITED",
    "transient",
)
s(
    "sse error then done",
    sse(CH, error(message="x", type="rate_limit_error", code="rate_limit_exceeded"), "[DONE]"),
    "RATE_LIMITED",
    "transient",
    "maybe",
)
s(
    "sse ok",
    sse(ROLE, CH, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]"),
    None,
    None,
)
s(
    "sse content with error words",
    sse({"choices": [{"index": 0, "delta": {"content": '{"error": {"code": 429}}'}}]}, "[DONE]"),
    None,
    None,
)
s(
    "sse tool json",
    sse({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '{"error":'}}),
    None,
    None,
)
s(
    "sse null error",
    sse({"type": "response.completed", "response": {"status": "completed", "error": None}}),
    None,
    None,
)
s(
    "sse incomplete",
    sse(
        {
            "type": "response.incomplete",
            "response": {
                "status": "incomplete",
                "error": None,
                "incomplete_details": {"reason": "max_output_tokens"},
            },
        }
    ),
    None,
    None,
)
s(
    "ndjson log lines",
    '{"level":"error","msg":"boom","error":{"code":500}}\n{"level":"info","msg":"ok"}\n',
    None,
    None,
    ct="application/x-ndjson",
)
s(
    "replicate sse",
    sse(("output", "Hi"), ("error", '{"detail":"x"}'), ("done", '{"reason":"error"}')),
    "INTERNAL_ERROR",
    "uncertain|transient",
    "maybe",
)
s(
    "dify",
    sse(
        {
            "event": "error",
            "task_id": "t",
            "message_id": "m",
            "status": 429,
            "code": "rate_limit_error",
            "message": "x",
        }
    ),
    "RATE_LIMITED",
    "transient",
)
s("perplexity", sse(error(message="x", type="invalid_model", code=400)), "*", "correctable")
s(
    "assistants",
    sse(
        ("thread.run.created", {"object": "thread.run"}),
        (
            "thread.run.failed",
            {
                "id": "run",
                "object": "thread.run",
                "status": "failed",
                "last_error": {"code": "rate_limit_exceeded", "message": "x"},
            },
        ),
    ),
    "RATE_LIMITED",
    "transient",
)
s(
    "vertex anthropic",
    sse(
        ("vertex_event", {"type": "vertex_event"}),
        ("error", {"type": "error", "error": {"type": "api_error", "message": "x"}}),
    ),
    "INTERNAL_ERROR",
    "uncertain|transient",
)
s(
    "watson",
    sse(
        (
            "error",
            {"errors": [{"code": "token_quota_reached", "message": "x"}], "trace": "t", "status_code": 403},
        )
    ),
    "QUOTA_EXCEEDED",
    "terminal",
)


@each(("name", "answer", "code", "recovery", "executed", "wait", "word", "vendor"), S)
def test_a_stream(name, answer, code, recovery, executed, wait, word, vendor):
    """
    A failure is found wherever the framing puts it, and what came before it cannot be taken back.

    That it had no effect is known only where the protocol's own number says so: no service is named.
    """
    fault = extract(answer, in_success=True, vendor=vendor)
    if code is None:
        assert fault is None
        return
    assert code == "*" or fault.code in code.split("|")
    assert fault.recovery.value in recovery.split("|")
    assert executed is None or fault.executed == executed
    assert wait is None or fault.retry_after == wait
    assert word is None or fault.details["code"] == word


@pytest.mark.parametrize("before", ["", "\n", "  ", "\ufeff", "\r\n\t "])
def test_a_stream_after_white_space(before):
    """Proxies and keep-alives put white space before the first event."""
    text = before + 'data: {"error": {"type": "overloaded_error", "message": "…"}}\n\n'
    assert extract({"status": 200, "headers": {}, "body": text}, in_success=True).code == "OVERLOADED"
