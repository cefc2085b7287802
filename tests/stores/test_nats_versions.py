"""Older releases of nats-py. Only with `make soak`: it installs packages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ("test_nats_secured.py", "test_deliveries.py", "test_nats.py", "test_queue.py")


@pytest.mark.soak
@pytest.mark.parametrize("version", ["2.12.0", "2.13.1", "2.14.0", "2.15.0"])
def test_every_supported_version_works(version, tmp_path):
    """The range of `nats-py` in pyproject.toml: logs, tables and queues, TLS, lost servers, late deliveries."""
    place = tmp_path / "older"
    install = ["-m", "pip", "install", "-q", "--no-deps", "--target", place, f"nats-py=={version}"]
    subprocess.run([sys.executable, *install], check=True)
    environment = os.environ | {"PYTHONPATH": str(place)}
    reported = subprocess.run(
        [sys.executable, "-c", "from nats.aio.client import __version__; print(__version__)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert reported.stdout.strip() == version
    arguments = ["-m", "pytest", "-q", "-m", "not soak", "-p", "no:cacheprovider", "-k", "nats or deliver"]
    arguments += [f"tests/stores/{name}" for name in TESTS]
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
