"""The page at `/_amends/` of a running `amends gateway`."""

import asyncio
import os
import sys

import httpx

from tests.gateway.peers import OK, Upstream, answer


async def test_a_gateway_serves_its_page(tmp_path):
    """A recovered call is on the page with its upstream's figures, and its trace header opens the timeline."""
    busy = answer(503, b"{}", b"content-type: application/json", b"retry-after: 0")
    async with Upstream(busy, OK) as upstream:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "amends", "gateway", upstream.url),
            *("--listen", "127.0.0.1:0", "--record", f"sqlite:///{tmp_path}/failures.db"),
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "AMENDS_PAGE_TOKEN": "the-t0ken-of-these-tests"},
        )
        try:
            async with asyncio.timeout(60):
                url = (await process.stderr.readline()).split()[0].decode()
                headers = {"authorization": "Bearer the-t0ken-of-these-tests"}
                async with httpx.AsyncClient(base_url=url, headers=headers) as browser:
                    called = await browser.get("/prices?key=hidden-value")
                    assert called.status_code == 200
                    while "recovered after 2 tries" not in (text := (await browser.get("/_amends/")).text):
                        await asyncio.sleep(0.02)
                    trace = (await browser.get(f"/_amends/trace/{called.headers['amends-trace']}")).text
                    outside = await browser.get("/_amends/", headers={"host": "evil.example"})
                    unsigned = await browser.get("/_amends/", headers={"authorization": ""})
                    health = await browser.get("/_amends/health")
        finally:
            process.terminate()
            await process.communicate()
    assert process.returncode == 143
    assert 'class="badge good">healthy<' in text
    assert 'data-name="Calls">1<' in text
    assert "GET /prices" in trace
    assert "hidden-value" not in text + trace
    assert outside.status_code == 403
    assert unsigned.status_code == 401
    assert health.json()["status"] == "ok"
    assert len(upstream.requests) == 2
