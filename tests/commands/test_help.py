"""Every help fits a small terminal: 24 lines with the next prompt, 80 columns; and says what each thing is for."""

from __future__ import annotations

import argparse
import os

import pytest

from amends.bindings.argparse import parsers
from amends.commands.console import parser
from tests.commands.test_decode import amends

EVERY = list(parsers(parser()))


def test_the_help_fits_a_screen_of_24_lines_with_the_next_prompt():
    """As it is printed, not only as it is made."""
    env = {**os.environ, "COLUMNS": "80"}
    lines = amends("--help", env=env).stdout.decode().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", EVERY, ids=lambda each: each.prog)
def test_so_does_every_commands(command, monkeypatch):
    """Commands below commands too."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = command.format_help().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", EVERY, ids=lambda each: each.prog)
def test_each_command_and_flag_says_what_it_is(command):
    """The description is a sentence, and nothing is listed without a word on it."""
    assert command.description
    assert command.description[0].isupper()
    assert command.description.endswith((".", "source"))  # the last word of a line to be typed
    for action in command._actions:
        if not isinstance(action, argparse._SubParsersAction):
            assert action.help
