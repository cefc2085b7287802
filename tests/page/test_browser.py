"""The page in a real Chromium: `make page`."""

import asyncio
import contextlib
import json

import pytest

import amends
from amends import Fault
from amends.core import recording
from amends.demo.host import serving
from amends.page import Page
from tests.page.browser import browser
from tests.page.test_app import TRACE, FakeGateway, fill

pytestmark = pytest.mark.page

LIVE = "document.getElementById('live-state')?.textContent === 'Live'"
WIDE = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@contextlib.asynccontextmanager
async def shown(tmp_path, **options):
    """Serve the page with some failures, and yield a browser, the page's address and the store."""
    url = f"sqlite:///{tmp_path}/failures.db"
    fill(url)
    page = Page(url, upstreams=FakeGateway(), **options)
    async with browser() as tab, serving(page) as port:
        address = f"http://127.0.0.1:{port}/"
        await tab.go(f"{address}sign-in?once={page._access.new_address()}", lands_at=address)
        yield tab, address, url
        await tab.send("Page.navigate", url="about:blank")
    await page.close()


async def test_live_pause_and_keyboard(tmp_path):
    """A new failure appears without a reload, focus stays, Pause holds it back; a row opens with Tab and Enter."""
    async with shown(tmp_path) as (tab, address, url):
        await tab.size(1280)
        await tab.go(address)
        await tab.until(LIVE)
        await tab.run("window.marker = 1")
        await tab.run("document.querySelector('#failures a').focus()")
        focused = await tab.run("document.activeElement.getAttribute('href')")
        record(url, "POST /fresh")
        await tab.until("document.getElementById('failures').textContent.includes('POST /fresh')")
        assert await tab.run("window.marker") == 1
        assert await tab.run("document.activeElement.getAttribute('href')") == focused
        await tab.run("document.getElementById('pause').focus()")
        await tab.key("Enter")
        await tab.until("document.getElementById('live-state').textContent === 'Paused'")
        record(url, "POST /later")
        await asyncio.sleep(0.1)
        assert not await tab.run("document.getElementById('failures').textContent.includes('POST /later')")
        await tab.key("Enter")
        await tab.until("document.getElementById('failures').textContent.includes('POST /later')")
        await tab.run(f"document.querySelector('a[href$=\"{TRACE}\"]').focus()")
        await tab.key("Enter")
        await tab.until(f"location.pathname.endsWith({json.dumps(TRACE)})")
        await tab.until("document.querySelectorAll('.steps li').length === 2")
        await tab.go(address)
        await tab.key("Tab")
        assert await tab.run("document.activeElement.className") == "skip"
        check_requests(tab, address)


async def test_sizes_colours_and_hostile_text(tmp_path):
    """Nothing is wider than 390 px; dark mode changes the colours; text of a sender runs no script."""
    async with shown(tmp_path) as (tab, address, _):
        backgrounds = set()
        for width in (390, 1280):
            await tab.size(width)
            for scheme in ("light", "dark"):
                await tab.colours(scheme)
                for path in ("", f"trace/{TRACE}", "sign-in"):
                    await tab.go(address + path)
                    assert await tab.run(WIDE), (width, path)
                backgrounds.add(await tab.run("getComputedStyle(document.body).backgroundColor"))
        assert len(backgrounds) == 2
        await tab.go(address)
        href = await tab.run("document.querySelector('a[href*=\"event/\"]').href")
        await tab.go(href)
        assert "<script>" in await tab.run("document.body.textContent")
        check_requests(tab, address)


async def test_a_long_code_leaves_room_for_the_other_columns(tmp_path):
    """The table is not wider than the page, and the call can be read."""
    async with shown(tmp_path) as (tab, address, url):
        with amends.record(url):
            recording.emit("call", "gave-up", Fault(code="X" * 200), name="POST /orders/confirm")
        await tab.size(1280)
        await tab.go(address)
        assert await tab.run("document.querySelector('.failures code').textContent.length") == 200
        assert await tab.run("document.querySelector('.failures .call').clientWidth > 150")
        scrolled = (
            "[...document.querySelectorAll('.scroll')].every(each => each.scrollWidth <= each.clientWidth)"
        )
        assert await tab.run(scrolled)


async def test_without_scripts_it_is_a_static_view(tmp_path):
    """All parts are there, a form filters, and links open; no live stream is asked for."""
    async with shown(tmp_path) as (tab, address, _):
        await tab.go("about:blank")
        await tab.scripts(on=False)
        tab.events.clear()
        await tab.go(address)
        text = await tab.run("document.body.innerText")
        for expected in ("RATE_LIMITED", "recovered after 2 tries", "shut until"):
            assert expected in text, expected
        assert await tab.run("document.getElementById('pause').hidden")
        await tab.run("document.querySelector('[name=code]').value = 'CONFLICT'")
        await tab.run("document.querySelector('.filters').submit()")
        await tab.until("location.search.includes('code=CONFLICT')")
        await tab.until("!document.getElementById('failures').innerText.includes('GET /prices')")
        await tab.go(f"{address}trace/{TRACE}")
        assert "how long to wait" in await tab.run("document.body.innerText")
        assert not [each for each in tab.requested() if "live" in each]
        check_requests(tab, address)


def record(url, name):
    """Record a failure, as another process would."""
    with amends.record(url):
        recording.emit("http server", "sent", Fault(code="CONFLICT"), name=name)


def check_requests(tab, address):
    """Fail if another host was asked for something, or the browser complained."""
    foreign = [each for each in tab.requested() if not each.startswith((address, "about:", "data:"))]
    assert not foreign
    assert not tab.complaints()
