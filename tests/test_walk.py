"""The 429 of docs/architecture.md: the files that it passes through."""

import asyncio
import re
import sys
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from amends.bindings.httpx import AsyncTransport
from amends.bindings.starlette import install
from amends.errors import RateLimitedError
from amends.testing import FakeClock

ROOT = Path(__file__).parents[1]
SOURCE = str(ROOT / "src" / "amends")
# Classes and tables, which are read and not called.
NOT_CALLED = {"errors/__init__.py", "core/vocabularies/everyday.py"}


@pytest.fixture(autouse=True)
def without_quart(monkeypatch):
    """Other tests load Quart, whose exceptions `Problems` then remembers."""
    monkeypatch.delitem(sys.modules, "quart", raising=False)


def page():
    """Return the section of the page about this request."""
    return (ROOT / "docs" / "architecture.md").read_text().partition("## A 429, file by file")[2]


def named():
    """Return the files that the page names."""
    return {name for name in re.findall(r"`([\w/]+\.py)`", page()) if not name.startswith("tests/")}


async def fetch(transport):
    """Send a request twice, the first time to load what is loaded once. Return the files that the second one called."""
    called, waits = [], []

    async def limited(request):
        if waits:
            raise RateLimitedError("Too many", retry_after=waits.pop())
        return PlainTextResponse("ok")

    app = Starlette(routes=[Route("/", limited)])
    install(app)

    def note(frame, event, arg):
        name = frame.f_code.co_filename
        # The clock of the test is no part of the exchange.
        if event == "call" and name.startswith(SOURCE) and not name.endswith("/amends/testing.py"):
            called.append(name.removeprefix(f"{SOURCE}/"))

    async with httpx2.AsyncClient(transport=transport(app), base_url="http://shop.example") as client:
        for profile in (sys.getprofile(), note):
            waits.append(2)
            before = sys.getprofile()
            sys.setprofile(profile)
            try:
                response = await client.get("/")
            finally:
                sys.setprofile(before)
    return response, called


def walked(transport):
    """Return the response and the files that the exchange passes through."""
    with FakeClock():
        response, called = asyncio.run(fetch(transport))
    return response, set(called)


def test_a_429_uses_every_file_that_the_page_names():
    """Every named file is called, except classes and tables."""
    response, files = walked(lambda app: AsyncTransport(httpx2.ASGITransport(app)))
    assert response.text == "ok"
    assert len(named()) > 15
    assert named() - NOT_CALLED <= files
    assert all((ROOT / "src" / "amends" / name).exists() for name in NOT_CALLED)


def test_the_server_answers_a_429_without_the_code_of_clients():
    """The server's half of the exchange uses neither recovery nor extraction, apart from what the caller has left."""
    response, files = walked(httpx2.ASGITransport)
    assert response.status_code == 429
    of_clients = {name for name in files if name.startswith(("recovery/", "carriers/", "vendors/"))}
    assert of_clients <= {"recovery/incoming.py"}
