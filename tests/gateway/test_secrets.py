"""Seeded secrets pass through a gateway that runs as a process; they appear in no log, record or page."""

import asyncio
import re
import subprocess

import pytest

from tests.commands.test_decode import AMENDS
from tests.gateway.peers import Upstream, answer, free_port, get, raw

SECRETS = {
    "authorization": b"sk-live-4eC39HqLyjWDarjtT1zdp7dc",
    "cookie": b"cookieQ7x2Z9",
    "header": b"headerV4k8W1",
    "query": b"queryM3n6B5",
    "path": b"aZ3kQ9xT7pLm2VbN8sRd4WcY",
    "argument": b"argumentP0o9I8",
    "database": b"databaseU7y6T5",
    "token": b"tokenR4e3W2ofTheseTests",
}
ECHO = (
    b'{"error":{"message":"Invalid key sk-live-4eC39HqLyjWDarjtT1zdp7dc at postgres://u:databaseU7y6T5@db.internal/x",'
    b'"type":"auth","api_key":"headerV4k8W1"}}'
)
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"password":"argumentP0o9I8"}}}'
CONFIG = """
listen = "127.0.0.1:{port}"
record = "sqlite:///{folder}/record.db"
token = "tokenR4e3W2ofTheseTests"
[upstream.shop]
url = "{url}"
policy = {{ attempts = 2, max_wait = 1 }}
[upstream.seats]
mcp = "{url}/mcp"
policy = {{ attempts = 2, max_wait = 1 }}
"""


class Running:
    """A gateway as a process, for `raw`."""

    def __init__(self, port):
        self.port = port


@pytest.mark.timeout(120)
async def test_secrets_appear_nowhere(tmp_path):
    """In headers, cookies, queries, paths and arguments; and in what an upstream echoes."""
    failed = answer(
        503, ECHO, b"content-type: application/json", b"set-cookie: session=cookieQ7x2Z9", b"retry-after: 0"
    )
    async with Upstream(failed) as up:
        gateway = Running(free_port())
        file = tmp_path / "gateway.toml"
        file.write_text(CONFIG.format(port=gateway.port, folder=tmp_path, url=up.url))
        with (tmp_path / "log").open("wb") as log:
            process = await asyncio.to_thread(
                subprocess.Popen, [*AMENDS, "gateway", str(file)], stdout=log, stderr=log
            )
        try:
            pages = await use(gateway)
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 30)
    assert len(up.requests) >= 6
    assert all(SECRETS["authorization"] in request for request in up.requests)
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("record.db*"))
    assert b"SERVICE_UNAVAILABLE" in stored
    assert b"SERVICE_UNAVAILABLE" in pages
    log = (tmp_path / "log").read_bytes()
    assert b"gave-up" in log
    for place in (log, stored, pages):
        assert [name for name, secret in SECRETS.items() if secret in place] == []


async def use(gateway):
    """Let calls fail, and return every page about them."""
    async with asyncio.timeout(60):
        while True:
            try:
                await raw(gateway, get("/_amends/health"))
                break
            except OSError:
                await asyncio.sleep(0.05)
    headers = (
        b"authorization: Bearer " + SECRETS["authorization"],
        b"cookie: session=" + SECRETS["cookie"],
        b"x-api-key: " + SECRETS["header"],
        b"content-type: application/json",
    )
    query, path = SECRETS["query"].decode(), SECRETS["path"].decode()
    for target in (f"/shop/a?api_key={query}", f"/shop/hooks/{path}", f"/seats?key={query}"):
        await raw(gateway, get(target, *headers))
        await raw(gateway, get(target, *headers, method="POST", body=CALL))
    for target in (f"/nowhere/{path}?token={query}", f"/shop/../x?token={query}"):
        await raw(gateway, get(target, *headers))
    local = b"GET %b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer tokenR4e3W2ofTheseTests\r\n\r\n"
    async with asyncio.timeout(30):
        while b"nowhere" not in (pages := await raw(gateway, local % b"/_amends/")):
            await asyncio.sleep(0.05)
    for link in set(re.findall(rb"/_amends/(?:trace|event)/[\w.]+", pages)):
        pages += await raw(gateway, local % link)
    return pages
