"""The page at `/_amends/` of a running `amends gateway`."""

import asyncio
import os
import sys
from pathlib import Path

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


async def test_fifty_viewers_during_load(tmp_path):
    """Every call is answered, every viewer gets the new failure, and the memory stays small."""
    gone = answer(404, b"{}", b"content-type: application/json")
    headers = {"authorization": "Bearer the-t0ken-of-these-tests"}
    async with Upstream(gone) as upstream:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "amends", "gateway", upstream.url),
            *("--listen", "127.0.0.1:0", "--record", f"sqlite:///{tmp_path}/failures.db"),
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "AMENDS_PAGE_TOKEN": headers["authorization"].removeprefix("Bearer ")},
        )
        reading = None
        try:
            async with asyncio.timeout(100):
                url = (await process.stderr.readline()).split()[0].decode()
                reading = asyncio.create_task(process.stderr.read())
                limits = httpx.Limits(max_connections=None)
                async with httpx.AsyncClient(
                    base_url=url, headers=headers, limits=limits, timeout=60
                ) as client:
                    await client.get("/first")
                    watching = asyncio.Barrier(51)

                    async def watch():
                        async with client.stream("GET", "/_amends/live") as stream:
                            assert stream.status_code == 200
                            lines = stream.aiter_lines()
                            await anext(lines)
                            await watching.wait()
                            while "/the-last-one" not in await anext(lines):
                                pass

                    async def call():
                        return [(await client.get(f"/orders/{number}")).status_code for number in range(25)]

                    viewers = [asyncio.create_task(watch()) for _ in range(50)]
                    await watching.wait()
                    found = await asyncio.gather(*(call() for _ in range(8)))
                    await client.get("/the-last-one")
                    await asyncio.gather(*viewers)
                    status = Path(f"/proc/{process.pid}/status").read_text()
                    memory = int(status.partition("VmHWM:")[2].split()[0])
        finally:
            process.terminate()
            await process.wait()
            if reading is not None:
                await reading
    assert found == [[404] * 25] * 8
    assert memory < 200_000
