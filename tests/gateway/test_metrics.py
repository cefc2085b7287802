"""Metrics and health: for all traffic, with bounded labels, and for those only who may see the page."""

import asyncio
import importlib.util
import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import amends
from amends.core.policy import Policy
from amends.gateway import health
from amends.gateway.metrics import FIGURES
from tests.gateway.peers import OK, Upstream, answer, http, serving
from tests.gateway.test_computing import GOOD, failed
from tests.gateway.test_computing import post as ask_model
from tests.gateway.test_http_upstream import ask

TOKEN = "a-token-of-these-tests-only"
BEARER = f"authorization: Bearer {TOKEN}".encode()
ROOT = Path(__file__).parents[2]


class Watched:
    """The page of a gateway that is made after the gateway."""

    async def __call__(self, scope, receive, send):
        await self.page(scope, receive, send)

    async def close(self):
        await self.page.close()


def watched(tmp_path, *upstreams, **options):
    """Run a gateway with its page."""
    page = Watched()
    running = serving(*upstreams, page=page, **options)

    class Running:
        async def __aenter__(self):
            gateway = await running.__aenter__()
            page.page = amends.dashboard(f"sqlite:///{tmp_path}/r.db", upstreams=gateway, token=TOKEN)
            return gateway

        async def __aexit__(self, *error):
            return await running.__aexit__(*error)

    return Running()


async def scraped(gateway):
    """Return the metrics: name → labels → value."""
    status, headers, body = await ask(gateway, "/_amends/metrics", BEARER)
    assert (status, dict(headers)[b"content-type"].startswith(b"text/plain")) == (200, True)
    found = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            found[(sample.name, *sorted(sample.labels.items()))] = sample.value
    return found


def figure(found, name, **labels):
    return found[(f"amends_gateway_{name}", *sorted({"upstream": "shop", **labels}.items()))]


async def test_the_metrics_count_all_traffic(tmp_path):
    """Successes, failures by code, recoveries, repeats, refusals, doubts, doubled computations and the histogram."""
    strange = answer(
        400, b'{"error":{"code":"made up by 10.0.0.7 /orders/17"}}', b"content-type: application/json"
    )
    async with (
        Upstream(OK, answer(503, b"{}", b"retry-after: 0"), OK, strange, "close", failed(500), GOOD) as up,
        watched(tmp_path, http(up, vendor="openai", concurrency=50)) as gateway,
    ):
        await ask(gateway, "/orders/17?token=x")
        await ask(gateway, "/orders/18")
        await ask(gateway, "/orders/19")
        await ask(gateway, "/pay", method="POST", body=b"{}")
        await ask_model(gateway, {"input": "x"})
        await ask(gateway, "/a/../b")
        found = await scraped(gateway)
    assert figure(found, "calls_total") == 6
    assert figure(found, "recovered_total") == 2
    assert figure(found, "repeats_total") == 2
    assert figure(found, "failed_total") == 2
    assert figure(found, "refused_total") == 1
    assert figure(found, "duplicates_avoided_total") == 1
    assert figure(found, "recomputed_total") == 1
    assert figure(found, "answer_seconds_count") == 5
    assert figure(found, "answer_seconds_bucket", le="+Inf") == 5
    assert figure(found, "in_flight") == figure(found, "waiting") == 0
    assert sum(value for key, value in found.items() if key[0] == "amends_gateway_failures_total") == 2


async def test_labels_are_bounded(tmp_path):
    """A service that invents codes, paths and ids makes no new series."""
    bodies = [json.dumps({"error": {"code": f"code-{number}"}}).encode() for number in range(300)]
    script = [answer(400, body, b"content-type: application/json") for body in bodies]
    async with Upstream(*script) as up, watched(tmp_path, http(up)) as gateway:
        for number in range(300):
            await ask(gateway, f"/orders/{number}")
        found = await scraped(gateway)
        assert len(gateway.upstreams[0].stats.codes) <= 201
    values = {value for _, *labels in found for name, value in labels if name != "le"}
    assert len(values) < 30
    assert not any("/orders" in value or "code-" in value for value in values)


async def test_page_metrics_and_health_have_one_access_rule(tmp_path):
    """Without the token none of them, with it all; only whether the gateway is up is public."""
    async with Upstream(OK) as up, watched(tmp_path, http(up)) as gateway:
        for path in ("/_amends/", "/_amends/metrics", "/_amends/health?full", "/_amends/live"):
            assert (await ask(gateway, path))[0] == 401
            assert (await ask(gateway, path, b"authorization: Bearer wrong"))[0] in {401, 429}
        for path in ("/_amends/", "/_amends/metrics", "/_amends/health?full"):
            assert (await ask(gateway, path, BEARER))[0] == 200
        status, _, body = await ask(gateway, "/_amends/health")
        assert (status, json.loads(body)) == (200, {"status": "ok", "in_flight": 0})


async def test_a_held_route_is_visible(tmp_path):
    """In the health, the metrics and the figures of the page; without a credential or a body."""
    async with (
        Upstream(answer(503, b'{"secret":1}', b"retry-after: 300")) as up,
        watched(tmp_path, http(up, policy=Policy(attempts=1, max_wait=1))) as gateway,
    ):
        for _ in range(4):
            await ask(gateway, "/orders/17", b"authorization: Bearer of-a-caller")
        [found] = json.loads((await ask(gateway, "/_amends/health?full", BEARER))[2])["upstreams"]
        assert (found["state"], found["held"]) == ("shut", ["read /orders/*"])
        assert found["resumes_in"] > 1
        assert found["last_failure"] == "SERVICE_UNAVAILABLE 503"
        assert figure(await scraped(gateway), "held") == 1
        assert gateway.statuses()[0].state == "shut"


async def test_the_health_path(tmp_path, monkeypatch):
    """Two failed answers: calls are answered at once. One good answer: they are sent again."""
    works = False

    async def script(request, writer):
        writer.write(OK if works or b"/healthz" not in request else answer(500))

    monkeypatch.setattr(health, "INTERVAL", 0.01)
    monkeypatch.setattr(health.watch_health, "__defaults__", (0.01,))
    async with Upstream(script) as up, watched(tmp_path, http(up, health="/healthz")) as gateway:
        upstream = gateway.upstreams[0]
        async with asyncio.timeout(30):
            while not upstream.down:
                await asyncio.sleep(0.01)
        status, sent, body = await ask(gateway, "/x")
        assert (status, json.loads(body)["executed"], dict(sent)[b"amends-tries"]) == (503, "no", b"0")
        [found] = json.loads((await ask(gateway, "/_amends/health?full", BEARER))[2])["upstreams"]
        assert found["state"] == "down"
        works = True
        async with asyncio.timeout(30):
            while upstream.down:
                await asyncio.sleep(0.01)
        assert (await ask(gateway, "/x"))[0] == 200
        gateway.reload(gateway.config)
        assert len(gateway._watching) == 1


async def test_open_telemetry_gets_the_same():
    """By its API: the figures, and the duration of calls by its conventions."""
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from amends.gateway.metrics import observe

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    get_meter, metrics.get_meter = metrics.get_meter, provider.get_meter
    try:
        async with Upstream(OK, answer(404)) as up, serving(http(up)) as gateway:
            observe(gateway)
            await ask(gateway, "/x")
            await ask(gateway, "/y")
            [resource] = reader.get_metrics_data().resource_metrics
    finally:
        metrics.get_meter = get_meter
        provider.shutdown()
    found = {each.name: each for scope in resource.scope_metrics for each in scope.metrics}
    assert {f"amends.gateway.{name.replace('_seconds', '')}" for name in FIGURES} <= found.keys()
    assert found["amends.gateway.calls"].data.data_points[0].value == 2
    points = found["http.client.request.duration"].data.data_points
    assert {
        (point.attributes["http.response.status_code"], point.attributes.get("error.type"))
        for point in points
    } == {
        (200, None),
        (404, "404"),
    }
    assert {point.attributes["server.address"] for point in points} == {"127.0.0.1"}


def dashboard():
    spec = importlib.util.spec_from_file_location("dashboard", ROOT / "scripts" / "dashboard.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_dashboard_is_that_of_the_script_and_has_every_metric():
    """The file in deploy/ is made by the script, and each figure has a panel."""
    made = dashboard()
    assert json.loads(made.PATH.read_text()) == made.dashboard()
    queries = " ".join(query for _, query, *_ in made.PANELS)
    missing = [name for name in FIGURES if f"amends_gateway_{name}" not in queries]
    assert missing == []


@pytest.mark.parametrize(
    "name", ["nginx.conf", "grafana-dashboard.json", "gateway.toml", "amends-gateway.service"]
)
def test_deploy_has_what_the_docs_name(name):
    """Files to copy."""
    assert (ROOT / "deploy" / name).is_file()
