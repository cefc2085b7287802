"""A checkout of the TypeScript SDK in a temporary folder, built with npm; its example servers and clients run from there."""

import asyncio
import os
import shutil
import signal
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

from tests.arcp.typescript.agents import TOKEN
from tests.ports import free_port

SOURCE = "https://github.com/agentruntimecontrolprotocol/typescript-sdk"
PNPM = ["npx", "--yes", "pnpm@9.15.0"]


def checkout(folder):
    """Clone and build the SDK. ARCP_TYPESCRIPT_SDK may name a repository to clone, or a folder that is built already."""
    source = os.environ.get("ARCP_TYPESCRIPT_SDK", SOURCE)
    if (Path(source) / "node_modules").is_dir():
        return source
    assert shutil.which("npx"), "npm is needed: apt-get install npm"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", source, folder], check=True, timeout=300)
    install = [*PNPM, "install", "--frozen-lockfile", "--config.engine-strict=false"]
    for command in (install, [*PNPM, "run", "build"]):
        subprocess.run(command, cwd=folder, check=True, timeout=900)
    return folder


async def _start(sdk, script, env):
    return await asyncio.create_subprocess_exec(
        *("node", "--import", "tsx", f"examples/{script}"),
        cwd=sdk,
        env={**os.environ, "ARCP_DEMO_TOKEN": TOKEN, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )


def _kill(child):
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)


async def run_client(sdk, example, url, within=60):
    """Run an example client; returns its exit code, or None if it did not end, and its output."""
    child = await _start(sdk, f"{example}/client.ts", {"ARCP_DEMO_URL": url})
    try:
        output, _ = await asyncio.wait_for(child.communicate(), within)
    except TimeoutError:
        return None, ""
    finally:
        _kill(child)
    return child.returncode, output.decode()


@asynccontextmanager
async def example_server(sdk, example):
    """Run an example server; yields its URL."""
    port = free_port()
    child = await _start(sdk, f"{example}/server.ts", {"ARCP_DEMO_PORT": str(port)})
    try:
        while line := await asyncio.wait_for(child.stdout.readline(), 60):
            if b"listening" in line:
                break
        assert line, "the server did not start"
        yield f"ws://127.0.0.1:{port}/arcp"
    finally:
        _kill(child)
        await child.wait()
