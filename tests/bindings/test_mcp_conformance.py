"""The MCP conformance suite and the Inspector, bare and with amends (`make soak`). npm installs them into a temporary folder."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "mcp_conformance.py"


@pytest.mark.soak
def test_what_passes_bare_passes_with_amends(tmp_path):
    """A server and a client. The script fails if a check passes bare and fails with amends."""
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
