"""The commands docs/cluster.md tells people to type, run as they stand there but for names of machines and places."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.machines import ROOT, TOKEN

PAGE = ROOT / "docs" / "cluster.md"


def commands(heading, program="amends"):
    """The command lines of a section that begin with a program's name."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = [line.strip() for line in section.splitlines() if line.startswith(f"    {program} ")]
    assert found, f"{heading} has no command of {program}"
    return found


class Place:
    """A directory to stand in, and what the page's names stand for there."""

    def __init__(self, directory, names):
        self.directory = Path(directory)
        self._names = names

    def words(self, command):
        """What is typed, with the names of this place."""
        for name, meant in self._names.items():
            command = command.replace(name, meant)
        words = shlex.split(command)
        return [sys.executable, "-m", *words] if words[0] == "amends" else words

    def start(self, command, *more):
        """A command that stays."""
        return subprocess.Popen(
            [*self.words(command), *more],
            cwd=self.directory,
            env=os.environ | {"AMENDS_RUNTIME_TOKEN": f"alice={TOKEN}", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command, *more):
        """A command that ends; what it said."""
        process = self.start(command, *more)
        out, said = process.communicate(timeout=60)
        assert process.returncode == 0, (command, out, said)
        return json.loads(out)


def ended(process):
    """Stop a command that stays, as an operator does."""
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
