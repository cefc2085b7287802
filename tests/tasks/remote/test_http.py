"""HTTP endpoints as capabilities, with a real server."""

import json

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from amends.bindings.starlette import install
from amends.errors import RateLimitedError, ServiceUnavailableError, ValidationError
from amends.tasks.remote.http import Endpoint, HttpAgent
from tests.http.serving import serve
from tests.ports import free_port
from tests.tasks.remote.orchestrated import SOON, orchestrated


def weather(calls):
    async def forecast(request):
        calls.append(("GET", dict(request.query_params)))
        if len(calls) == 1:
            raise RateLimitedError("slow down", retry_after=0.01)
        return JSONResponse({"sky": "blue"})

    async def order(request):
        calls.append((request.headers.get("idempotency-key"), await request.json()))
        if len(calls) == 1:
            raise ServiceUnavailableError("in a moment", retry_after=0.01, executed="maybe")
        return JSONResponse({"order": 7}, status_code=201)

    async def refuse(request):
        raise ValidationError("No such city", field="/city", suggestions=["Name a city"])

    async def plain(request):
        return PlainTextResponse("as text")

    async def empty(request):
        return Response(status_code=204)

    routes = [
        Route(f"/{each.__name__}", each, methods=["GET", "POST"])
        for each in (forecast, order, refuse, plain, empty)
    ]
    app = Starlette(routes=routes)
    install(app)
    return app


def http_agent(base, **options):
    return HttpAgent(
        "weather-agent",
        {
            "forecast": Endpoint(url=f"{base}/forecast", method="GET"),
            "order": Endpoint(url=f"{base}/order", **options),
            "refuse": Endpoint(url=f"{base}/refuse"),
            "plain": Endpoint(url=f"{base}/plain", method="GET"),
            "empty": Endpoint(url=f"{base}/empty"),
        },
        headers=lambda: {"Authorization": "Bearer x"},
    )


async def test_http_endpoints():
    """Problem details become task errors; repeatable calls are repeated with the step's key."""
    calls = []
    with serve(weather(calls)) as base:
        async with orchestrated(http_agent(base, keyed=True)) as orchestrator:
            sky = await orchestrator.run("forecast", {"city": "Rome"}, retry_policy=SOON)
            assert sky.result == {"sky": "blue"}
            assert calls == [("GET", {"city": "Rome"})] * 2
            calls.clear()
            order = await orchestrator.run("order", {"item": "umbrella"}, id="o", retry_policy=SOON)
            assert order.result == {"order": 7}
            assert calls == [("o/order", {"item": "umbrella"})] * 2
            refused = await orchestrator.run("refuse", {"city": ""})
            assert refused.error.code == "INVALID_INPUT"
            assert refused.error.field == "/city"
            assert refused.error.details["translated_from"]["code"] == "VALIDATION_ERROR"
            assert (await orchestrator.run("plain")).result == "as text"
            assert (await orchestrator.run("empty", {})).result is None


async def test_a_call_that_may_have_happened_is_not_repeated():
    """A 503 of an endpoint that is neither keyed nor idempotent."""
    calls = []
    with serve(weather(calls)) as base:
        async with orchestrated(http_agent(base)) as orchestrator:
            order = await orchestrator.run("order", {"item": "umbrella"}, retry_policy=SOON)
            assert order.error.code == "AGENT_UNAVAILABLE"
            assert len(calls) == 1


async def test_a_refused_connection_is_retried():
    """The call had no effect, so it is repeated even if the endpoint is not keyed."""
    base = f"http://127.0.0.1:{free_port()}"
    async with orchestrated(http_agent(base)) as orchestrator:
        gone = await orchestrator.run("order", {}, id="x", retry_policy=SOON)
        assert gone.error.code == "AGENT_UNAVAILABLE"
        assert "127.0.0.1" not in json.dumps(gone.document())
        assert len((await orchestrator.state("x")).steps["order"].stepper.history) == 3
