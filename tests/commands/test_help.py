"""Every help text fits a terminal of 24 lines and 80 columns, and describes every argument."""

from __future__ import annotations

import argparse
import os

import pytest

from amends.bindings.argparse_parsers import all_parsers
from amends.commands.console import parser
from tests.commands.test_decode import amends

EVERY = list(all_parsers(parser()))


def test_the_help_fits_a_terminal():
    """The printed help has at most 23 lines, so that the next prompt fits too."""
    env = {**os.environ, "COLUMNS": "80"}
    lines = amends("--help", env=env).stdout.decode().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", EVERY, ids=lambda each: each.prog)
def test_the_help_of_every_command_fits_a_terminal(command, monkeypatch):
    """Subcommands too."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = command.format_help().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", EVERY, ids=lambda each: each.prog)
def test_every_command_and_argument_is_described(command):
    """The description is a sentence, and every argument has a help text."""
    assert command.description
    assert command.description[0].isupper()
    assert command.description.endswith((".", "source"))  # fish's line ends with a command
    for action in command._actions:
        if not isinstance(action, argparse._SubParsersAction):
            assert action.help
