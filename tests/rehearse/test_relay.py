"""`amends rehearse --mcp -- SERVER`: an MCP server on stdio whose tools fail as planned, and the cost of the stage."""

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from amends.rehearse.plan import Failure, Plan
from amends.rehearse.rehearsal import Rehearsal

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        print(json.dumps({"jsonrpc":"2.0", "id":message["id"],   "result":{"content":[],"isError":False}}), flush=True)
    elif "id" in message:
        sys.stdout.write('{"id": %d,  "jsonrpc": "2.0", "result": {"odd":  true}}\\n' % message["id"]); sys.stdout.flush()
"""


class Host:
    """A host that writes and reads lines."""

    def __init__(self, *options):
        command = [
            sys.executable,
            "-m",
            "amends",
            "rehearse",
            "--mcp",
            *options,
            "--",
            sys.executable,
            "-c",
            SERVER,
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def send(self, number, method, **params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def read(self):
        return self.process.stdout.readline()

    def close(self):
        self.process.stdin.close()
        errors = self.process.stderr.read()
        assert self.process.wait(60) == 0, errors
        self.process.stdout.close()
        self.process.stderr.close()
        return errors


def test_tools_fail_as_planned_and_the_rest_passes_unchanged():
    """A rate limit as the result of a tool, then a lost answer; other messages have the same bytes."""
    host = Host("--kind", "rate", "--kind", "lost", "--wait", "1")
    host.send(1, "tools/list")
    assert host.read() == '{"id": 1,  "jsonrpc": "2.0", "result": {"odd":  true}}\n'
    host.send(2, "tools/call", name="create_order", arguments={"item": "tea", "quantity": 1})
    failed = json.loads(host.read())
    assert (failed["id"], failed["result"]["isError"]) == (2, True)
    assert "RATE_LIMITED" in failed["result"]["content"][0]["text"]
    time.sleep(1.1)
    host.send(
        3, "tools/call", name="create_order", arguments={"item": "tea", "quantity": 1}
    )  # its answer is lost
    host.send(4, "tools/call", name="create_order", arguments={"item": "milk", "quantity": 1})
    assert json.loads(host.read())["id"] == 4
    errors = host.close()
    assert "call 1 met mcp/rate; the same call came again after 1." in errors
    assert "call 2 met mcp/lost; the call was not repeated" in errors


class Slow(BaseHTTPRequestHandler):
    """A model that answers after 150 ms, which is fast for one."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.15)
        self.send_response_only(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


@pytest.mark.soak
def test_the_stage_costs_less_than_5_percent_of_a_model_call():
    """The fastest of interleaved calls, direct and through the stage."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    taken = {"direct": [], "through": []}
    with Rehearsal(f"llm={address}", plan=Plan(failure=[Failure("llm", "rate", route="/never")])) as stage:
        through = stage.address("llm")
        with httpx2.Client(timeout=10) as client:
            for _ in range(20):
                for name, url in (("direct", address), ("through", through)):
                    started = time.perf_counter()
                    assert client.post(f"{url}/v1/chat", json={"n": 1}).content == b"{}"
                    taken[name].append(time.perf_counter() - started)
    server.shutdown()
    server.server_close()
    ratio = min(taken["through"]) / min(taken["direct"])
    print(f"{ratio:.3f}")
    assert ratio < 1.05
