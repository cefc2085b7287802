"""
The gateway in front of a service that fails once: a plain client gets its answer, and `amends trace` knows what happened.

    python examples/gateway_in_front.py

It needs `pip install 'amends[gateway]'`. Service and gateway run on free ports of this machine, the gateway as a process.
"""

import http.server
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

calls: list[str] = []


class Service(http.server.BaseHTTPRequestHandler):
    """Answers the first call with 503 and a wait."""

    def do_GET(self) -> None:
        calls.append(self.path)
        status, body = (503, b"busy") if len(calls) == 1 else (200, b"three trains")
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def amends(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "amends", *arguments]


def until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("the gateway ended")


def main() -> None:
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        record = f"sqlite:///{Path(folder) / 'record.db'}"
        upstream = f"http://127.0.0.1:{service.server_address[1]}"
        gateway = subprocess.Popen(
            amends("gateway", "--listen", f"127.0.0.1:{port}", "--record", record, upstream),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until_it_listens(port, gateway)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/trains", timeout=60) as answer:
                print(answer.status, answer.read().decode(), answer.headers["Amends-Tries"], len(calls))
                trace = answer.headers["Amends-Trace"]
        finally:
            gateway.terminate()
            gateway.wait()
        shown = subprocess.run(
            amends("trace", trace, "--store", record, "--json"), capture_output=True, text=True, check=True
        )
        events = json.loads(shown.stdout)
        print(type(events).__name__, "SERVICE_UNAVAILABLE" in shown.stdout)
    service.shutdown()
    service.server_close()


main()
# > 200 three trains 2 2
# > dict True
