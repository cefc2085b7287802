"""Runs the commands of docs/cluster.md, with only their host names, ports and paths replaced."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.machines import ROOT, TOKEN

PAGE = ROOT / "docs" / "cluster.md"


def commands(heading, program="amends"):
    """Return the command lines of a section that begin with a program's name."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    section = re.sub(r" \\\n +", " ", section)  # a command on two lines
    found = [line.strip() for line in section.splitlines() if line.startswith(f"{program} ")]
    assert found, f"{heading} has no command of {program}"
    return found


class Place:
    """A directory to run commands in, and the replacements for the page's names."""

    def __init__(self, directory, names):
        self.directory = Path(directory)
        self._names = names

    def arguments(self, command):
        """Return the arguments of a command line, with the names replaced."""
        for name, replacement in self._names.items():
            command = command.replace(name, replacement)
        arguments = shlex.split(command)
        return [sys.executable, "-m", *arguments] if arguments[0] == "amends" else arguments

    def start(self, command, *more):
        """Start a command that runs until it is stopped."""
        return subprocess.Popen(
            [*self.arguments(command), *more],
            cwd=self.directory,
            env=os.environ | {"AMENDS_RUNTIME_TOKEN": f"alice={TOKEN}", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command, *more):
        """Run a command to its end, and return the JSON document it printed."""
        process = self.start(command, *more)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (command, out, err)
        return json.loads(out)


def stop(process):
    """Stop a command with SIGTERM, and check that it exits normally."""
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
