"""
What recovery costs a successful HTTP call: our transport, httpx-retries and the bare client, interleaved.

CPU time of this process per call, in microseconds. "transport" is the transport alone; the others are whole calls of a
client: in memory (`MockTransport`), and over a socket to a server in another process. The ratios are of the same rounds.
httpx-retries works with httpx only.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from types import ModuleType
from typing import Any

import httpx
import httpx2
from httpx_retries import RetryTransport

from amends.bindings.httpx import AsyncTransport, Transport

ROUNDS, CALLS = 60, 60
HEADERS = {"date": "Thu, 19 Nov 2026 10:00:00 GMT", "server": "shop"}
MEMORY = "https://shop.example/v1/orders/17"
REQUESTS: dict[str, dict[str, Any]] = {
    "GET": {},
    "POST": {"json": {"item": "ticket"}, "headers": {"Idempotency-Key": "7f3a"}},
}
SERVER = """
import socket, threading
BODY = b'{"ok": true}'
ANSWER = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n%s" % (len(BODY), BODY)

def serve(connection):
    with connection, connection.makefile("rb") as lines:
        while line := lines.readline():
            length = 0
            while (line := lines.readline().lower()) not in {b"\\r\\n", b""}:
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            lines.read(length)
            connection.sendall(ANSWER)

with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""


class Bench:
    """The contenders of one library, and how long they are measured."""

    def __init__(self, library: ModuleType, rounds: int, calls: int) -> None:
        self.library: Any = library
        self.rounds, self.calls = rounds, calls
        self.wrappers: dict[str, Callable[[Any], Any]] = {"bare": lambda inner: inner, "amends": Transport}
        if library is httpx:
            self.wrappers["httpx-retries"] = lambda inner: RetryTransport(transport=inner)

    def memory(self) -> Any:
        """A transport that answers in memory."""
        response = self.library.Response
        return self.library.MockTransport(
            lambda _: response(200, json={"ok": True, "id": 17}, headers=HEADERS)
        )

    def alone(self, method: str) -> dict[str, Callable[[], object]]:
        """Transports without a client."""
        request = self.library.Request(method, MEMORY, **REQUESTS[method])
        transports = {name: wrap(self.memory()) for name, wrap in self.wrappers.items()}
        return {
            name: lambda transport=transport: transport.handle_request(request)
            for name, transport in transports.items()
        }

    def called(self, method: str, address: str, make: Callable[[], Any]) -> dict[str, Callable[[], object]]:
        """Whole calls of clients."""
        clients = {name: self.library.Client(transport=wrap(make())) for name, wrap in self.wrappers.items()}
        return {
            name: lambda client=client: client.request(method, address, **REQUESTS[method])
            for name, client in clients.items()
        }

    def awaited(self, method: str) -> dict[str, Callable[[], object]]:
        """Ten calls of async clients in memory."""
        wrappers = {**self.wrappers, "amends": AsyncTransport}
        clients = {
            name: self.library.AsyncClient(transport=wrap(self.memory())) for name, wrap in wrappers.items()
        }
        loop = asyncio.new_event_loop()

        async def ten(client: Any) -> None:
            for _ in range(10):
                await client.request(method, MEMORY, **REQUESTS[method])

        return {
            name: lambda client=client: loop.run_until_complete(ten(client))
            for name, client in clients.items()
        }

    def row(self, name: str, contenders: dict[str, Callable[[], object]], each: int = 1) -> str:
        """One row of the table; a contender makes `each` calls at once."""
        order = list(contenders)
        spent: dict[str, list[float]] = {contender: [] for contender in order}
        for number in range(self.rounds + 3):
            random.shuffle(order)
            for contender in order:
                began = time.process_time_ns()
                for _ in range(self.calls // each):
                    contenders[contender]()
                if number >= 3:  # the first rounds warm caches
                    spent[contender].append((time.process_time_ns() - began) / self.calls / 1000)
        bare = spent.pop("bare")
        cells = [f"{median(bare):.1f}"]
        for contender in ("amends", "httpx-retries"):
            pairs = list(zip(spent.get(contender, []), bare, strict=bool(spent.get(contender))))
            added = (
                f"{median(a - b for a, b in pairs):.1f} ({median(a / b for a, b in pairs):.2f} ×)"
                if pairs
                else "–"
            )
            cells.append(added)
        return f"| {self.library.__name__}, {name} | {' | '.join(cells)} |"


def main(rounds: int = ROUNDS, calls: int = CALLS) -> list[str]:
    lines = [
        "| a call that succeeds | bare, µs | added by amends | added by httpx-retries |",
        "|---|---|---|---|",
    ]
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1/orders/17"
        for library in (httpx2, httpx):
            bench = Bench(library, rounds, calls)
            for method in REQUESTS:
                kind = method if method == "GET" else f"{method} with a key"
                lines += [
                    bench.row(f"{kind}, transport", bench.alone(method)),
                    bench.row(f"{kind}, client in memory", bench.called(method, MEMORY, bench.memory)),
                    bench.row(f"{kind}, async client in memory", bench.awaited(method), each=10),
                    bench.row(
                        f"{kind}, client on a socket", bench.called(method, address, library.HTTPTransport)
                    ),
                ]
    finally:
        server.kill()
        server.wait()
    return lines


if __name__ == "__main__":
    print("\n".join(main(*(int(each) for each in sys.argv[1:]))))
