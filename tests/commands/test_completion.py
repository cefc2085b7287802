"""The completion scripts, tested with bash, and with zsh and fish if they are installed."""

import argparse
import os
import shutil
import subprocess
import sys
from functools import cache

import pytest

from amends.commands.completion import all_candidates
from amends.commands.console import COMMANDS, parser

AMENDS = [sys.executable, "-m", "amends"]
SHELLS = ("bash", "zsh", "fish")
HERE = [shell for shell in SHELLS if shutil.which(shell)]

ASK_BASH = """\
COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _amends; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# Replaces the functions of zsh's completion system that need a terminal by functions that print.
ASK_ZSH = """\
_describe() {{ local -a shown=("${{(@P)2}}"); print -l -- "${{shown[@]%%:*}}" }}
_files() {{ print files }}
_normal() {{ print -r -- "command: ${{words[*]}}" }}
compset() {{ : }}
words=({line}); CURRENT=${{#words}}; _amends
"""


@cache
def script(shell):
    done = subprocess.run([*AMENDS, "completion", shell], capture_output=True, text=True, check=True)
    return done.stdout


def completed(shell, *arguments):
    """Return what a shell offers for the last argument of a line."""
    quoted = " ".join(f"'{argument}'" for argument in ("amends", *arguments))
    if shell == "fish":
        code = f'{script(shell)}\ncomplete -C "{" ".join(("amends", *arguments))}"'
        command = ["fish", "--no-config", "-c", code]
    elif shell == "zsh":
        code = f"compdef() {{ : }}\n{script(shell)}\n{ASK_ZSH.format(line=quoted)}"
        command = ["zsh", "-f", "-c", code]
    else:
        command = ["bash", "--norc", "-c", script(shell) + ASK_BASH.format(line=quoted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    # fish prints the description after a tab.
    return {line.partition("\t")[0] for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize("shell", HERE)
def test_commands_and_flags(shell):
    """First all commands; after a command its flags and no others."""
    assert completed(shell, "") == set(COMMANDS)
    assert "decode" in completed(shell, "dec")
    flags = completed(shell, "decode", "--")
    assert {"--via", "--jsonl", "--output"} <= flags
    assert "--version" not in flags
    assert "--via" not in completed(shell, "schema", "decode", "--")


@pytest.mark.parametrize("shell", HERE)
def test_values_of_a_flag_and_subcommands(shell):
    """After a flag its values, then flags again; after a command its subcommands."""
    assert {"mcp", "a2a", "http"} <= completed(shell, "decode", "--via", "")
    assert "--jsonl" in completed(shell, "decode", "--via", "mcp", "--")
    assert completed(shell, "store", "") == {"info", "check", "copy", "sql"}
    assert "decode" in completed(shell, "--output", "json", "")
    assert "failed" in completed(shell, "tasks", "list", "--status", "")


@pytest.mark.parametrize("shell", HERE)
def test_the_kinds_that_only_scripts_ask_for_are_not_offered(shell):
    """`amends completion` offers the shells; the errors and the help do the same."""
    assert completed(shell, "completion", "") == set(SHELLS)


def test_an_unknown_shell_is_refused_with_the_shells():
    """The message lists what a user can type."""
    done = subprocess.run([*AMENDS, "completion", "tcsh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Use one of bash, zsh, fish" in done.stdout
    assert "codes" not in done.stdout


def test_descriptions_are_those_of_the_help():
    """A flag without a line in the help has none."""
    assert "complete -c amends -n '__amends_at amends' -l json\n" in script("fish")
    assert argparse.SUPPRESS not in script("fish") + script("zsh")


@pytest.mark.parametrize("shell", HERE)
def test_files_without_candidates(shell, tmp_path, monkeypatch):
    """Without candidates file names are completed, not flags."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answer.json").touch()
    # bash completes files itself if there are no candidates.
    files = {"bash": set(), "zsh": {"files"}, "fish": {"answer.json"}}[shell]
    assert completed(shell, "decode", "") == files
    assert completed(shell, "runtime", "serve", "--tls-cert", "") == files


@pytest.mark.parametrize("shell", HERE)
def test_a_command_after_two_dashes(shell):
    """It is completed like a command of its own."""
    found = completed(shell, "run", "--read-only", "--", "chmo")
    assert found == ({"command: chmo"} if shell == "zsh" else {"chmod"})
    behind = completed(shell, "run", "--", "chmod", "--")
    assert "--read-only" not in behind


def test_values_after_an_equals_sign():
    """bash passes the equals sign as a separate part."""
    assert completed("bash", "decode", "--via", "=", "mc") == {"mcp"}
    assert "mcp" in completed("bash", "decode", "--via", "=")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_candidate_is_in_the_script(shell):
    """For every shell, installed or not."""
    text = script(shell)
    for candidates in all_candidates(parser()):
        assert candidates.path in text
        values = (value for each in candidates.values.values() for value in each)
        offered = [*candidates.arguments, *candidates.flags, *values]
        assert all(each.lstrip("-") in text for each in offered)


@pytest.mark.parametrize("shell", HERE)
def test_the_shell_parses_the_script(shell):
    """The shell reports no syntax error."""
    done = subprocess.run([shell, "-n"], input=script(shell), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", HERE)
def test_codes_and_vendor_words(shell, monkeypatch, tmp_path):
    """`amends explain` completes codes and vendor:word; the script asks the command for them."""
    (tmp_path / "amends").write_text(f'#!/bin/sh\nexec {sys.executable} -m amends "$@"\n')
    (tmp_path / "amends").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = completed(shell, "explain", "RATE")
    assert "RATE_LIMITED" in found
    if shell == "bash":
        assert completed(shell, "explain", "openai", ":", "insufficient_q") == {"insufficient_quota"}


def test_jobs_that_were_submitted(monkeypatch, tmp_path):
    """`amends completion jobs` lists the saved sessions, the newest first."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "amends" / "runtime"
    folder.mkdir(parents=True)
    for age, job in enumerate(("job_new", "job_old")):
        (folder / f"{job}.json").touch()
        os.utime(folder / f"{job}.json", (1000 - age, 1000 - age))
    assert script.__wrapped__("jobs").split() == ["job_new", "job_old"]
    assert "completion jobs" in script("bash")
