"""Completion: made from the parsers; bash is asked what it offers, and so are zsh and fish where they are installed."""

import shutil
import subprocess
import sys
from functools import cache

import pytest

from amends.commands.completion import places
from amends.commands.console import COMMANDS, parser

AMENDS = [sys.executable, "-m", "amends"]
SHELLS = ("bash", "zsh", "fish")
HERE = [shell for shell in SHELLS if shutil.which(shell)]

ASK_BASH = """\
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _amends; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# What zsh's own completion would be asked to show; the parts that need a terminal are taken apart from it.
ASK_ZSH = """\
_describe() {{ local -a shown=("${{(@P)2}}"); print -l -- "${{shown[@]%%:*}}" }}
_files() {{ print files }}
_normal() {{ print -r -- "as for: ${{words[*]}}" }}
compset() {{ : }}
words=({words}); CURRENT=${{#words}}; _amends
"""


@cache
def script(shell):
    done = subprocess.run([*AMENDS, "completion", shell], capture_output=True, text=True, check=True)
    return done.stdout


def completed(shell, *words):
    """What a shell offers for the last word of a line."""
    quoted = " ".join(f"'{word}'" for word in ("amends", *words))
    if shell == "fish":
        code = f'{script(shell)}\ncomplete -C "{" ".join(("amends", *words))}"'
        command = ["fish", "--no-config", "-c", code]
    elif shell == "zsh":
        code = f"compdef() {{ : }}\n{script(shell)}\n{ASK_ZSH.format(words=quoted)}"
        command = ["zsh", "-f", "-c", code]
    else:
        command = ["bash", "--norc", "-c", script(shell) + ASK_BASH.format(words=quoted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    # fish says what each is for, behind a tab.
    return {line.partition("\t")[0] for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize("shell", HERE)
def test_commands_and_flags(shell):
    """At the start every command; after one, its flags and no others."""
    assert completed(shell, "") == set(COMMANDS)
    assert "decode" in completed(shell, "dec")
    flags = completed(shell, "decode", "--")
    assert {"--via", "--jsonl", "--output"} <= flags
    assert "--version" not in flags
    assert "--via" not in completed(shell, "schema", "decode", "--")


@pytest.mark.parametrize("shell", HERE)
def test_values_of_a_flag_and_commands_below_commands(shell):
    """Behind a flag its values, and behind those the flags again; below a command its own commands."""
    assert {"mcp", "a2a", "http"} <= completed(shell, "decode", "--via", "")
    assert "--jsonl" in completed(shell, "decode", "--via", "mcp", "--")
    assert completed(shell, "store", "") == {"info", "check", "copy"}
    assert "decode" in completed(shell, "--output", "json", "")
    assert "failed" in completed(shell, "tasks", "list", "--status", "")


@pytest.mark.parametrize("shell", HERE)
def test_files_where_nothing_is_known(shell, tmp_path, monkeypatch):
    """Where any file or text may stand, no flag is offered for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answer.json").touch()
    # bash completes files itself when there is nothing else.
    files = {"bash": set(), "zsh": {"files"}, "fish": {"answer.json"}}[shell]
    assert completed(shell, "decode", "") == files
    assert completed(shell, "runtime", "serve", "--tls-cert", "") == files


@pytest.mark.parametrize("shell", HERE)
def test_a_command_behind_two_dashes(shell):
    """It is completed as if it stood alone."""
    found = completed(shell, "run", "--read-only", "--", "chmo")
    assert found == ({"as for: chmo"} if shell == "zsh" else {"chmod"})
    behind = completed(shell, "run", "--", "chmod", "--")
    assert "--read-only" not in behind


def test_values_behind_an_equals_sign():
    """In bash it is a word of its own."""
    assert completed("bash", "decode", "--via", "=", "mc") == {"mcp"}
    assert "mcp" in completed("bash", "decode", "--via", "=")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_flag_and_value_is_in_it(shell):
    """Whatever shell it is for, and whether that is here or not."""
    text = script(shell)
    for place in places(parser()):
        assert place.path in text
        offered = [*place.words, *place.flags, *(each for values in place.values.values() for each in values)]
        assert all(word.lstrip("-") in text for word in offered)


@pytest.mark.parametrize("shell", HERE)
def test_the_shell_reads_it(shell):
    """Without a complaint."""
    done = subprocess.run([shell, "-n"], input=script(shell), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
