"""Tests of the argparse binding: all mistakes at once, and parsers that are restored."""

import argparse
import json
from datetime import date
from enum import Enum
from ipaddress import ip_address
from uuid import UUID

import pytest

from amends import FaultError
from amends.bindings.argparse import parse
from amends.bindings.argparse_parsers import declared_values
from tests.bindings.commands import run_json, run_sample


def test_help_and_version():
    """--help and --version succeed; with JSON output their text is the data. A mistake before them is reported."""
    code, envelope = run_json("argparse", "--help")
    assert code == 0
    assert "--retries" in envelope["data"]["text"]
    assert run_sample("argparse", "--version").stdout == b"1.2.3\n"
    # The second pass reaches --help after the mistake and must not print it.
    code, envelope = run_json("argparse", "show", "--count", "x", "bob", "--help")
    assert (code, envelope["error"]["field"]) == (2, "--count")


def fault_of(parser, *argv):
    with pytest.raises(FaultError) as caught:
        parse(parser, argv)
    return caught.value.fault


def positive(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("it is not positive")
    return int(text)


def test_types_choices_and_groups():
    """The message of an ArgumentTypeError is kept, several values are checked one by one, and the parser is restored."""
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("--size", type=positive)
    parser.add_argument("--level", type=int, choices=range(3), nargs=2)
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--a", action="store_true")
    either.add_argument("--b", action="store_true")
    fault = fault_of(parser, "--size", "-x", "--level", "7", "x")
    assert fault.code in {"USAGE_ERROR", "VALIDATION_ERROR"}
    fault = fault_of(parser, "--size", "no", "--level", "7", "x")
    assert [part.field for part in fault.errors] == ["--size", "--level", "--level"]
    assert "not positive" in fault.errors[0].message
    fault = fault_of(parser, "--a", "--b")
    assert (fault.code, fault.field) == ("USAGE_ERROR", "--b")
    assert parse(parser, ["--size", "3", "--level", "1", "2"]).level == [1, 2]
    assert "error" not in vars(parser)
    assert parser.exit_on_error is True


class Color(Enum):
    RED = "red"
    GREEN = "green"


@pytest.mark.parametrize(
    ("options", "given", "steps"),
    [
        ({"type": int}, "seven", ("Give a whole number for order",)),
        ({"type": float}, "x", ("Give a number for order",)),
        ({"type": UUID}, "x", ("Give a UUID for order",)),
        ({"type": date.fromisoformat}, "x", ("Give a date such as 2026-12-31 for order",)),
        ({"type": json.loads}, "{", ("Give a JSON value for order",)),
        ({"type": ip_address}, "x", ("Give an IP address for order",)),
        ({"type": int, "choices": [1, 2]}, "seven", ("Use one of 1, 2",)),
        ({"type": int, "choices": [1, 2]}, "3", ("Use one of 1, 2",)),
        ({"type": Color}, "gren", ("Did you mean green?", "Use one of red, green")),
        ({"type": positive}, "x", ("Give another value for order; see tool --help",)),
    ],
)
def test_suggestions_describe_the_type(options, given, steps):
    """The suggestion is derived from the argument's type and choices; unknown types have no description."""
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("order", **options)
    fault = fault_of(parser, given)
    assert (fault.code, fault.field, fault.suggestions) == ("VALIDATION_ERROR", "order", steps)


def test_the_help_of_the_subcommand_is_named():
    """For a value without a description the suggestion names the subcommand's help."""
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_subparsers().add_parser("cut").add_argument("--size", type=positive)
    assert fault_of(parser, "cut", "--size", "x").suggestions == (
        "Give another value for --size; see tool cut --help",
    )


def test_a_type_that_fails_on_the_second_pass():
    """If a type raises on the second pass, the first mistake is still reported."""
    calls = []

    def once(text):
        calls.append(text)
        if len(calls) > 1:
            raise RuntimeError("not again")
        raise ValueError(text)

    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("--once", type=once)
    fault = fault_of(parser, "--once", "x")
    assert fault.code == "USAGE_ERROR"
    assert "--once" in fault.message


def test_subparsers_without_dest():
    """An unknown command is recognised if the subparsers have no dest."""
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_subparsers().add_parser("status")
    fault = fault_of(parser, "statsu")
    assert fault.suggestions == ("Did you mean tool status?",)


def test_declared_values():
    """Only flags of the selected subparsers count as declared."""
    parser = argparse.ArgumentParser(prog="tool")
    commands = parser.add_subparsers()
    commands.add_parser("a").add_argument("--output", choices=["json", "csv"])
    commands.add_parser("b")
    assert declared_values(parser, ["a"], "--output") == ("json", "csv")
    assert declared_values(parser, ["b"], "--output") is None
