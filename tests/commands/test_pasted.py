"""`amends decode` on what people have: curl's output, HAR files, event streams, log lines, tracebacks."""

import io
import json
from random import Random

import pytest

from amends.carriers.extraction import examine
from amends.carriers.report import report
from amends.commands.input import read_input
from amends.commands.pasted import read_pasted, unwrapped
from amends.core.reading import FAILED, Reading
from amends.errors.cli import ValidationError
from tests.commands.pastes import PASTES

BODY = {"error": {"message": "m", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}}
TEXT = json.dumps(BODY)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"HTTP/1.1 429 Too Many Requests\r\nx-request-id: q\r\n\r\n{TEXT}", ("openai", "QUOTA_EXCEEDED", "escalate")),
        (f"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\nHTTP/2 429 \r\na: b\r\n\r\n{TEXT}", ("openai", "QUOTA_EXCEEDED", "escalate")),
        (f"> GET / HTTP/1.1\n>\n< HTTP/1.1 429 Too Many\n< a: b\n<\n{TEXT}\n", ("openai", "QUOTA_EXCEEDED", "escalate")),
        (f"2024-01-01 12:00 ERROR call failed: Error code: 429 - {TEXT}", ("openai", "QUOTA_EXCEEDED", "escalate")),
        (f"Traceback (most recent call last):\n  File\nopenai.RateLimitError: Error code: 429 - {BODY}\n",
         ("openai", "QUOTA_EXCEEDED", "escalate")),
        ("Traceback\nhttpx.HTTPStatusError: Server error, status code: 503\n", (None, "SERVICE_UNAVAILABLE", "retry")),
        ('event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n',
         ("anthropic", "OVERLOADED", "retry")),
        ('{"a": 1}\n{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m"}}\n',
         ("google", "RATE_LIMITED", "retry")),
        ("HTTP/1.1 429 Too Many Requests\nRetry-After: 3\n", (None, "RATE_LIMITED", "retry")),
    ],
)  # fmt: skip
def test_pasted_texts(text, expected):
    """The response in the text is read, and the report names the vendor."""
    via, reading = examine(read_pasted(text))
    got = report(via, reading)
    assert (got.vendor, got.fault.code, got.decision.action) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("botocore.exceptions.ClientError: An error occurred (ThrottlingException) when calling the InvokeModel operation: x",
         ("aws", "RATE_LIMITED", "no", "retry")),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x', port=443)", (None, "SERVICE_UNAVAILABLE", "maybe", "retry")),
        ("httpx.ReadTimeout: The read operation timed out", (None, "TIMEOUT", "maybe", "retry")),
        ("httpx2.ReadTimeout", (None, "TIMEOUT", "maybe", "retry")),
        ("google.api_core.exceptions.ResourceExhausted: 429 Quota exceeded", (None, "RATE_LIMITED", "no", "retry")),
        ("ConnectionRefusedError: [Errno 111] Connection refused", (None, "SERVICE_UNAVAILABLE", "no", "retry")),
        ("requests.exceptions.HTTPError: 503 Server Error: x for url: y", (None, "SERVICE_UNAVAILABLE", "maybe", "retry")),
        ("urllib.error.HTTPError: HTTP Error 429: Too Many Requests", (None, "RATE_LIMITED", "no", "retry")),
        ("httpx.HTTPStatusError: Client error '404 Not Found' for url 'x'", (None, "NOT_FOUND", "no", "fix")),
        ("stripe.error.RateLimitError: Request req_x: 429 in the text decides nothing", (None, "RATE_LIMITED", "no", "retry")),
    ],
)  # fmt: skip
def test_the_last_line_of_a_traceback(line, expected):
    """A status or code word at its library's place decides, otherwise the class; alone and below a traceback."""
    for text in (line, f'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n{line}\n'):
        value = read_pasted(text)
        got = report(None, value) if isinstance(value, Reading) else report(*examine(value))
        assert (got.vendor, got.fault.code, got.fault.executed, got.decision.action) == expected


def test_exceptions_that_are_not_known_failed():
    """An unknown class is a failure about which nothing is known; a sentence with a colon is no exception."""
    assert read_pasted("Traceback (most recent call last):\nShopClosed: 12") == FAILED
    assert read_pasted("shop.errors.ShopClosed: 12") == FAILED
    assert read_pasted("Note: 12") is None


LINE = f"openai.RateLimitError: Error code: 429 - {BODY}"
QUOTA = ("openai", "QUOTA_EXCEEDED")
CHAIN = "\nThe above exception was the direct cause of the following exception:\n\n"
TITLE = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{TITLE}{LINE}\n{CHAIN}{TITLE}shop.errors.AgentError: step 3 failed\n", QUOTA),
        ((f"  + Exception Group {TITLE}  | ExceptionGroup: one failed (1 sub-exception)\n  +-+--- 1 ---\n    | {TITLE}"
         f"    | {LINE}\n    +------\n"), QUOTA),
        ("httpx.HTTPStatusError: Client error '429 Too Many Requests' for url 'x'\nFor more information check: https://y",
         (None, "RATE_LIMITED")),
        (f"< HTTP/2 429 \n< a: b\n< \n{{ [90 bytes data]\n{TEXT}\n* Connection #0 left intact\n", QUOTA),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n\r\n", (None, "SERVICE_UNAVAILABLE")),
        ("An error occurred (ExpiredToken) when calling the ListBuckets operation: x", ("aws", "UNAUTHENTICATED")),
        (("operation error DynamoDB: PutItem, https response error StatusCode: 400, RequestID: A, "
         "ProvisionedThroughputExceededException: x"), ("aws", "RATE_LIMITED")),
        ("2024/01/01 googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded", ("google", "RATE_LIMITED")),
        ("rpc error: code = ResourceExhausted desc = x", ("grpc", "RATE_LIMITED")),
        ("2024/01/01 rpc error: code = Unavailable desc = closing", ("grpc", "SERVICE_UNAVAILABLE")),
        (("RateLimitError: 429 You exceeded your quota\n    at APIError.generate (file:///x.mjs:68:20) {\n  status: 429,\n"
         "  code: 'insufficient_quota',\n  param: null,\n  type: 'insufficient_quota'\n}"), (None, "QUOTA_EXCEEDED")),
        ('Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n    at x (file:///y.js:1:1)',
         ("anthropic", "OVERLOADED")),
    ],
)  # fmt: skip
def test_tracebacks_of_several_exceptions_and_lines_of_other_tools(text, expected):
    """The exception that says most is read: a cause, a member of a group, an error of Go, Node or the AWS command line."""
    got = report(*examine(read_pasted(text)))
    assert (got.vendor, got.fault.code) == expected


def test_a_line_that_docker_stores():
    """The text of the line is read like any other."""
    _via, reading = examine(unwrapped({"log": f"{LINE}\n", "stream": "stderr", "time": "t"}))
    assert reading.fault.code == "QUOTA_EXCEEDED"


def test_a_har_file():
    """The last failed response of the file is read."""
    entry = {
        "response": {
            "status": 429,
            "headers": [{"name": "Retry-After", "value": "4"}],
            "content": {"text": TEXT},
        }
    }
    fine = {"response": {"status": 200, "headers": [], "content": {"text": "{}"}}}
    via, reading = examine(unwrapped({"log": {"entries": [entry, fine]}}))
    assert (via, reading.fault.code, reading.fault.retry_after) == ("http", "QUOTA_EXCEEDED", 4.0)


@pytest.mark.parametrize(
    "value", [{}, {"log": {}}, {"log": {"entries": [5, {"response": None}]}}, [], 5, None]
)
def test_other_documents_stay(value):
    """A document that is no HAR file is returned as it is."""
    assert unwrapped(value) is value


def decoded(text):
    """Return what `amends decode` reports for a text, or None if it cannot be read."""
    try:
        value = read_input(io.BytesIO(text.encode("utf-8", "replace")))
    except ValidationError:
        return None
    found = unwrapped(value)
    return report(None, found) if isinstance(found, Reading) else report(*examine(found))


@pytest.mark.parametrize(
    ("text", "expected"), [case[1:] for case in PASTES], ids=[case[0] for case in PASTES]
)
def test_what_people_paste(text, expected):
    """curl, HAR files, streams, records of loggers, tracebacks, and lines of other tools."""
    got = decoded(text)
    if expected is None:
        assert got is None or got.fault is None
    else:
        assert (got.vendor, got.fault.code, got.decision.action) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("{" * 10**6, '{"' * 300_000, "[" * 10**6, "\n" * 10**6, " " * 10**6, "a." * 300_000, "Error: " * 100_000),
        *('{"a":1} ' * 50_000, "data: {\n" * 100_000, "HTTP/1.1 429 x\n" * 50_000, "\tstatus = StatusCode.X\n" * 50_000),
        *('{"level":"error","message":' * 2000, '{"level":"e","err":' * 60 + "1" + "}" * 60, "{'a': " * 100_000),
        *("Traceback (most recent call last):\n" * 50_000, "a.b.C: {'a': 1\n" * 50_000, '\\"' * 300_000),
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_hostile_texts(text):
    """Whatever is pasted, reading it ends soon and raises nothing."""
    decoded(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"level":"info","message":"done {\\"a\\": 1}"}',
        '2026-07-06 INFO served 450 items {"count": 450}',
        '{"level":"info","status":200,"response":{"status":200,"body":{"ok":true}}}',
        '{"level":"info","data":{"code":429,"name":"x"}}',
        '{"level":"warn","error":{"code":null,"message":null}}',
        'HTTP/1.1 200 OK\n\n{"ok":true}',
        'data: {"id":"c","object":"chat.completion.chunk","choices":[]}\n\ndata: [DONE]\n\n',
        'took: 500 {"ms": 1}',
        '127.0.0.1 - - "GET / HTTP/1.1" 200 12',
    ],
)
def test_ordinary_texts(text):
    """A successful answer and an ordinary log line report no failure."""
    got = decoded(text)
    assert got is None or not got.failed


def test_mutated_pastes():
    """A paste that lost or gained characters raises nothing."""
    random = Random(7)
    pieces = [*"{}\"'\\\n[](", ": ", "\0", "429", "é"]
    for _ in range(1500):
        text = list(random.choice(PASTES)[1])
        for _ in range(random.randint(1, 6)):
            place = random.randrange(len(text) + 1)
            if random.random() < 0.4:
                del text[place : place + random.randint(1, 30)]
            else:
                text.insert(place, random.choice(pieces))
        decoded("".join(text))


@pytest.mark.parametrize("text", ["", "hello", "{" * 5000, "HTTP/1.1", "[1", "x" * 10**6, "Error: {'a': }"])
def test_texts_without_a_response(text):
    """Nothing is found, in bounded time."""
    assert read_pasted(text) is None
