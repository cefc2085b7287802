"""A local server with the chat completions of OpenAI that answers by a script, for the recovery of calls of models."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RATE = (
    429,
    {"retry-after": "0"},
    {"error": {"message": "slow", "code": "rate_limit_exceeded", "type": "requests"}},
)
QUOTA = (429, {}, {"error": {"message": "pay", "code": "insufficient_quota", "type": "insufficient_quota"}})
DOWN = (503, {}, {"error": {"message": "down", "code": None, "type": "server_error"}})
BROKEN = (500, {}, {"error": {"message": "broken", "code": None, "type": "server_error"}})
TOO_LONG = (
    400,
    {},
    {
        "error": {
            "message": "This model's maximum context length is 8 tokens",
            "code": "context_length_exceeded",
            "type": "invalid_request_error",
            "param": "messages",
        }
    },
)
CUT = "cut"


def answer(text="the end", calls=()):
    """Return a completion."""
    made = [
        {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(calls)
    ]
    message = {
        "role": "assistant",
        "content": text if not made else None,
        **({"tool_calls": made} if made else {}),
    }
    choice = {"index": 0, "finish_reason": "tool_calls" if made else "stop", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }
    return 200, {}, body


def _chunks(document):
    """Return a completion as the events of a stream."""
    choice = document["choices"][0]
    calls = [{"index": index, **call} for index, call in enumerate(choice["message"].get("tool_calls", ()))]
    delta = {**choice["message"], **({"tool_calls": calls} if calls else {})}
    for changed in ({"delta": delta}, {"delta": {}, "finish_reason": choice["finish_reason"]}):
        chunk = {"index": 0, "finish_reason": None, **changed}
        event = {**document, "object": "chat.completion.chunk", "choices": [chunk], "usage": None}
        yield f"data: {json.dumps(event)}\n\n".encode()
    yield f"data: {json.dumps({**document, 'object': 'chat.completion.chunk', 'choices': []})}\n\n".encode()
    yield b"data: [DONE]\n\n"


@contextlib.contextmanager
def serving(script):
    """Yield the base URL, and the requests that arrive. After the script, every request is answered with a completion."""
    requests, left, lock = [], iter(script), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                requests.append(body)
                step = next(left, None) or answer()
            if step == CUT:
                self.close_connection = True
                self.connection.close()
                return
            status, headers, document = step
            written = json.dumps(document).encode()
            if status == 200 and body.get("stream"):
                headers, written = {"content-type": "text/event-stream"}, b"".join(_chunks(document))
            self.send_response(status)
            for name, value in {
                "content-type": "application/json",
                **headers,
                "content-length": len(written),
            }.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(written)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
