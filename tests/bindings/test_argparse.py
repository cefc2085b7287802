"""argparse: all mistakes at once, and parsers left as they were found."""

import argparse
import json
from datetime import date
from enum import Enum
from ipaddress import ip_address
from uuid import UUID

import pytest

from amends import FaultError
from amends.bindings.argparse import declared, parse
from tests.bindings.commands import answer, sample


def test_help_and_version():
    """--help and --version succeed; as JSON the text is the data, also when a mistake follows."""
    code, envelope = answer("argparse", "--help")
    assert code == 0
    assert "--retries" in envelope["data"]["text"]
    assert sample("argparse", "--version").stdout == b"1.2.3\n"
    # The first mistake comes before --version, which must not answer in the second look.
    code, envelope = answer("argparse", "show", "--count", "x", "bob", "--help")
    assert (code, envelope["error"]["field"]) == (2, "--count")


def refused(parser, *argv):
    with pytest.raises(FaultError) as caught:
        parse(parser, argv)
    return caught.value.fault


def positive(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("it is not positive")
    return int(text)


def test_types_choices_and_groups():
    """Types of the author's own keep their words; several values are looked at one by one; the parser stays as it was."""
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("--size", type=positive)
    parser.add_argument("--level", type=int, choices=range(3), nargs=2)
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--a", action="store_true")
    either.add_argument("--b", action="store_true")
    fault = refused(parser, "--size", "-x", "--level", "7", "x")
    assert fault.code in {"USAGE_ERROR", "VALIDATION_ERROR"}
    fault = refused(parser, "--size", "no", "--level", "7", "x")
    assert [part.field for part in fault.errors] == ["--size", "--level", "--level"]
    assert "not positive" in fault.errors[0].message
    fault = refused(parser, "--a", "--b")
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
def test_what_is_wanted(options, given, steps):
    """The step says what would fit, as the argument's type and choices say it; types of somebody's own say nothing."""
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("order", **options)
    fault = refused(parser, given)
    assert (fault.code, fault.field, fault.suggestions) == ("VALIDATION_ERROR", "order", steps)


def test_where_to_look():
    """Where nothing is known of a value, the help of its own subcommand is named."""
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_subparsers().add_parser("cut").add_argument("--size", type=positive)
    assert refused(parser, "cut", "--size", "x").suggestions == (
        "Give another value for --size; see tool cut --help",
    )


def test_a_type_that_cannot_be_asked_twice():
    """What breaks in the second look does not hide the first mistake."""
    asked = []

    def once(text):
        asked.append(text)
        if len(asked) > 1:
            raise RuntimeError("not again")
        raise ValueError(text)

    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("--once", type=once)
    fault = refused(parser, "--once", "x")
    assert fault.code == "USAGE_ERROR"
    assert "--once" in fault.message


def test_a_subparser_without_a_name():
    """An unknown command is recognised however the subparsers are called."""
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_subparsers().add_parser("status")
    fault = refused(parser, "statsu")
    assert fault.suggestions == ("Did you mean tool status?",)


def test_flags_of_the_applications_own():
    """Only flags on the way the words lead count as declared."""
    parser = argparse.ArgumentParser(prog="tool")
    commands = parser.add_subparsers()
    commands.add_parser("a").add_argument("--output", choices=["json", "csv"])
    commands.add_parser("b")
    assert declared(parser, ["a"], "--output") == ("json", "csv")
    assert declared(parser, ["b"], "--output") is None
