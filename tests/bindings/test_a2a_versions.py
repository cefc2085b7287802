"""Other versions of a2a-sdk, each in a separate environment. Only with `make soak`: it installs packages."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("httpx", "httpx2", "hypothesis", "opentelemetry-sdk", "psycopg[binary]", "pydantic", "pytest>=9")
MORE = ("pytest-asyncio>=1.2", "pytest-timeout", "requests", "sse-starlette", "starlette", "uvicorn")


@pytest.mark.soak
@pytest.mark.parametrize("version", ["1.0.1", "1.3.0"])
def test_guard_and_client_on_other_versions_of_the_sdk(version, tmp_path):
    """The first 1.x version, which adcp requires, and a later one."""
    python = tmp_path / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    packages = [f"a2a-sdk=={version}", *NEEDED, *MORE]
    subprocess.run([python, "-m", "pip", "install", "-q", "-e", ROOT, *packages], check=True)
    tests = [
        "tests/bindings/test_a2a_guard.py",
        "tests/bindings/test_a2a_faults.py",
        "tests/bindings/a2a_client",
    ]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
