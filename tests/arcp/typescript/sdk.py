"""A checkout of the TypeScript SDK in a temporary folder, built with npm; its examples and our programs run from there."""

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
PROGRAMS = Path(__file__).parent


def checkout(folder):
    """Clone and build the SDK. ARCP_TYPESCRIPT_SDK may name a repository to clone, or a folder that is built already."""
    source = os.environ.get("ARCP_TYPESCRIPT_SDK", SOURCE)
    if (Path(source) / "node_modules").is_dir():
        folder = Path(source)
    else:
        assert shutil.which("npx"), "npm is needed: apt-get install npm"
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", source, folder], check=True, timeout=300)
        install = [*PNPM, "install", "--frozen-lockfile", "--config.engine-strict=false"]
        for command in (install, [*PNPM, "run", "build"]):
            subprocess.run(command, cwd=folder, check=True, timeout=900)
    # The packages of the SDK are found from there.
    for program in PROGRAMS.glob("*.mjs"):
        shutil.copy(program, folder / "packages" / "sdk")
    return folder


async def _start(command, folder, env=None):
    return await asyncio.create_subprocess_exec(
        *("node", *command),
        cwd=folder,
        env={**os.environ, "ARCP_DEMO_TOKEN": TOKEN, **(env or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )


def _kill(child):
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)


async def _finish(child, given=b"", within=60):
    """Return the exit code, or None if it did not end, and the output."""
    try:
        output, _ = await asyncio.wait_for(child.communicate(given), within)
    except TimeoutError:
        return None, ""
    finally:
        _kill(child)
    return child.returncode, output.decode()


async def run_client(sdk, example, url):
    """Run an example client; returns its exit code and its output."""
    command = ("--import", "tsx", f"examples/{example}/client.ts")
    return await _finish(await _start(command, sdk, {"ARCP_DEMO_URL": url}))


async def client_lines(sdk, url, *features):
    """Run client.mjs against a runtime, with the SDK's list of features or another one; returns its lines."""
    child = await _start(("client.mjs", *features), Path(sdk) / "packages" / "sdk", {"ARCP_DEMO_URL": url})
    code, output = await _finish(child, within=120)
    assert code == 0, output
    return output.splitlines()


async def invalid_frames(sdk, frames, *unknown):
    """Return what the SDK's schemas say about frames (as text) that do not fit, one line each; `unknown` types have none."""
    child = await _start(("check_frames.mjs", *unknown), Path(sdk) / "packages" / "sdk")
    code, output = await _finish(child, "\n".join(frames).encode())
    assert code == 0, output
    return output.splitlines()


@asynccontextmanager
async def sdk_runtime(sdk):
    """Run server.mjs, a runtime of the SDK; yields its URL."""
    port = free_port()
    child = await _start(("server.mjs",), Path(sdk) / "packages" / "sdk", {"ARCP_DEMO_PORT": str(port)})
    try:
        while line := await asyncio.wait_for(child.stdout.readline(), 60):
            if b"listening" in line:
                break
        assert line, "the server did not start"
        reading = asyncio.ensure_future(child.stdout.read())
        yield f"ws://127.0.0.1:{port}/arcp"
    finally:
        _kill(child)
        await child.wait()
    await reading
