"""
A local server with the messages of Anthropic, for the program that the Claude Agent SDK starts: it asks a scripted model.

    with answering(script) as environment:
        query(prompt="pay", options=ClaudeAgentOptions(env=environment, ...))
"""

import contextlib
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVER = "mcp__shop__"
"""What the names of the tools of the server `shop` begin with."""


@contextlib.contextmanager
def answering(script):
    """Yield the environment of the program. `script.step(read)` returns the next calls, or the last text."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                step = script.step(_read(request["messages"]))
                number = len(request["messages"])
            body = "".join(_events(step, number)).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self):
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="claude-", ignore_cleanup_errors=True) as home:
        try:
            yield {
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
                "ANTHROPIC_API_KEY": "none",
                "HOME": home,
                "CLAUDE_CONFIG_DIR": f"{home}/.claude",
                "DISABLE_TELEMETRY": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "ENABLE_TOOL_SEARCH": "false",
            }
        finally:
            server.shutdown()
            server.server_close()


def _read(messages):
    """Return the texts of the tool results in a request."""
    parts = [part for each in messages if isinstance(each["content"], list) for part in each["content"]]
    texts = []
    for part in parts:
        if part["type"] == "tool_result":
            content = part.get("content") or ""
            texts.append(
                content if isinstance(content, str) else "".join(each.get("text", "") for each in content)
            )
    return texts


def _events(step, number):
    calls = [] if isinstance(step, str) else step
    message = {
        "id": f"message-{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    yield _event("message_start", message=message)
    for index, call in enumerate(calls):
        block = {"type": "tool_use", "id": f"call-{number}-{index}", "name": SERVER + call.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
        yield _event("content_block_start", index=index, content_block=block)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    if not calls:
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": str(step)})
        yield _event("content_block_stop", index=0)
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=reason, usage={"output_tokens": 1})
    yield _event("message_stop")


def _event(name, **members):
    return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n"
