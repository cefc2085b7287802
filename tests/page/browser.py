"""A headless Chromium, driven over the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
import tempfile
from pathlib import Path

from websockets.asyncio.client import connect

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
    ),
    *("--no-default-browser-check", "--remote-debugging-port=0"),
)
GUARD = 60


class Browser:
    """One page of the browser."""

    def __init__(self, socket):
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers = {}
        self._session = None
        self.events = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self):
        async for text in self._socket:
            message = json.loads(text)
            if "id" in message:
                self._answers.pop(message["id"]).set_result(message)
            else:
                self.events.append(message)

    async def send(self, method, **params):
        """Send a command and return its result."""
        id = next(self._ids)
        answer = self._answers[id] = asyncio.get_running_loop().create_future()
        message = {"id": id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send(json.dumps(message))
        async with asyncio.timeout(GUARD):
            found = await answer
        assert "error" not in found, (method, found)
        return found["result"]

    async def open_tab(self):
        """Open an empty page."""
        target = await self.send("Target.createTarget", url="about:blank")
        attached = await self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.send(f"{domain}.enable")

    async def go(self, url, *, lands_at=None):
        """Open an address and wait until it is loaded, or the one that it redirects to."""
        await self.send("Page.navigate", url=url)
        await self.until(
            f"document.readyState === 'complete' && location.href === {json.dumps(lands_at or url)}"
        )

    async def run(self, expression):
        """Return the value of an expression."""
        found = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression):
        """Wait until an expression is true."""
        async with asyncio.timeout(GUARD):
            while True:
                with contextlib.suppress(AssertionError):  # the page is just being replaced
                    if await self.run(expression):
                        return
                await asyncio.sleep(0.02)

    async def size(self, width, height=900):
        """Set the size of the window."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    async def colours(self, scheme):
        """Prefer light or dark."""
        await self.send(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    async def scripts(self, *, on):
        """Allow or forbid scripts."""
        await self.send("Emulation.setScriptExecutionDisabled", value=not on)

    async def key(self, name):
        """Press a key."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(name)
        press = {"key": name, "windowsVirtualKeyCode": codes[name]} | ({"text": text} if text else {})
        await self.send("Input.dispatchKeyEvent", type="keyDown", **press)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **press)

    async def screenshot(self, path):
        """Write the visible part as PNG."""
        found = await self.send("Page.captureScreenshot", format="png")
        await asyncio.to_thread(Path(path).write_bytes, base64.b64decode(found["data"]))

    def requested(self):
        """Return the addresses that were requested."""
        return [
            each["params"]["request"]["url"]
            for each in self.events
            if each["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """Return exceptions and errors of the console; a refused style or script is one."""
        return [
            each["params"]
            for each in self.events
            if each["method"] == "Runtime.exceptionThrown"
            or (each["method"] == "Log.entryAdded" and each["params"]["entry"]["level"] == "error")
        ]


def executable():
    """Return the browser's path, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.asynccontextmanager
async def browser():
    """Run a browser with an empty profile, and yield its only page."""
    assert executable() is not None, "there is no Chromium: make page installs it"
    with tempfile.TemporaryDirectory(prefix="amends-page-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            *(executable(), *FLAGS, f"--user-data-dir={profile}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = Path(profile) / "DevToolsActivePort"
            async with asyncio.timeout(GUARD):
                while not (port.exists() and port.read_text().count("\n")):
                    await asyncio.sleep(0.02)
            number, path = port.read_text().split("\n")[:2]
            async with connect(f"ws://127.0.0.1:{number}{path}", max_size=None) as socket:
                found = Browser(socket)
                await found.open_tab()
                yield found
                with contextlib.suppress(Exception):
                    await found.send("Browser.close")
        finally:
            if process.returncode is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(5):
                        await process.wait()
                if process.returncode is None:
                    process.kill()
                    await process.wait()
