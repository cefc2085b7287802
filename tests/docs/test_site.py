"""The built documentation in a real browser: the search finds the right page first, and code fits its column."""

import base64
import functools
import json
import re
import threading
import zlib
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

import pytest

from tests.page.browser import browser

pytestmark = pytest.mark.docs

SITE = Path(__file__).resolve().parents[2] / "site"
FIRST = {
    "install": "/install/",
    "logging": "/logging/",
    "opentelemetry": "/opentelemetry/",
    "tenacity": "/coming-from-retry-libraries/",
    "retry": "/recovery/",
    "idempotency": "/http-idempotency/",
    "mcp": "/mcp/",
    "gateway": "/gateway/",
    "langchain": "/agent-frameworks/",
    "429": "/http-clients/",
    "mcp error": "/mcp/",
    "fastapi": "/http-fastapi/",
    "dead letter": "/stores/",
    "resume": "/arcp-client/",
    "timeout": "/recovery/",
    "exactly once": "/effects/",
    "proxy": "/gateway/",
    "circuit breaker": "/recovery/",
    "stripe": "/sdks/",
    "sqlite": "/stores/",
    "typer": "/cli-authors/",
    "secrets": "/security/",
}
# Two pages answer these: servers that limit, and clients that are limited; the SDK, and the table of vendors.
AMONG = {"rate limit": {"/http-more/", "/recovery/"}, "openai quota": {"/sdks/", "/vendors/"}}
TYPE = """
(() => {
  const field = document.querySelector("input[name=query]");
  document.querySelector("[data-md-toggle=search]").checked = true;
  field.focus();
  field.value = %s;
  field.dispatchEvent(new Event("input", {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
})()
"""
FOUND = 'document.querySelector(".md-search-result__list > li a")'
WIDE = """
[...document.querySelectorAll(".md-content pre > code")]
  .filter(each => each.scrollWidth > each.clientWidth + 1)
  .map(each => each.innerText.split("\\n").sort((a, b) => b.length - a.length)[0])
"""
TABLES = """
[...document.querySelectorAll(".md-typeset__scrollwrap")]
  .filter(each => each.scrollWidth > each.clientWidth + 1)
  .map(each => "table: " + each.innerText.slice(0, 60))
"""
UNWRAPPED = WIDE.replace(".md-content pre", ".md-content .highlight:not(.language-text) pre")


# The modules that the pages tell users to import from; those of bindings are listed in docs/api/.
PUBLIC = (
    *("amends", "amends.arcp", "amends.arcp.errors", "amends.arcp.runtime", "amends.audit", "amends.chain"),
    *("amends.effects", "amends.errors", "amends.process", "amends.recorder", "amends.recovery"),
    *("amends.stores", "amends.tasks", "amends.testing", "amends.tools", "amends.vectors"),
    *("amends.bindings.a2a", "amends.bindings.fastmcp", "amends.bindings.httpx", "amends.bindings.mcp"),
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without writing a log."""

    def log_message(self, *args):
        """Write nothing."""


@contextmanager
def served():
    """Serve the built pages on this machine, and return their address."""
    assert SITE.is_dir(), "there are no pages: make docs builds them"
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


async def test_the_search_finds_the_right_page_first():
    """A newcomer's words lead to the page about them."""
    with served() as address:
        async with browser() as page:
            await page.size(1400)
            await page.go(f"{address}/")
            first = {}
            for word in (*FIRST, *AMONG):
                # Without results in between, the next ones are known to be new.
                await page.run(TYPE % json.dumps("xyzzy"))
                await page.until(f"{FOUND} === null")
                await page.run(TYPE % json.dumps(word))
                await page.until(f"{FOUND} !== null")
                first[word] = await page.run(f"{FOUND}.pathname")
    assert {word: first[word] for word in FIRST} == FIRST
    assert {word: first[word] for word in AMONG if first[word] not in AMONG[word]} == {}


@pytest.mark.timeout(1200)
async def test_pages_fit_the_window():
    """Code and tables fit their column at 1,400 px and on a phone, and no page is wider than the window."""
    paths = sorted(
        f"/{path.parent.relative_to(SITE)}/".replace("/./", "/") for path in SITE.rglob("index.html")
    )
    assert len(paths) > 60
    wrong = {}
    with served() as address:
        async with browser() as page:
            for path in paths:
                await page.size(1400)
                await page.go(f"{address}{path}")
                lines = await page.run(WIDE) + await page.run(TABLES)
                if lines:
                    wrong[path] = lines
                for width in (1400, 390):
                    await page.size(width)
                    if await page.run("document.documentElement.scrollWidth > innerWidth"):
                        wrong[path, width] = "wider than the window"
                lines = await page.run(UNWRAPPED) + await page.run(TABLES)
                if lines:
                    wrong[path, "phone"] = lines
    assert wrong == {}


TOGGLE = "document.querySelector('form[data-md-component=palette] label:not([hidden])')"
SCHEME = "document.body.dataset.mdColorScheme"
CORNER = "(({x, y}) => ({x: x + 5, y: y + 5}))(document.querySelector('img[src*=recovery-success]').getBoundingClientRect())"


async def brightness(page):
    """Return the brightness of the drawing's background, 0 to 255."""
    place = await page.run(CORNER)
    shot = await page.send(
        "Page.captureScreenshot", format="png", clip={**place, "width": 1, "height": 1, "scale": 1}
    )
    picture, packed, at = base64.b64decode(shot["data"]), b"", 8
    while at < len(picture):  # a chunk has its length, its type, its data and a checksum
        length = int.from_bytes(picture[at : at + 4])
        if picture[at + 4 : at + 8] == b"IDAT":
            packed += picture[at + 8 : at + 8 + length]
        at += length + 12
    _filter, *colours = zlib.decompress(packed)
    return sum(colours[:3]) / 3


@pytest.mark.parametrize(("system", "chosen"), [("light", "slate"), ("dark", "default")])
async def test_drawings_follow_the_choice_of_the_reader(system, chosen):
    """A drawing has the colours of the page, and not of the system."""
    with served() as address:
        async with browser() as page:
            await page.colours(system)
            await page.size(1400)
            await page.go(f"{address}/recovery-results/")
            await page.until(f"{TOGGLE} !== null")
            while await page.run(SCHEME) != chosen:
                shown = await page.run(f"{TOGGLE}.htmlFor")
                await page.run(f"{TOGGLE}.click()")
                await page.until(f"{TOGGLE}.htmlFor !== '{shown}'")
            dark = await brightness(page) < 100
    assert dark == (chosen == "slate")


def test_the_reference_has_every_public_name():
    """Each name of a public module's `__all__`, from where it is defined or from where it is imported."""
    pages = [path.read_text() for path in (SITE / "api").rglob("index.html")]
    anchors = {anchor for page in pages for anchor in re.findall(r'id="(amends[\w.]*)"', page)}
    missing = []
    for module in map(import_module, PUBLIC):
        for name in module.__all__:
            defined = getattr(getattr(module, name), "__module__", "")
            # A page for a package lists what its modules define under the package's name.
            places = {module.__name__, *(defined.rsplit(".", count)[0] for count in range(3))}
            if name != "__version__" and not any(f"{place}.{name}" in anchors for place in places):
                missing.append(f"{module.__name__}.{name}")
    assert missing == []
