"""A service with a script of responses per path that records the calls and effects."""

import asyncio
import json
from collections import defaultdict

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amends.bindings.asgi import Problems
from amends.serving.effect_unknown import EffectUnknownError


class Flaky:
    """ASGI application. `script[path]` is a list of responses; the last one is repeated."""

    def __init__(self):
        self.script = {}
        self.calls = defaultdict(list)
        self.effects = defaultdict(int)
        self.app = Starlette(
            routes=[Route("/{path:path}", self.respond, methods=["GET", "POST", "PUT", "PATCH"])]
        )

    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)

    async def respond(self, request: Request):
        path = request.url.path
        body = await request.body()
        self.calls[path].append((request.method, dict(request.headers), body))
        script = self.script.get(path, [200])
        step = script[min(len(self.calls[path]), len(script)) - 1]
        if callable(step):
            return await step(self, request)
        if isinstance(step, int):
            step = (step, {}, {"fine": True} if step < 400 else None)
        status, headers, content = step
        raw = (
            content
            if isinstance(content, bytes)
            else json.dumps(content).encode()
            if content is not None
            else b""
        )
        headers = {
            "content-type": "application/problem+json" if status >= 400 else "application/json",
            **headers,
        }
        return Response(raw, status, headers)


async def answer_too_late(flaky, request):
    """Have the effect, and answer after the client's time-out."""
    flaky.effects[request.headers.get("idempotency-key")] += 1
    await asyncio.sleep(2)
    return Response(b"late")


async def run_once_per_key(flaky, request):
    """Have the effect once per key."""
    key = request.headers.get("idempotency-key")
    if not flaky.effects[key]:
        flaky.effects[key] += 1
    return Response(b'{"done":true}', 201, {"content-type": "application/json"})


async def effect_unknown(flaky, request):
    """Answer EFFECT_UNKNOWN."""

    async def app(scope, receive, send):
        raise EffectUnknownError

    return Problems(app)


async def break_off(flaky, request):
    """Answer with a body that is shorter than its Content-Length."""

    async def app(scope, receive, send):
        headers = [(b"content-type", b"application/problem+json"), (b"content-length", b"5000")]
        await send({"type": "http.response.start", "status": 409, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b'{"code": "MINE", "detail": "', "more_body": False}
        )

    return app
