"""The gateway behind Debian's nginx with a plain `proxy_pass`, and its metrics in Debian's Prometheus."""

import asyncio
import json
import urllib.parse
import urllib.request

import pytest

from tests.gateway.peers import OK, Upstream, answer, free_port, http
from tests.gateway.test_http_upstream import ask
from tests.gateway.test_metrics import TOKEN, dashboard, watched

pytestmark = pytest.mark.servers


class Process:
    """A server that was started for a test."""

    def __init__(self, *command):
        self.command = command

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        return self

    async def __aexit__(self, *_):
        self.process.terminate()
        await self.process.wait()


def fetch(url, token=""):
    """Return the status and the body of a page."""
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=20) as answered:
            return answered.status, answered.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


async def got(url, token="", *, until=lambda status, body: status):
    """Return what is fetched once it is there."""
    async with asyncio.timeout(60):
        while True:
            status, body = await asyncio.to_thread(fetch, url, token)
            if until(status, body):
                return status, body
            await asyncio.sleep(0.2)


async def test_the_page_behind_a_plain_proxy_pass_is_closed(tmp_path):
    """nginx's own address is loopback, and it adds no header: nobody gets in without the token, and the right one always works."""
    port = free_port()
    async with Upstream(OK) as up, watched(tmp_path, http(up)) as gateway:
        (tmp_path / "nginx.conf").write_text(
            f"daemon off; pid {tmp_path}/pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off; client_body_temp_path {tmp_path}/b; proxy_temp_path {tmp_path}/p; fastcgi_temp_path {tmp_path}/f;"
            f" uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;"
            f" server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {gateway.url}; }} }} }}\n"
        )
        async with Process("nginx", "-c", f"{tmp_path}/nginx.conf", "-p", str(tmp_path)):
            base = f"http://127.0.0.1:{port}"
            assert (await got(f"{base}/x"))[0] == 200
            for path in (
                "/_amends/",
                "/_amends/metrics",
                "/_amends/health?full",
                "/_amends/live",
                "/_amends/trace/x",
            ):
                status, body = await got(base + path)
                assert (status, b"healthy" in body) == (401, False)
            wrong = [asyncio.to_thread(fetch, f"{base}/_amends/", f"wrong-{number}") for number in range(40)]
            assert {status for status, _ in await asyncio.gather(*wrong)} <= {401, 429}
            assert (await got(f"{base}/_amends/", TOKEN))[0] == 200


async def test_the_queries_of_the_dashboard_run_against_prometheus(tmp_path):
    """Each panel's query is answered, and those about traffic with values."""
    port = free_port()
    async with (
        Upstream(OK, answer(503, b"{}", b"retry-after: 0"), OK) as up,
        watched(tmp_path, http(up)) as gateway,
    ):
        (tmp_path / "prometheus.yml").write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s"},
                    "scrape_configs": [
                        {
                            "job_name": "gateway",
                            "metrics_path": "/_amends/metrics",
                            "authorization": {"credentials": TOKEN},
                            "static_configs": [{"targets": [f"127.0.0.1:{gateway.port}"]}],
                        }
                    ],
                }
            )
        )
        command = (
            "prometheus",
            f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        )

        async def asked(query, until):
            url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
            _, body = await got(url, until=until)
            return json.loads(body)["data"]["result"]

        def has_rows(status, body):
            return status == 200 and json.loads(body)["data"]["result"]

        async with Process(*command):
            await got(f"http://127.0.0.1:{port}/-/ready", until=lambda status, _: status == 200)
            await asked("amends_gateway_calls_total > 0 or amends_gateway_calls_total == 0", has_rows)
            for _ in range(5):
                await ask(gateway, "/x")
            rows = await asked("rate(amends_gateway_calls_total[30s]) > 0", has_rows)
            assert rows[0]["metric"]["upstream"] == "shop"
            empty = {"Failures passed on, by code"}
            for title, query, *_ in dashboard().PANELS:
                expression = query.replace("$__rate_interval", "30s").replace("$__range", "1h")
                rows = await asked(expression, lambda status, _: status == 200)
                assert rows or title in empty, title
