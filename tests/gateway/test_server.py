"""Running a gateway: a graceful stop, reloads without a dropped call, and the command as a real process."""

import asyncio
import json
import os
import signal
import subprocess
import urllib.request

import httpx
import pytest
from msgspec.structs import replace

from amends.gateway import Gateway, read_config
from amends.gateway.config import GatewayConfig
from amends.gateway.server import GatewayServer, LazyPage, listening_socket
from amends.recorder import record
from tests.commands.test_decode import AMENDS, amends
from tests.gateway.peers import OK, Upstream, answer, free_port, get, http, raw, serving
from tests.gateway.test_http_upstream import ask, parts


async def test_a_stop_lets_calls_end_and_refuses_new_ones_with_a_wait():
    """In-flight calls get their answers; others 503 and a Retry-After; the health check says so."""
    go = asyncio.Event()

    async def slow(request, writer):
        await go.wait()
        writer.write(OK)

    async with Upstream(slow) as up, serving(http(up), grace=20) as gateway:
        held = asyncio.create_task(ask(gateway))
        while not up.requests:
            await asyncio.sleep(0.001)
        gateway.server.stop()
        while not gateway.stopping:
            await asyncio.sleep(0.001)
        status, headers, body = await ask(gateway, "/other")
        assert (status, dict(headers)[b"retry-after"], json.loads(body)["executed"]) == (503, b"5", "no")
        assert (await ask(gateway, "/_amends/health"))[0] == 503
        go.set()
        assert (await held)[0] == 200
        while not gateway.server.should_exit:
            await asyncio.sleep(0.01)


async def test_a_reload_drops_no_call():
    """A call keeps the upstream it began with; unchanged upstreams keep their connections and counters."""
    go = asyncio.Event()

    async def slow(request, writer):
        await go.wait()
        writer.write(answer(200, b"old"))

    async with Upstream(slow) as old, Upstream(OK) as new, Upstream(OK) as same:
        kept = http(same, name="same", prefix="/same")
        async with serving(http(old, prefix="/shop"), kept) as gateway:
            before = gateway.upstreams
            held = asyncio.create_task(ask(gateway, "/shop"))
            while not old.requests:
                await asyncio.sleep(0.001)
            gateway.reload(GatewayConfig(upstreams=(http(new, prefix="/shop"), kept)))
            assert (await ask(gateway, "/shop"))[2] == b"ok"
            assert [each for each in gateway.upstreams if each in before] == [
                each for each in before if each.config.name == "same"
            ]
            go.set()
            assert (await held)[2] == b"old"


async def test_a_changed_file_is_read_and_a_wrong_one_is_not(tmp_path, caplog):
    """SIGHUP and changes call `reload`; the old configuration stays if the new one is wrong."""
    from amends.gateway import Gateway, read_config

    path = tmp_path / "gateway.toml"
    path.write_text("[upstream.a]\nurl = 'http://127.0.0.1:1'\n")
    server = GatewayServer(Gateway(read_config(path.read_text())), path)
    path.write_text("[upstream.a]\nurl = 3\n")
    server.reload()
    assert "line 2, column 7" in caplog.text
    path.write_text("listen = '127.0.0.1:1'\n[upstream.b]\nurl = 'http://127.0.0.1:1'\n")
    server.reload()
    assert [each.config.name for each in server.gateway.upstreams] == ["b"]
    assert "only with a restart" in caplog.text


def test_an_address_that_is_in_use():
    """The error is raised before anything is started; IPv6 addresses are taken too."""
    with listening_socket("127.0.0.1:0") as bound, pytest.raises(OSError, match="in use"):
        listening_socket(f"127.0.0.1:{bound.getsockname()[1]}")


def test_check_prints_what_is_wrong(tmp_path):
    """Line and column for people and programs; the exit code says it."""
    path = tmp_path / "gateway.toml"
    path.write_text("[upstream.a]\nurl = 'x'\nown = 1\n")
    done = amends("gateway", "check", str(path))
    error = json.loads(done.stdout)["error"]
    assert done.returncode
    assert error["message"].startswith(f"{path}:2:7: url is not")
    assert error["message"].endswith("2 problems in all")
    assert [each.startswith(f"{path}:3:") for each in error["suggestions"]] == [True]
    assert [each["line"] for each in error["details"]["problems"]] == [2, 3]
    path.write_text("[upstream.a]\nurl = 'http://x'\n")
    assert json.loads(amends("gateway", "check", str(path)).stdout) == {"ok": True, "upstreams": ["a"]}
    for wrong in (
        (),
        ("a", "b"),
        ("ftp://x",),
        ("http://x", "--listen", "nowhere"),
        (str(tmp_path / "none.toml"),),
    ):
        assert amends("gateway", *wrong).returncode, wrong


async def test_the_command_serves_and_stops(tmp_path):
    """`amends gateway FILE`: calls pass, SIGHUP reloads, SIGTERM stops with 0 or the signal's code."""
    port, path = free_port(), tmp_path / "gateway.toml"
    async with Upstream(answer(503, b"{}", b"retry-after: 0"), OK) as up:
        path.write_text(f"listen = '127.0.0.1:{port}'\n[upstream.shop]\nurl = '{up.url}'\nprefix = ''\n")
        env = {
            **os.environ,
            "AMENDS_RECORD": f"sqlite:///{tmp_path}/r.db",
            "AMENDS_PAGE_TOKEN": "the-t0ken-of-these-tests",
        }
        process = subprocess.Popen([*AMENDS, "gateway", str(path)], stderr=subprocess.PIPE, env=env)
        try:
            first = await asyncio.to_thread(process.stderr.readline)
            assert f"http://127.0.0.1:{port}  / → shop".encode() in first
            second = await asyncio.to_thread(process.stderr.readline)
            assert second == f"failures live: http://127.0.0.1:{port}/_amends/\n".encode()
            url = f"http://127.0.0.1:{port}/x"
            found = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=20).read())
            assert found == b"ok"
            path.write_text(path.read_text().replace("[upstream.shop]", "[upstream.store]"))
            process.send_signal(signal.SIGHUP)
            while b"read again" not in await asyncio.to_thread(process.stderr.readline):
                pass
        finally:
            process.send_signal(signal.SIGTERM)
            code = await asyncio.to_thread(process.wait, 20)
            process.stderr.close()
        assert code in {0, 143, -signal.SIGTERM}
    watched = amends("watch", "--no-follow", "--store", f"sqlite:///{tmp_path}/r.db").stdout.splitlines()
    assert [json.loads(line)["outcome"] for line in watched] == ["retry", "recovered"]


async def test_unknown_paths_and_pages():
    """The page is mounted below /_amends; without one there is a 404."""
    scopes = []

    async def page(scope, receive, send):
        scopes.append(scope["root_path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"page"})

    async with Upstream(OK) as up, serving(http(up), page=page) as gateway:
        assert (await ask(gateway, "/_amends/"))[2].endswith(b"page\r\n0\r\n\r\n")
        assert scopes == ["/_amends"]
        gateway.page = None
        assert parts(await raw(gateway, get("/_amends/")))[0] == 404
        assert up.requests == []


async def test_a_reload_keeps_the_options_of_the_command_and_takes_a_new_token(tmp_path, caplog):
    """The address and the store of a running gateway stay; the page asks for the new token."""
    file = tmp_path / "gateway.toml"
    file.write_text('token = "the-old-token-of-the-page"\n[upstream.shop]\nurl = "http://127.0.0.1:1"')
    with record(f"sqlite:///{tmp_path}/r.db") as recorder:
        config = replace(read_config(file.read_text()), listen="127.0.0.1:0")
        gateway = Gateway(config)
        gateway.page = LazyPage(gateway, recorder)
        server = GatewayServer(gateway, file)
        transport = httpx.ASGITransport(gateway, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://page.example") as browser:

            async def status(token):
                headers = {"authorization": f"Bearer {token}"}
                return (await browser.get("/_amends/", headers=headers)).status_code

            assert (await status("the-old-token-of-the-page"), await status("the-new-token-of-the-page")) == (
                200,
                401,
            )
            server.reload()
            assert caplog.text == ""
            file.write_text('listen = "127.0.0.1:9"\n' + file.read_text().replace("old", "new"))
            server.reload()
            assert "listen changes only with a restart" in caplog.text
            assert (gateway.config.listen, gateway.config.token) == (
                "127.0.0.1:0",
                "the-new-token-of-the-page",
            )
            assert (await status("the-old-token-of-the-page"), await status("the-new-token-of-the-page")) == (
                401,
                200,
            )
        await gateway.close()
