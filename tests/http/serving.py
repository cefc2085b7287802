"""Servers on the loopback interface: uvicorn in a thread, any other in its own process."""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import uvicorn

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def serve(app, **options):
    """Serve an ASGI application with uvicorn in this process, and yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = {"log_config": None, "ws": "none", **options}
        server = uvicorn.Server(uvicorn.Config(app, **settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until = time.monotonic() + 20
        while not server.started and time.monotonic() < until:
            time.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


@contextmanager
def process(*command, port, env=None):
    """Run a Python command that listens on `port`, and yield its URL and process."""
    started = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_for(port, started)
        yield f"http://127.0.0.1:{port}", started
    finally:
        started.terminate()
        try:
            started.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.communicate()


def wait_for(port, started, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if started.poll() is not None:
            raise RuntimeError(started.stdout.read().decode())
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"no server listens on port {port}")
