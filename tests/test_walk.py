"""The 429 of docs/architecture.md, sent for real: it goes through every file that the page names."""

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
# Classes and tables: looked into, never called.
STILL = {"errors/__init__.py", "core/vocabularies/everyday.py"}


def named():
    """The files of the walk, as the page names them."""
    _, _, walk = (ROOT / "docs" / "architecture.md").read_text().partition("## A 429, file by file")
    return {name for name in re.findall(r"`([\w/]+\.py)`", walk) if not name.startswith("tests/")}


async def fetched(seen):
    """One request that is answered 429 first; `seen` gets the files of ours that are called."""
    waits = iter([2])

    async def page(request):
        for wait in waits:
            raise RateLimitedError("Too many", retry_after=wait)
        return PlainTextResponse("well")

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


def test_a_429_goes_through_every_file_that_is_named():
    """The page's list of files matches the calls that are made."""
    seen = set()
    with FakeClock():
        assert asyncio.run(fetched(seen)).text == "well"
    assert len(named()) > 15
    assert named() - STILL <= seen
    assert all((ROOT / "src" / "amends" / name).exists() for name in STILL)
