"""The HTTP API: prices and orders, as problem details; and the counter the command asks."""

from __future__ import annotations

from typing import Any

from amends.demo.call_record import Scene, World
from amends.demo.scenario import Late
from amends.errors import RateLimitedError

__all__ = ["app"]


def app(scene: Scene) -> Any:
    """A Starlette application with one line for its failures, and one for idempotency keys."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from amends.bindings.starlette import install
    from amends.http.idempotency import Idempotent

    async def prices(request: Request) -> JSONResponse:
        _admit(scene.world, "prices")
        return JSONResponse({"leek": 2.4, "trout": 9.8})

    async def order(request: Request) -> JSONResponse:
        scene.world.effect("order")
        return JSONResponse({"order": f"G-{scene.world.tallies['order'].effects}"}, 201)

    async def wine(request: Request) -> JSONResponse:
        _admit(scene.world, "wine")
        scene.world.effect("wine")
        return JSONResponse({"bottles": 6})

    found = Starlette(
        routes=[
            Route("/prices", prices),
            Route("/orders", order, methods=["POST"]),
            Route("/wine", wine, methods=["POST"]),
        ]
    )
    install(found)
    found.add_middleware(Idempotent, store="memory:")
    found.add_middleware(_Counted, scene=scene)
    return found


def _admit(world: World, step: str) -> None:
    hurdle = world.call(step)
    if isinstance(hurdle, Late):
        raise RateLimitedError("Too many questions at once", retry_after=hurdle.seconds)


class _Counted:
    """Counts orders where they arrive, before a replayed answer could hide one."""

    def __init__(self, inner: Any, scene: Scene) -> None:
        self.inner = inner
        self.scene = scene

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == "/orders":
            self.scene.world.call("order")
        await self.inner(scope, receive, send)
