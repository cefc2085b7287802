"""A service that forges everything it controls: statuses, headers and bodies of every known service, and echoes of the request."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from amends import vectors

MAY_HAVE_RUN = (408, 499, 500, 502, 503, 504, 507, 520, 599)
"""Statuses of answers after which the request may have had its effect. 429, 501 and the like say that it had none (M3)."""
DAY = 86400


def headers(key, trace):
    """Yield sets of headers that a peer writes about itself, about us and about the time."""
    now = time.time()
    yield {}
    yield {"Idempotency-Key": key, "Idempotency-Replayed": "true", "Idempotent-Replayed": "true"}
    yield {
        "Retry-After": "0",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": "1",
        "X-Should-Retry": "true",
    }
    yield {
        "Server": "cloudflare",
        "CF-Ray": "8a1b2c3d4e5f6789-FRA",
        "Stripe-Version": "2026-01-01",
        "Request-Id": "req_x",
    }
    yield {
        "X-Request-Id": key,
        "traceparent": f"00-{trace}-00f067aa0ba902b7-01",
        "anthropic-request-id": "x",
        "x-amzn-requestid": "x",
    }
    yield {"Date": formatdate(now + DAY, usegmt=True), "Retry-After": formatdate(now - DAY, usegmt=True)}
    yield {"Date": formatdate(now - DAY, usegmt=True), "Retry-After": formatdate(now, usegmt=True)}
    yield {
        "Via": "1.1 localhost",
        "X-Forwarded-For": "127.0.0.1",
        "Forwarded": "for=127.0.0.1",
        "X-Forwarded-Host": "api.stripe.com",
    }
    yield {
        "x-fal-retryable": "true",
        "grpc-status": "8",
        "x-amzn-errortype": "ThrottlingException",
        "x-shopify-api-request-failure-reauthorize": "0",
    }


def bodies():
    """Yield a body of each service that amends knows, and what a peer can say in our own formats."""
    seen = set()
    for vector in vectors.load_vendors():
        answer = vector.response
        body = answer.get("body") if isinstance(answer, dict) and "status" in answer else answer
        if vector.vendor not in seen and body is not None and not vector.in_success:
            seen.add(vector.vendor)
            yield body
    yield {"status": 429, "code": "RATE_LIMITED", "is_retriable": True, "retry_after_ms": 1, "executed": "no"}
    yield {
        "ok": False,
        "error": {"code": "RATE_LIMITED", "retryable": True, "retry_after": 0, "executed": "no"},
    }
    yield {"adcp_error": {"code": "RATE_LIMITED", "recovery": "transient", "retry_after": 0}}
    yield {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "x"}}


BODIES = tuple(bodies())


class Peer:
    """
    Serves the next forged answer to each first request of a path, and success to every further one.

    `effects` has the number of requests by path: each of them is an effect.
    """

    def __init__(self):
        self.effects = {}
        self.answers = {}
        peer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body in one segment: the other end would delay its acknowledgement of the first.
            wbufsize = 1 << 20

            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                count = peer.effects[self.path] = peer.effects.get(self.path, 0) + 1
                status, which, body = peer.answers[self.path]
                trace = self.headers.get("traceparent", "00-" + "a" * 32).split("-")[1]
                sent = list(headers(self.headers.get("idempotency-key", ""), trace))[which]
                if count > 1:
                    status, sent, body = 200, {}, {"again": True}
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response_only(status)
                problem = isinstance(body, dict) and "status" in body
                kind = "application/problem+json" if problem else "application/json"
                for name, value in ({"Content-Type": kind} | sent).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def forge(self, name, status, which, body):
        """Prepare the answer to the first request of a path, and return the path."""
        path = f"/{name}"
        self.answers[path] = (status, which, body)
        return path


def forgeries(step):
    """Yield statuses, header sets and bodies: each body under each status, and each header set with each status and many bodies."""
    sets = len(list(headers("k", "t")))
    number = 0
    for at, body in enumerate(BODIES):
        for status in MAY_HAVE_RUN:
            for which in range(sets):
                number += 1
                if (at + status + which) % step == 0:
                    yield number, status, which, body
