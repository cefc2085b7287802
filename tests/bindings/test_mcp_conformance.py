"""The conformance suite, bare and guarded (`make soak`). It needs the test server of the Python SDK's repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "mcp_conformance.py"


@pytest.mark.soak
@pytest.mark.skipif(
    "AMENDS_EVERYTHING_SERVER" not in os.environ,
    reason="AMENDS_EVERYTHING_SERVER=path of examples/servers/everything-server/…/server.py of the Python SDK",
)
def test_a_guarded_server_passes_what_it_passes_bare(tmp_path):
    """The script fails if a check passes bare and fails guarded."""
    server = os.environ["AMENDS_EVERYTHING_SERVER"]
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, "--server", server], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
