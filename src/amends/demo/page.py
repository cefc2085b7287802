"""`amends try --page`: the page of the demo, on loopback, with a record that is deleted at the end."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Iterator

from amends.recorder.locations import ENVIRONMENT

__all__ = ["demo_page"]


@contextlib.contextmanager
def demo_page() -> Iterator[str]:
    """Record the failures of this process and of those that it starts, and yield the address of their page."""
    from amends.recorder import record

    with tempfile.TemporaryDirectory(prefix="amends-try-") as directory:
        url = f"sqlite:///{directory}/failures.db"
        before = os.environ.get(ENVIRONMENT)
        os.environ[ENVIRONMENT] = url
        try:
            with _serving(url) as address, record(url):
                yield address
        finally:
            os.environ.pop(ENVIRONMENT)
            if before is not None:
                os.environ[ENVIRONMENT] = before


@contextlib.contextmanager
def _serving(url: str) -> Iterator[str]:
    """Serve the page on a thread: there, uvicorn leaves Ctrl-C to the command."""
    import uvicorn

    from amends.page import Page

    listening = socket.create_server(("127.0.0.1", 0))
    page = Page(url)
    config = uvicorn.Config(page, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listening]}, name="amends-page", daemon=True
    )
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    page.announce(address)
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
