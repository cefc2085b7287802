"""Completion: made from the parsers, tried in the shells that are here."""

import shutil
import subprocess
import sys

import pytest

from amends.commands.console import COMMANDS

AMENDS = [sys.executable, "-m", "amends"]


def script(shell):
    done = subprocess.run([*AMENDS, "completion", shell], capture_output=True, text=True, check=True)
    return done.stdout


def completed(*words):
    """What bash offers for a line, by calling the function as it does."""
    typed = " ".join(f"'{word}'" for word in ("amends", *words))
    call = f"{script('bash')}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}; _amends; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_commands_and_flags():
    """At the start every command; after one, its flags."""
    assert set(COMMANDS) <= completed("")
    assert completed("dec") == {"decode"}
    assert {"--via", "--jsonl"} <= completed("decode", "--")


def test_values_of_a_flag_and_commands_below_commands():
    """Behind a flag its values; below a command its own commands."""
    assert {"mcp", "a2a", "http"} <= completed("decode", "--via", "")
    assert completed("decode", "--via", "mc") == {"mcp"}
    assert {"info", "check", "copy"} <= completed("store", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_it(shell):
    """Each script is read without a complaint by its shell, where that is installed, and names every command."""
    text = script(shell)
    assert all(command in text for command in COMMANDS)
    if path := shutil.which(shell):
        done = subprocess.run([path, "-n"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
