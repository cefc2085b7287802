"""The 429 of docs/architecture.md: the request uses every file that the page names."""

import asyncio
import re
import sys
from pathlib import Path

import httpx2
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from amends.bindings.httpx import AsyncTransport
from amends.bindings.starlette import install
from amends.errors import RateLimitedError
from amends.testing import FakeClock

ROOT = Path(__file__).parents[1]
# Classes and tables, which are read and not called.
NOT_CALLED = {"errors/__init__.py", "core/vocabularies/everyday.py"}


def named():
    """Return the files that the page names."""
    _, _, walk = (ROOT / "docs" / "architecture.md").read_text().partition("## A 429, file by file")
    return {name for name in re.findall(r"`([\w/]+\.py)`", walk) if not name.startswith("tests/")}


async def fetch(seen):
    """Send a request that is first answered with 429, and add the called files of amends to `seen`."""
    waits = iter([2])

    async def page(request):
        for wait in waits:
            raise RateLimitedError("Too many", retry_after=wait)
        return PlainTextResponse("ok")

    app = Starlette(routes=[Route("/", page)])
    install(app)
    source = str(ROOT / "src" / "amends")

    def note(frame, event, arg):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(source):
            seen.add(name.removeprefix(f"{source}/"))

    transport = AsyncTransport(httpx2.ASGITransport(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            return await client.get("/")
        finally:
            sys.setprofile(before)


def test_a_429_uses_every_file_that_the_page_names():
    """Every named file is called, except classes and tables."""
    seen = set()
    with FakeClock():
        assert asyncio.run(fetch(seen)).text == "ok"
    assert len(named()) > 15
    assert named() - NOT_CALLED <= seen
    assert all((ROOT / "src" / "amends" / name).exists() for name in NOT_CALLED)
