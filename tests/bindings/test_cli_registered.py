"""The option `errors={E: "CODE"}` of the command-line bindings, and `amends.register` in commands."""

import argparse

import click
import pytest
import typer

import amends
from amends.bindings import argparse as argparse_binding
from amends.bindings import click as click_binding
from amends.foreign import registry
from tests.http.seats import SeatTaken

INTERNAL, NOT_FOUND, CONFLICT = 1, 4, 6
LEAK = "row 3 of s3cr3t hall"


class RowTaken(SeatTaken):
    pass


class NoSuchSeat(click.ClickException):
    """An application's own subclass of a framework's exception."""


@pytest.fixture(autouse=True)
def forget():
    """Classes registered in a test are forgotten after it."""
    before = dict(registry._REGISTERED)
    yield
    registry._REGISTERED.clear()
    registry._REGISTERED.update(before)


def run(framework, body, capfd, *arguments, **options):
    """Run `body` as a command; return its exit code and what it wrote to stderr."""
    body = click_binding.operation(read_only=True)(body)
    with pytest.raises(SystemExit) as left:
        if framework == "argparse":
            parser = argparse.ArgumentParser()
            parser.set_defaults(function=body)
            argparse_binding.main(parser, lambda _: body(), arguments, **options)
        else:
            app = click.command()(body)
            if framework == "typer":
                app = typer.Typer()
                app.command()(body)
            click_binding.main(app, arguments, **options)
    text = capfd.readouterr().err
    assert LEAK not in text
    return left.value.code, text


def raising(exc):
    def book():
        raise exc

    return book


@pytest.mark.parametrize("framework", ["click", "typer", "argparse"])
def test_a_class_of_the_application_has_its_code(framework, capfd):
    """The nearest class along the MRO decides, for bugs (M7) too; the text is not written."""
    errors = {SeatTaken: "CONFLICT", RowTaken: "NOT_FOUND", KeyError: "NOT_FOUND"}
    for exc, expected in [
        (SeatTaken(LEAK), CONFLICT),
        (RowTaken(LEAK), NOT_FOUND),
        (KeyError(LEAK), NOT_FOUND),
        (IndexError(LEAK), INTERNAL),
        (amends.errors.RateLimitedError("Slow down"), 9),
    ]:
        assert run(framework, raising(exc), capfd, errors=errors)[0] == expected
    assert run(framework, raising(KeyError(LEAK)), capfd)[0] == INTERNAL
    amends.register(KeyError, code="CONFLICT")
    assert run(framework, raising(KeyError(LEAK)), capfd)[0] == CONFLICT


@pytest.mark.parametrize("framework", ["click", "typer"])
def test_a_subclass_of_a_framework_exception(framework, capfd):
    """A registered class comes before the framework's reading of its base class, and after that of a nearer class."""
    errors = {NoSuchSeat: "NOT_FOUND", Exception: "CONFLICT"}
    assert run(framework, raising(NoSuchSeat(LEAK)), capfd, errors=errors)[0] == NOT_FOUND
    code, text = run(framework, raising(click.UsageError("Two seats at most")), capfd, errors=errors)
    assert code == 2
    assert "Two seats at most" in text


@pytest.mark.parametrize("framework", ["click", "typer", "argparse"])
def test_retries_follow_the_code(framework, capfd):
    """--retries repeats a class whose code is transient, a bug's class too, and no other."""
    calls = []

    def book():
        calls.append(None)
        if len(calls) == 1:
            raise KeyError(LEAK)

    for code, expected in [("RATE_LIMITED", 0), ("CONFLICT", CONFLICT)]:
        calls.clear()
        assert run(framework, book, capfd, "--retries", "1", errors={KeyError: code})[0] == expected


def test_wrong_entries_are_refused_at_once():
    """As on `install`: no exception class, or an unknown code."""
    for errors, kind in [({str: "CONFLICT"}, TypeError), ({SeatTaken: "NO_SUCH_CODE"}, ValueError)]:
        with pytest.raises(kind):
            click_binding.main(click.command()(lambda: None), [], errors=errors)
        with pytest.raises(kind):
            argparse_binding.main(argparse.ArgumentParser(), lambda _: None, [], errors=errors)
