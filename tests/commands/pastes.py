"""What people paste into `amends decode`: (name, text, (vendor, code, action)); None: no failure is found."""

import base64
import json

QUOTA = '{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}'
QUOTA_REPR = str(json.loads(QUOTA))
BUSY = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
GOOGLE = '{\n  "error": {\n    "code": 429,\n    "message": "Resource exhausted",\n    "status": "RESOURCE_EXHAUSTED",\n    "details": [\n      {\n        "@type": "type.googleapis.com/google.rpc.RetryInfo",\n        "retryDelay": "34s"\n      }\n    ]\n  }\n}'
SLACK = '{"ok":false,"error":"ratelimited"}'
GITHUB = '{"message":"API rate limit exceeded for 1.2.3.4","documentation_url":"https://docs.github.com/rest/overview/resources-in-the-rest-api#rate-limiting"}'


def har(entries, **log):
    return json.dumps(
        {
            "log": {
                "version": "1.2",
                "creator": {"name": "WebInspector", "version": "537.36"},
                "entries": entries,
                **log,
            }
        }
    )


def entry(
    status,
    body,
    headers=None,
    url="https://api.openai.com/v1/chat/completions",
    enc=None,
    mime="application/json",
):
    c = {"size": len(body), "mimeType": mime, "text": body}
    if enc:
        c["encoding"] = enc
    return {
        "startedDateTime": "2026-07-06T10:00:00.000Z",
        "time": 12,
        "request": {
            "method": "POST",
            "url": url,
            "httpVersion": "HTTP/2",
            "headers": [],
            "queryString": [],
            "cookies": [],
            "headersSize": -1,
            "bodySize": 2,
        },
        "response": {
            "status": status,
            "statusText": "",
            "httpVersion": "h2",
            "headers": [{"name": k, "value": v} for k, v in (headers or {}).items()],
            "cookies": [],
            "content": c,
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": -1,
        },
        "cache": {},
        "timings": {},
    }


OVER = ("openai", "QUOTA_EXCEEDED", "escalate")
PASTES = [
    # curl
    (
        "curl -i h1 crlf",
        f"HTTP/1.1 429 Too Many Requests\r\nDate: Mon, 06 Jul 2026 10:00:00 GMT\r\nContent-Type: application/json\r\nx-request-id: req_1\r\n\r\n{QUOTA}",
        OVER,
    ),
    ("curl -i h1 lf", f"HTTP/1.1 429 Too Many Requests\nContent-Type: application/json\n\n{QUOTA}\n", OVER),
    ("curl -i h2", f"HTTP/2 429 \r\ncontent-type: application/json\r\nretry-after: 7\r\n\r\n{QUOTA}", OVER),
    (
        "curl -i h3",
        f"HTTP/3 529 \r\ncontent-type: application/json\r\n\r\n{BUSY}",
        ("anthropic", "OVERLOADED", "retry"),
    ),
    (
        "redirect chain",
        f"HTTP/1.1 301 Moved Permanently\r\nLocation: https://x/\r\nContent-Length: 0\r\n\r\nHTTP/1.1 302 Found\r\nLocation: https://y\r\n\r\nHTTP/2 403 \r\nx-github-request-id: G\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1783332000\r\ndate: Mon, 06 Jul 2026 09:59:00 GMT\r\n\r\n{GITHUB}",
        ("github", "RATE_LIMITED", "retry"),
    ),
    (
        "100-continue",
        f"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many Requests\r\nA: b\r\n\r\n{QUOTA}",
        OVER,
    ),
    ("proxy connect", f"HTTP/1.1 200 Connection established\r\n\r\nHTTP/2 429 \r\na: b\r\n\r\n{QUOTA}", OVER),
    (
        "curl -v",
        f"*   Trying 1.2.3.4:443...\n* Connected to api.openai.com (1.2.3.4) port 443\n> POST /v1/chat/completions HTTP/2\n> Host: api.openai.com\n> authorization: Bearer sk-xx\n> \n* We are completely uploaded and fine\n< HTTP/2 429 \n< content-type: application/json\n< x-request-id: req_9\n< \n{{ [120 bytes data]\n* Connection #0 to host api.openai.com left intact\n{QUOTA}",
        OVER,
    ),
    (
        "curl -v crlf",
        "> GET / HTTP/1.1\r\n> Host: x\r\n>\r\n< HTTP/1.1 503 Service Unavailable\r\n< Retry-After: 120\r\n< Content-Type: text/html\r\n<\r\n<html>busy</html>\r\n* Connection #0 to host x left intact\r\n",
        (None, "SERVICE_UNAVAILABLE", "retry"),
    ),
    (
        "curl -v body then progress",
        f"< HTTP/1.1 429 Too Many\n< \n100   120  100   120    0     0    500      0 --:--:-- --:--:-- --:--:--   500\n{QUOTA}* Connection #0 to host left intact\n",
        OVER,
    ),
    (
        "curl -v redirect",
        '< HTTP/1.1 301 Moved\n< Location: /x\n<\n* Ignoring the response-body\n* Issue another request\n> GET /x HTTP/1.1\n>\n< HTTP/1.1 404 Not Found\n< content-type: application/json\n<\n{"message":"Not Found","documentation_url":"https://docs.github.com/rest"}',
        ("github", "NOT_FOUND", "fix"),
    ),
    (
        "prompt before curl",
        f"$ curl -i https://api.openai.com/v1/chat/completions -d @x.json\nHTTP/2 429 \ncontent-type: application/json\n\n{QUOTA}",
        OVER,
    ),
    (
        "curl progress meter",
        f"  % Total    % Received % Xferd  Average Speed\n  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0\nHTTP/2 429 \r\na: b\r\n\r\n{QUOTA}",
        OVER,
    ),
    (
        "curl no body",
        'HTTP/2 401 \r\nwww-authenticate: Bearer error="invalid_token"\r\n\r\n',
        (None, "UNAUTHENTICATED", "fix"),
    ),
    (
        "curl -I",
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: Mon, 06 Jul 2026 10:01:00 GMT\r\nDate: Mon, 06 Jul 2026 10:00:00 GMT\r\n\r\n",
        (None, "RATE_LIMITED", "retry"),
    ),
    (
        "curl error",
        "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Connection refused",
        (None, "SERVICE_UNAVAILABLE", "retry"),
    ),
    (
        "curl time-out",
        "curl: (28) Operation timed out after 5001 milliseconds with 0 bytes received",
        (None, "TIMEOUT", "retry"),
    ),
    ("curl dns", "curl: (6) Could not resolve host: api.exmple.com", (None, "SERVICE_UNAVAILABLE", "retry")),
    ("curl fail", "curl: (22) The requested URL returned error: 429", (None, "RATE_LIMITED", "retry")),
    (
        "httpie",
        f"HTTP/1.1 429 Too Many Requests\nContent-Type: application/json\nServer: cloudflare\n\n{json.dumps(json.loads(QUOTA), indent=4)}\n",
        OVER,
    ),
    (
        "s3 xml",
        'HTTP/1.1 503 Slow Down\r\nx-amz-request-id: R\r\nContent-Type: application/xml\r\n\r\n<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce</Message></Error>',
        ("aws", "RATE_LIMITED", "retry"),
    ),
    (
        "wget -S",
        "--2026-07-06 10:00:00--  https://x/\nHTTP request sent, awaiting response... \n  HTTP/1.1 429 Too Many Requests\n  Retry-After: 9\n  Content-Type: text/plain\n2026-07-06 10:00:01 ERROR 429: Too Many Requests.\n",
        (None, "RATE_LIMITED", "retry"),
    ),
    # HAR
    ("har chrome", har([entry(200, "{}"), entry(429, QUOTA)]), OVER),
    ("har last success", har([entry(429, QUOTA), entry(200, "{}")]), OVER),
    ("har base64", har([entry(429, base64.b64encode(QUOTA.encode()).decode(), enc="base64")]), OVER),
    (
        "har firefox",
        har(
            [entry(529, BUSY, {"Content-Type": "application/json"}, "https://api.anthropic.com/v1/messages")],
            pages=[{"id": "page_1"}],
            browser={"name": "Firefox", "version": "140"},
        ),
        ("anthropic", "OVERLOADED", "retry"),
    ),
    (
        "har slack 200",
        har(
            [
                entry(200, '{"ok":true}', url="https://slack.com/api/x"),
                entry(200, SLACK, url="https://slack.com/api/chat.postMessage"),
            ]
        ),
        ("slack", "RATE_LIMITED", "retry"),
    ),
    (
        "har sse",
        har(
            [
                entry(
                    200,
                    f'event: message_start\ndata: {{"type":"message_start"}}\n\nevent: error\ndata: {BUSY}\n\n',
                    mime="text/event-stream",
                    url="https://api.anthropic.com/v1/messages",
                )
            ]
        ),
        ("anthropic", "OVERLOADED", "retry"),
    ),
    ("har blocked", har([entry(0, "")]), None),
    ("har bom", "\ufeff" + har([entry(429, QUOTA)]), OVER),
    ("har pretty", json.dumps(json.loads(har([entry(429, QUOTA)])), indent=2), OVER),
    # SSE
    (
        "sse anthropic",
        f'event: message_start\ndata: {{"type":"message_start","message":{{"id":"m"}}}}\n\nevent: ping\ndata: {{"type": "ping"}}\n\nevent: error\ndata: {BUSY}\n\n',
        ("anthropic", "OVERLOADED", "retry"),
    ),
    (
        "sse openai",
        f'data: {{"id":"c","object":"chat.completion.chunk","choices":[]}}\n\ndata: {QUOTA}\n\n',
        OVER,
    ),
    ("sse crlf", f"event: error\r\ndata: {BUSY}\r\n\r\n", ("anthropic", "OVERLOADED", "retry")),
    (
        "sse comments",
        ': OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: {"id":"x","choices":[],"error":{"code":429,"message":"rate"}}\n\n',
        (None, "RATE_LIMITED", "retry"),
    ),
    (
        "sse after headers",
        f"HTTP/2 200 \r\ncontent-type: text/event-stream\r\n\r\nevent: error\ndata: {BUSY}\n\n",
        ("anthropic", "OVERLOADED", "retry"),
    ),
    (
        "sse responses failed",
        'event: response.failed\ndata: {"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}}\n\n',
        (None, "RATE_LIMITED", "retry"),
    ),
    (
        "sse gemini",
        'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n' + GOOGLE,
        ("google", "RATE_LIMITED", "retry"),
    ),
    ("gemini array", '[{"candidates":[]}\n,\n' + GOOGLE + "]", ("google", "RATE_LIMITED", "retry")),
    # bodies
    ("pretty json", GOOGLE, ("google", "RATE_LIMITED", "retry")),
    (
        "json in text",
        f"The response was:\n\n{GOOGLE}\n\nwhat does it mean?",
        ("google", "RATE_LIMITED", "retry"),
    ),
    ("json in markdown", f"```json\n{GOOGLE}\n```\n", ("google", "RATE_LIMITED", "retry")),
    ("python repr", QUOTA_REPR, OVER),
    (
        "python repr pretty",
        "{'error': {'message': 'm',\n           'type': 'insufficient_quota',\n           'param': None,\n           'code': 'insufficient_quota'}}",
        OVER,
    ),
    ("escaped json", json.dumps(QUOTA), OVER),
    # logs
    ("plain log", f"2026-07-06 10:00:00,123 ERROR app.llm call failed: {QUOTA}", OVER),
    ("error code log", f"2026-07-06 10:00:00 [ERROR] Error code: 429 - {QUOTA_REPR}", OVER),
    ("k8s", f"2026-07-06T10:00:00.123456789Z stderr F 2026-07-06 ERROR failed {QUOTA}", OVER),
    (
        "docker json",
        json.dumps({"log": f"ERROR failed {QUOTA}\n", "stream": "stderr", "time": "2026-07-06T10:00:00Z"}),
        OVER,
    ),
    ("docker compose", f"app-1  | 2026-07-06 10:00:00 ERROR Error code: 429 - {QUOTA_REPR}", OVER),
    (
        "structlog json",
        json.dumps(
            {
                "event": "call failed",
                "level": "error",
                "timestamp": "2026-07-06T10:00:00Z",
                "status": 429,
                "body": QUOTA,
            }
        ),
        OVER,
    ),
    (
        "structlog json obj",
        json.dumps(
            {"event": "call failed", "level": "error", "response": {"status": 429, "body": json.loads(QUOTA)}}
        ),
        OVER,
    ),
    (
        "structlog console",
        f"2026-07-06 10:00:00 [error    ] call failed                    body={QUOTA} status=429",
        OVER,
    ),
    (
        "structlog exception",
        json.dumps(
            {
                "event": "x",
                "level": "error",
                "exception": f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nopenai.RateLimitError: Error code: 429 - {QUOTA_REPR}',
            }
        ),
        OVER,
    ),
    (
        "python-json-logger",
        json.dumps(
            {
                "asctime": "2026",
                "levelname": "ERROR",
                "message": "failed",
                "exc_info": 'Traceback (most recent call last):\n  File "a.py", line 1\nhttpx.ReadTimeout: The read operation timed out',
            }
        ),
        (None, "TIMEOUT", "retry"),
    ),
    (
        "gcp log",
        json.dumps(
            {
                "severity": "ERROR",
                "textPayload": f"Error code: 429 - {QUOTA_REPR}",
                "resource": {"type": "cloud_run_revision"},
            }
        ),
        OVER,
    ),
    (
        "gcp json payload",
        json.dumps(
            {
                "severity": "ERROR",
                "jsonPayload": {"message": "failed", "error": json.loads(BUSY)["error"], "type": "error"},
            }
        ),
        ("anthropic", "OVERLOADED", "retry"),
    ),
    (
        "aws cloudwatch",
        f"[ERROR] 2026-07-06T10:00:00.123Z 1234-5678 RateLimitError: Error code: 429 - {QUOTA_REPR}",
        OVER,
    ),
    (
        "lambda json",
        json.dumps(
            {
                "errorMessage": f"Error code: 429 - {QUOTA_REPR}",
                "errorType": "RateLimitError",
                "stackTrace": ['  File "/var/task/a.py", line 1, in h\n'],
            }
        ),
        OVER,
    ),
    (
        "loki logfmt",
        'ts=2026-07-06T10:00:00Z level=error msg="call failed" status=429 body="'
        + QUOTA.replace('"', '\\"')
        + '"',
        OVER,
    ),
    (
        "pino",
        json.dumps(
            {
                "level": 50,
                "time": 1783332000000,
                "pid": 1,
                "err": {
                    "type": "RateLimitError",
                    "message": "429 quota",
                    "status": 429,
                    "error": json.loads(QUOTA)["error"],
                },
                "msg": "failed",
            }
        ),
        OVER,
    ),
    (
        "winston",
        json.dumps({"level": "error", "message": f"Request failed with status code 429: {QUOTA}"}),
        OVER,
    ),
    ("syslog", f"Jul  6 10:00:00 host app[123]: call failed: {QUOTA}", OVER),
    (
        "journal",
        f"Jul 06 10:00:00 host python[123]: openai.RateLimitError: Error code: 429 - {QUOTA_REPR}",
        OVER,
    ),
    (
        "two lines",
        f'2026-07-06 10:00:00 INFO starting\n2026-07-06 10:00:01 ERROR {QUOTA}\n2026-07-06 10:00:02 INFO {{"done": true}}\n',
        OVER,
    ),
    (
        "loguru",
        f"2026-07-06 10:00:00.000 | ERROR    | app:main:12 - Error code: 529 - {json.loads(BUSY)}",
        ("anthropic", "OVERLOADED", "retry"),
    ),
    (
        "httpx log",
        'INFO:httpx:HTTP Request: POST https://api.openai.com/v1/chat/completions "HTTP/1.1 429 Too Many Requests"',
        (None, "RATE_LIMITED", "retry"),
    ),
    (
        "nginx access",
        '1.2.3.4 - - [06/Jul/2026:10:00:00 +0000] "POST /v1/chat HTTP/1.1" 503 197 "-" "python-requests/2.32"',
        (None, "SERVICE_UNAVAILABLE", "retry"),
    ),
    (
        "datadog",
        json.dumps(
            {
                "status": "error",
                "message": f"failed {QUOTA}",
                "service": "app",
                "attributes": {"http": {"status_code": 429}},
            }
        ),
        OVER,
    ),
    # tracebacks
    (
        "openai tb",
        f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    client.chat()\nopenai.RateLimitError: Error code: 429 - {QUOTA_REPR}',
        OVER,
    ),
    (
        "anthropic tb",
        f"anthropic.APIStatusError: Error code: 529 - {json.loads(BUSY)}",
        ("anthropic", "OVERLOADED", "retry"),
    ),
    (
        "genai tb",
        "google.genai.errors.ClientError: 429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'message': 'x', 'status': 'RESOURCE_EXHAUSTED', 'details': [{'@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': '34s'}]}}",
        ("google", "RATE_LIMITED", "retry"),
    ),
    (
        "genai 503",
        "google.genai.errors.ServerError: 503 UNAVAILABLE. {'error': {'code': 503, 'message': 'The model is overloaded.', 'status': 'UNAVAILABLE'}}",
        ("google", "SERVICE_UNAVAILABLE", "retry"),
    ),
    (
        "boto tb",
        "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the PutObject operation: The provided token has expired.",
        ("aws", "UNAUTHENTICATED", "fix"),
    ),
    (
        "boto errorfactory",
        "botocore.errorfactory.ProvisionedThroughputExceededException: An error occurred (ProvisionedThroughputExceededException) when calling the PutItem operation (reached max retries: 9): x",
        ("aws", "RATE_LIMITED", "retry"),
    ),
    (
        "chained",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nhttpx.ConnectError: [Errno 111] Connection refused\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File "a.py", line 2, in <module>\nopenai.APIConnectionError: Connection error.',
        (None, "SERVICE_UNAVAILABLE", "retry"),
    ),
    (
        "chained own",
        f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nopenai.RateLimitError: Error code: 429 - {QUOTA_REPR}\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File "a.py", line 2, in <module>\nmyapp.LLMError: generation failed',
        OVER,
    ),
    (
        "group",
        f'  + Exception Group Traceback (most recent call last):\n  |   File "a.py", line 1, in <module>\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File "a.py", line 2, in f\n    | openai.RateLimitError: Error code: 429 - {QUOTA_REPR}\n    +------------------------------------\n',
        OVER,
    ),
    (
        "notes",
        f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nopenai.RateLimitError: Error code: 429 - {QUOTA_REPR}\nWhile generating the answer for user 7\nsecond note',
        OVER,
    ),
    (
        "httpx status tb",
        "httpx.HTTPStatusError: Client error '401 Unauthorized' for url 'https://x'\nFor more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/401",
        (None, "UNAUTHENTICATED", "fix"),
    ),
    (
        "requests tb",
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://x",
        (None, "RATE_LIMITED", "retry"),
    ),
    ("stripe tb", "stripe._error.CardError: Request req_x: Your card was declined.", None),
    (
        "slack tb",
        "slack_sdk.errors.SlackApiError: The request to the Slack API failed. (url: https://slack.com/api/chat.postMessage)\nThe server responded with: {'ok': False, 'error': 'channel_not_found'}",
        ("slack", "NOT_FOUND", "fix"),
    ),
    (
        "github tb",
        'github.GithubException.RateLimitExceededException: 403 {"message": "API rate limit exceeded", "documentation_url": "https://docs.github.com/rest/overview/resources-in-the-rest-api#rate-limiting"}',
        ("github", "RATE_LIMITED", "retry"),
    ),
    (
        "github 404 tb",
        'github.GithubException.UnknownObjectException: 404 {"message": "Not Found", "documentation_url": "https://docs.github.com/rest/repos/repos#get-a-repository", "status": "404"}',
        ("github", "NOT_FOUND", "fix"),
    ),
    (
        "k8s tb",
        'kubernetes.client.exceptions.ApiException: (404)\nReason: Not Found\nHTTP response headers: HTTPHeaderDict({\'Content-Type\': \'application/json\'})\nHTTP response body: {"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \\"x\\" not found","reason":"NotFound","details":{"name":"x","kind":"pods"},"code":404}\n',
        ("kubernetes", "NOT_FOUND", "fix"),
    ),
    (
        "azure tb",
        "azure.core.exceptions.HttpResponseError: (TooManyRequests) The request is throttled.\nCode: TooManyRequests\nMessage: The request is throttled.",
        ("azure", "RATE_LIMITED", "retry"),
    ),
    (
        "azure missing tb",
        "azure.core.exceptions.ResourceNotFoundError: (ResourceNotFound) The Resource was not found.\nCode: ResourceNotFound\nMessage: x",
        ("azure", "NOT_FOUND", "fix"),
    ),
    (
        "elastic tb",
        "elasticsearch.NotFoundError: NotFoundError(404, 'index_not_found_exception', 'no such index [i]', i, index_or_alias)",
        ("elasticsearch", "NOT_FOUND", "fix"),
    ),
    (
        "elastic 429",
        "elasticsearch.ApiError: ApiError(429, 'circuit_breaking_exception', '[parent] Data too large')",
        ("elasticsearch", "OVERLOADED", "retry"),
    ),
    (
        "grpc tb",
        'grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "failed to connect to all addresses"\n\tdebug_error_string = "UNKNOWN:Error received from peer  {created_time:"2026", grpc_status:14}"\n>',
        ("grpc", "SERVICE_UNAVAILABLE", "retry"),
    ),
    (
        "grpc aio tb",
        'grpc.aio._call.AioRpcError: <AioRpcError of RPC that terminated with:\n\tstatus = StatusCode.RESOURCE_EXHAUSTED\n\tdetails = "Quota"\n\tdebug_error_string = "x"\n>',
        ("grpc", "RATE_LIMITED", "retry"),
    ),
    (
        "go grpc",
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
        ("grpc", "TIMEOUT", "retry"),
    ),
    (
        "psycopg tb",
        'psycopg.errors.UniqueViolation: duplicate key value violates unique constraint "users_pkey"\nDETAIL:  Key (id)=(1) already exists.',
        (None, "CONFLICT", "fix"),
    ),
    (
        "psycopg deadlock",
        "psycopg.errors.DeadlockDetected: deadlock detected\nDETAIL:  Process 1 waits for ShareLock\nHINT:  See server log for query details.",
        (None, "CONFLICT", "retry"),
    ),
    (
        "redis tb",
        "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.",
        (None, "SERVICE_UNAVAILABLE", "retry"),
    ),
    (
        "mongo tb",
        "pymongo.errors.DuplicateKeyError: E11000 duplicate key error collection: d.c index: a_1 dup key: { a: 1 }, full error: {'index': 0, 'code': 11000, 'errmsg': 'E11000', 'keyPattern': {'a': 1}, 'keyValue': {'a': 1}}",
        (None, "CONFLICT", "fix"),
    ),
    ("asyncio timeout", "TimeoutError", (None, "TIMEOUT", "retry")),
    ("dns", "socket.gaierror: [Errno -2] Name or service not known", (None, "SERVICE_UNAVAILABLE", "retry")),
    (
        "ssl",
        "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1000)",
        (None, "SERVICE_UNAVAILABLE", "escalate"),
    ),
    (
        "litellm tb",
        "litellm.exceptions.RateLimitError: litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota",
        (None, "RATE_LIMITED", "retry"),
    ),
    (
        "litellm quota body",
        f"litellm.exceptions.RateLimitError: litellm.RateLimitError: AnthropicException - {BUSY}",
        ("anthropic", "OVERLOADED", "retry"),
    ),
    (
        "pydantic-ai tb",
        f"pydantic_ai.exceptions.ModelHTTPError: status_code: 429, model_name: gpt-5, body: {json.loads(QUOTA)['error']}",
        (None, "QUOTA_EXCEEDED", "escalate"),
    ),
    (
        "instructor tb",
        f"instructor.core.exceptions.InstructorRetryException: Error code: 429 - {QUOTA_REPR}",
        OVER,
    ),
    (
        "tenacity tb",
        f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nopenai.RateLimitError: Error code: 429 - {QUOTA_REPR}\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File "a.py", line 2, in <module>\ntenacity.RetryError: RetryError[<Future at 0x7f state=finished raised RateLimitError>]',
        OVER,
    ),
    (
        "twilio tb",
        "twilio.base.exceptions.TwilioRestException: \nHTTP Error Your request was:\n\nPOST /Accounts/AC/Messages.json\n\nTwilio returned the following information:\n\nUnable to create record: The 'To' number is not valid.\n\nMore information may be available here:\n\nhttps://www.twilio.com/docs/errors/21211\n",
        None,
    ),
    (
        "node",
        "RateLimitError: 429 You exceeded your current quota\n    at APIError.generate (/app/node_modules/openai/error.mjs:63:20)\n    at OpenAI.makeStatusError (/app/node_modules/openai/core.mjs:424:33) {\n  status: 429,\n  headers: Headers {},\n  request_id: 'req_1',\n  error: {\n    message: 'x',\n    type: 'insufficient_quota',\n    param: null,\n    code: 'insufficient_quota'\n  },\n  code: 'insufficient_quota',\n  param: null,\n  type: 'insufficient_quota'\n}",
        (None, "QUOTA_EXCEEDED", "escalate"),
    ),
    (
        "node econnrefused",
        "Error: connect ECONNREFUSED 127.0.0.1:5432\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1555:16) {\n  errno: -111,\n  code: 'ECONNREFUSED',\n  syscall: 'connect',\n  address: '127.0.0.1',\n  port: 5432\n}",
        (None, "SERVICE_UNAVAILABLE", "retry"),
    ),
    (
        "aws cli",
        "\nAn error occurred (AccessDenied) when calling the ListBuckets operation: Access Denied\n",
        ("aws", "PERMISSION_DENIED", "escalate"),
    ),
    ("kubectl", 'Error from server (NotFound): pods "x" not found', ("kubernetes", "NOT_FOUND", "fix")),
    (
        "kubectl forbidden",
        'Error from server (Forbidden): pods is forbidden: User "x" cannot list resource',
        ("kubernetes", "PERMISSION_DENIED", "escalate"),
    ),
    ("gcloud", "ERROR: (gcloud.run.deploy) RESOURCE_EXHAUSTED: Quota exceeded", None),
    (
        "gh cli",
        "gh: API rate limit exceeded for user ID 1 (HTTP 403)",
        (None, "PERMISSION_DENIED", "escalate"),
    ),
    ("plain text", "hello world, nothing happened", None),
]
