"""A service that fails as told: a script of answers per path, and the truth about what reached it."""

import asyncio
import json
from collections import defaultdict

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amends.bindings.asgi import Problems
from amends.http.effect_unknown import EffectUnknownError


class Flaky:
    """ASGI application. `script[path]` is a list of answers; the last one stays."""

    def __init__(self):
        self.script = {}
        self.calls = defaultdict(list)
        self.effects = defaultdict(int)
        self.app = Starlette(
            routes=[Route("/{path:path}", self.answer, methods=["GET", "POST", "PUT", "PATCH"])]
        )

    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)

    async def answer(self, request: Request):
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


async def lost(flaky, request):
    """The effect happens, the answer does not arrive in time."""
    flaky.effects[request.headers.get("idempotency-key")] += 1
    await asyncio.sleep(2)
    return Response(b"late")


async def keyed(flaky, request):
    """The effect happens once per key."""
    key = request.headers.get("idempotency-key")
    if not flaky.effects[key]:
        flaky.effects[key] += 1
    return Response(b'{"done":true}', 201, {"content-type": "application/json"})


async def doubtful(flaky, request):
    """The server cannot tell whether the effect happened."""

    async def app(scope, receive, send):
        raise EffectUnknownError

    return Problems(app)


async def broken_off(flaky, request):
    """An answer whose body ends before it is whole."""

    async def app(scope, receive, send):
        headers = [(b"content-type", b"application/problem+json"), (b"content-length", b"5000")]
        await send({"type": "http.response.start", "status": 409, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b'{"code": "MINE", "detail": "', "more_body": False}
        )

    return app
