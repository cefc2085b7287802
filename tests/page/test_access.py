"""Who gets in: the token, or a one-time address from the terminal. That a request is local is never enough."""

import asyncio
import io
import logging
import os
import pty
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import httpx
import pytest
from starlette.requests import HTTPConnection

import amends
from amends.demo.host import serving
from amends.page import Page, access, app
from tests.gateway.peers import OK, Upstream, free_port
from tests.page.test_app import client, fill

PROXY_HEADERS = (
    *(
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Server",
        "X-Forwarded-Port",
    ),
    *(
        "X-Forwarded-Client-Cert",
        "CF-Connecting-IP",
        "CF-Ray",
        "X-Real-IP",
        "Via",
        "True-Client-IP",
        "CDN-Loop",
    ),
)


class Terminal(io.StringIO):
    """What a program writes to its terminal."""

    def isatty(self):
        """Return whether it is one."""
        return True

    def address(self):
        """Return the value of the last one-time address."""
        return re.findall(r"sign-in\?once=([\w-]+)\n", self.getvalue())[-1]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.delenv("AMENDS_PAGE_TOKEN", raising=False)
    url = f"sqlite:///{tmp_path}/failures.db"
    fill(url)
    return url


@pytest.fixture
def screen(monkeypatch):
    found = Terminal()
    monkeypatch.setattr(access, "sys", SimpleNamespace(stderr=found))
    return found


async def plain_proxy(port):
    """Forward as nginx's `proxy_pass http://127.0.0.1:PORT;` does: Host is the upstream's, and no header is added."""

    async def handle(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        lines = [
            line
            for line in head[:-4].split(b"\r\n")
            if not line.lower().startswith((b"host:", b"connection:"))
        ]
        lines[0] = lines[0].replace(b"HTTP/1.1", b"HTTP/1.0")
        to_reader, to = await asyncio.open_connection("127.0.0.1", port)
        to.write(
            b"\r\n".join([lines[0], b"Host: 127.0.0.1:%d" % port, b"Connection: close", *lines[1:], b"", b""])
        )
        writer.write(await to_reader.read())
        writer.close()
        to.close()

    return await asyncio.start_server(handle, "127.0.0.1", 0)


@pytest.mark.parametrize("token", [None, "the-t0ken-of-these-tests-of-twenty-characters"])
async def test_behind_a_plain_proxy_nothing_is_shown(store, token, screen):
    """The socket, the Host and all headers are those of a local request: with and without a token it shows nothing."""
    page = Page(store, token=token)
    async with serving(page) as port:
        proxy = await plain_proxy(port)
        outside = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        async with httpx.AsyncClient(base_url=outside) as stranger:
            for path in ("/", "/live", "/trace/x", "/event/1.1"):
                answer = await stranger.get(path, headers={"accept-encoding": "identity"})
                assert answer.status_code == 401
                assert "RATE_LIMITED" not in answer.text
                assert "once=" not in answer.text
        proxy.close()
    await page.close()


async def test_the_one_time_address(store, screen, caplog):
    """It is printed on the terminal, opens the page once for a cookie, and never reaches a log."""
    caplog.set_level(logging.DEBUG)
    page = amends.dashboard(store)
    async with client(page, token=None) as browser:
        answer = await browser.get("/")
        assert (answer.status_code, "www-authenticate" in answer.headers) == (401, False)
        assert "one-time address" in answer.text
        value = screen.address()
        assert value not in answer.text
        assert f"http://localhost/sign-in?once={value}" in screen.getvalue()
        # Neither a look at the link nor a wrong value uses it up, and only one is open.
        await browser.head(f"/sign-in?once={value}")
        for wrong in ("", "x", value[:-1], value + "x", "é"):
            assert (await browser.get("/sign-in", params={"once": wrong})).status_code == 200
        assert screen.getvalue().count("once=") == 1
        for headers in ({"host": "evil.example"}, *({name: "10.0.0.7"} for name in PROXY_HEADERS)):
            assert (await browser.get(f"/sign-in?once={value}", headers=headers)).status_code == 200, headers
        answer = await browser.get(f"/sign-in?once={value}")
        assert answer.status_code == 303
        assert "samesite=strict" in answer.headers["set-cookie"].lower()
        seen = await browser.get("/")
        assert "RATE_LIMITED" in seen.text
        cookies = {"cookie": f"amends_page={browser.cookies['amends_page']}"}
        csrf = re.search(r'name="csrf" value="(\w+)"', seen.text)[1]
        # The cookie of a one-time address is for requests of this machine.
        for headers in ({"host": "evil.example"}, *({name: "10.0.0.7"} for name in PROXY_HEADERS)):
            assert (await browser.get("/", headers=headers)).status_code == 401, headers
            assert (await browser.post("/sign-out", data={"csrf": csrf}, headers=headers)).status_code == 403
    async with client(page, token=None) as second:
        assert (await second.get(f"/sign-in?once={value}")).status_code == 200
        assert (await second.get("/")).status_code == 401
        fresh = screen.address()
        assert fresh != value
        assert (await second.get(f"/sign-in?once={fresh}")).status_code == 303
    async with client(page, "10.0.0.7", token=None) as outside:
        assert (await outside.get("/", headers=cookies)).status_code == 401
        assert "Beyond this machine" in (await outside.get("/")).text
    async with client(amends.dashboard(store), token=None) as other:
        assert (await other.get("/", headers=cookies)).status_code == 401
    assert not [
        each for each in caplog.records if each.name.startswith("amends") and "once=" in each.getMessage()
    ]


async def test_a_one_time_address_expires(store, screen, monkeypatch):
    """After ten minutes it opens nothing, and the next visit prints another one."""
    now = time.monotonic()
    monkeypatch.setattr(access.time, "monotonic", lambda: now)
    async with client(amends.dashboard(store), token=None) as browser:
        await browser.get("/")
        value = screen.address()
        now += 601
        assert (await browser.get(f"/sign-in?once={value}")).status_code == 200
        assert (await browser.get(f"/sign-in?once={screen.address()}")).status_code == 303


async def test_without_a_token_and_a_terminal_it_is_off(store, monkeypatch, caplog):
    """One log line says how to turn it on; no address exists."""
    file = io.StringIO()
    monkeypatch.setattr(access, "sys", SimpleNamespace(stderr=file))
    async with client(amends.dashboard(store), token=None) as browser:
        for _ in range(3):
            answer = await browser.get("/")
            assert answer.status_code == 401
            assert "The page is off" in answer.text
            assert "none is set" in answer.text
    assert file.getvalue() == ""
    (record,) = caplog.records
    assert (record.levelname, "AMENDS_PAGE_TOKEN" in record.getMessage()) == ("WARNING", True)
    closed = io.StringIO()
    closed.close()
    for broken in (closed, None):
        monkeypatch.setattr(access, "sys", SimpleNamespace(stderr=broken))
        assert access.terminal() is None


def test_what_counts_as_local():
    """The address of the socket, a local Host, and no header of a proxy."""

    def local(host, *headers):
        scope = {
            "type": "http",
            "client": None if host is None else (host, 1),
            "headers": [(b"host", b"localhost"), *headers],
        }
        return access.is_local(HTTPConnection(scope))

    assert local("127.0.0.1")
    assert local("::1")
    for host in (None, "", "10.0.0.7", "localhost.evil.example", "/run/socket"):
        assert not local(host), host
    for name in PROXY_HEADERS:
        assert not local("127.0.0.1", (name.lower().encode(), b"127.0.0.1")), name


async def test_a_gateway_prints_the_address_only_on_a_terminal(tmp_path):
    """With standard error in a file the page is off, and the file says how to turn it on."""
    port = free_port()
    env = {name: value for name, value in os.environ.items() if name != "AMENDS_PAGE_TOKEN"}
    async with Upstream(OK) as up:
        command = [sys.executable, "-m", "amends", "gateway", up.url, "--listen", f"127.0.0.1:{port}"]
        command += ["--record", f"sqlite:///{tmp_path}/failures.db"]
        ours, theirs = pty.openpty()
        process = subprocess.Popen(command, stderr=theirs, env=env)
        os.close(theirs)
        seen = b""
        try:
            async with asyncio.timeout(60):
                while not (found := re.search(rb"(http://\S+/sign-in\?once=[\w-]+)\r?\n", seen)):
                    seen += await asyncio.to_thread(os.read, ours, 4096)
                async with httpx.AsyncClient() as browser:
                    url = f"http://127.0.0.1:{port}/_amends/"
                    assert found[1].decode().startswith(f"{url}sign-in")
                    assert (await browser.get(url)).status_code == 401
                    assert (await browser.get(found[1].decode())).status_code == 303
                    assert (await browser.get(url)).status_code == 200
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 20)
            os.close(ours)
        log = tmp_path / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(command, stderr=file, env=env)
        try:
            async with asyncio.timeout(60):
                while b"the page is off" not in log.read_bytes():
                    await asyncio.sleep(0.05)
                async with httpx.AsyncClient() as browser:
                    assert (await browser.get(url)).status_code == 401
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 20)
    assert b"once=" not in log.read_bytes()
    assert b"failures live" not in log.read_bytes()
    assert app.TOKEN.encode() in log.read_bytes()
