"""The built wheel in new environments: without extras, with each extra, and with `try`."""

import json
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A statement that needs exactly one extra.
EXTRAS = {
    "http": "from amends.bindings.httpx import Transport",
    "server": "from amends.bindings.starlette import install",
    "mcp": "from amends.bindings.mcp import guard",
    "fastmcp": "from amends.bindings.fastmcp import guard",
    "a2a": "from amends.bindings.a2a import Client, guard",
    "arcp": "from amends.arcp.transports.websocket import serve",
    "nats": "from amends.stores.nats.connection import NatsConnection; import nats",
    "otel": "from amends.bindings.otel import instrument; instrument()",
    "limits": "from amends.bindings.limits import Limited",
}
# A NATS store is opened by its address.
WITHOUT = EXTRAS | {
    "nats": "import asyncio; from amends.stores import open; asyncio.run(open('nats://127.0.0.1:4/x'))"
}

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built as for a release."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, folder], cwd=ROOT, capture_output=True, check=True)
    return next(folder.glob("*.whl"))


def environment(folder, wheel, extra=""):
    """Create an environment with the wheel, and return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([python, "-m", "pip", "install", "-q", what], capture_output=True, check=True)
    return python


def run(python, *arguments, **options):
    return subprocess.run(
        [python, *arguments], capture_output=True, text=True, check=False, timeout=900, **options
    )


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("bare") / "env", wheel)


def test_without_extras_the_command_works(bare):
    """With msgspec alone the command works, and `amends try` names the missing extra."""
    assert "amends" in run(bare, "-m", "amends", "--version").stdout
    listed = json.loads(run(bare, "-m", "pip", "list", "--format", "json").stdout)
    assert {each["name"] for each in listed} <= {"amends", "msgspec", "pip", "setuptools"}
    decoded = run(bare, "-m", "amends", "decode", input='{"code": "RATE_LIMITED", "retry_after": 5}')
    assert json.loads(decoded.stdout)["decision"]["delay"] == 5
    show = run(bare, "-m", "amends", "try", "--json")
    assert show.returncode == 0
    assert len(json.loads(show.stdout)) == 5
    assert "pip install 'amends[try]'" in show.stderr


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_names_the_pip_command(bare, extra):
    """Without its extra, a module raises ImportError with the pip command."""
    done = run(bare, "-c", WITHOUT[extra])
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(r"ImportError: .*pip install '?(amends\[|starlette|fast)", last), last


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_alone_is_enough(wheel, tmp_path, extra):
    """With its extra the module can be imported; it needs no other extra."""
    python = environment(tmp_path / "env", wheel, extra)
    done = run(python, "-c", EXTRAS[extra])
    assert done.returncode == 0, done.stderr


def test_the_demo_with_its_extra(wheel, tmp_path):
    """With `amends[try]`, `amends try` runs the whole demo."""
    python = environment(tmp_path / "env", wheel, "try")
    done = run(python, "-m", "amends", "try", "--json")
    assert done.returncode == 0, done.stderr
    ours = json.loads(done.stdout)["agents"][-1]
    assert (ours["handled"], ours["of"], ours["duplicates"]) == (18, 18, 0)
