"""Tests of the Click binding, for Click and Typer: their exceptions, all mistakes at once, and errors inside a command."""

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated
from uuid import UUID

import click
import pytest
import typer

from amends.bindings.click import main
from amends.bindings.click_exceptions import outcome_of
from amends.bindings.click_parameters import choices
from tests.bindings.commands import ENV, argv, run_json, run_sample

BOTH = pytest.mark.parametrize("framework", ["click", "typer"])


def suggestions_of(command, *arguments):
    """Return the suggestions for the one mistake in these arguments."""
    with pytest.raises(Exception) as caught:
        command.make_context("tool", list(arguments))
    fault = outcome_of(caught.value, "v1", list(arguments)).fault
    assert (fault.code, fault.field) == ("VALIDATION_ERROR", "--it")
    return fault.suggestions


def integer(text):
    """A type of the application with the name of one of Click's."""
    raise ValueError(text)


def refuse(context, param, value):
    raise click.BadParameter("not today")


@pytest.mark.parametrize(
    ("options", "given", "step"),
    [
        ({"type": int}, "x", "Give a whole number for --it"),
        ({"type": int, "multiple": True}, "x", "Give a whole number for --it"),
        ({"type": float}, "x", "Give a number for --it"),
        ({"type": bool}, "x", "Give true or false for --it"),
        ({"type": UUID}, "x", "Give a UUID for --it"),
        ({"type": click.UUID}, "x", "Give a UUID for --it"),
        ({"type": integer}, "x", "Give another value for --it; see tool --help"),
        ({"type": click.IntRange(1, 5)}, "6", "Give a whole number from 1 to 5 for --it"),
        ({"type": click.IntRange(min=1)}, "x", "Give a whole number of at least 1 for --it"),
        ({"type": click.FloatRange(max=2, max_open=True)}, "2", "Give a number under 2 for --it"),
        (
            {"type": click.FloatRange(0, 2, min_open=True)},
            "0",
            "Give a number over 0 and of at most 2 for --it",
        ),
        ({"type": click.DateTime(["%Y", "%m"])}, "x", "Give a date or time written as %Y or %m for --it"),
        ({"type": click.File()}, "/none", "Give a file that can be opened for --it"),
        ({"type": click.Path(exists=True, dir_okay=False)}, "/none", "Give a file that can be used for --it"),
        ({"type": click.Choice(["up", "down"])}, "x", "Use one of up, down"),
        ({"type": (int, str), "nargs": 2}, "x y", "Give another value for --it; see tool --help"),
        ({"type": int, "callback": refuse}, "5", "Give another value for --it; see tool --help"),
    ],
)
def test_suggestions_describe_the_type(options, given, step):
    """The suggestion is derived from the type; for an error of a callback it is not."""
    command = click.Command("tool", params=[click.Option(["--it"], **options)])
    assert suggestions_of(command, "--it", *given.split()) == (step,)


@pytest.mark.parametrize(
    ("annotation", "options", "given", "step"),
    [
        (int, {}, "x", "Give a whole number for --it"),
        (list[int], {}, "x", "Give a whole number for --it"),
        (int, {"min": 1, "max": 5}, "9", "Give a whole number from 1 to 5 for --it"),
        (float, {"max": 5}, "9", "Give a number of at most 5 for --it"),
        (UUID, {}, "x", "Give a UUID for --it"),
        (datetime, {"formats": ["%Y"]}, "x", "Give a date or time written as %Y for --it"),
        (datetime, {}, "x", "Give a date and time such as 2026-12-31T18:00:00 for --it"),
        (Path, {"exists": True}, "/none", "Give a path that can be used for --it"),
        (typer.FileText, {}, "/none", "Give a file that can be opened for --it"),
        (tuple[int, int], {}, "x y", "Give another value for --it; see tool --help"),
    ],
)
def test_suggestions_describe_typers_annotation(annotation, options, given, step):
    """Typer's annotations give the same suggestions."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def tool(it: Annotated[annotation, typer.Option(**options)]):
        """Nothing."""

    assert suggestions_of(typer.main.get_command(app), "--it", *given.split()) == (step,)


def test_required_and_wrong_together():
    """A missing argument does not hide a wrong value."""
    _, envelope = run_json("click", "many", "--x", "one", "--y", "two")
    assert {part["field"] for part in envelope["error"]["errors"]} == {"--x", "--y", "Z"}


@pytest.mark.parametrize(
    ("kind", "code", "exit"),
    [
        ("exit", "INTERNAL_ERROR", 4),
        ("abort", "INTERNAL_ERROR", 130),
        ("exception", "INTERNAL_ERROR", 1),
        ("file", "VALIDATION_ERROR", 2),
        ("parameter", "VALIDATION_ERROR", 2),
        ("nested", "INTERNAL_ERROR", 1),
    ],
)
def test_clicks_own_exceptions_inside_a_command(kind, code, exit):
    """Raised after the command started: the author's message, and no `phase` that promises no effect."""
    number, envelope = run_json("click", "clicks", kind)
    assert (number, envelope["error"]["code"]) == (exit, code)
    assert "phase" not in envelope["error"]
    if kind in {"exception", "parameter"}:
        assert "the author's message" in envelope["error"]["message"]
    if kind == "parameter":
        assert envelope["error"]["field"] == "--when"


def test_ctx_exit_zero_is_a_success():
    """ctx.exit(0) inside a command is a success."""
    code, envelope = run_json("click", "clicks", "exit0")
    assert (code, envelope["ok"]) == (0, True)


def test_an_exit_in_a_parameters_callback():
    """An exit in a callback keeps its exit code; the callback is not called again to find mistakes."""
    code, envelope = run_json("click", "leave", "--how", "leave")
    assert (code, envelope["error"]["code"]) == (6, "INTERNAL_ERROR")
    assert run_json("click", "leave", "--how", "stay")[1]["data"] == "stay"


def test_a_prompt_without_input():
    """A prompt in a pipe is reported as a missing option, not as an abort."""
    code, envelope = run_json("click", "ask")
    assert (code, envelope["error"]["code"]) == (3, "USAGE_ERROR")


def test_an_output_flag_of_the_application():
    """An --output that a command declares itself stays in its arguments, and json still selects JSON."""
    code, envelope = run_json("click", "own")
    assert (code, envelope["data"]) == (0, {"output": "json"})
    assert run_sample("click", "own", "--output", "table").returncode == 0
    assert run_sample("click", "own", "--output=xml").returncode == 2


def test_chained_commands():
    """Several commands in one line return a list; in a chain only the first mistake is reported."""
    code, envelope = run_json("click", "chain", "one", "--n", "1", "one", "--n", "2")
    assert (code, envelope["data"]) == (0, [1, 2])
    code, envelope = run_json("click", "chain", "one", "--n", "x")
    assert (code, envelope["error"]["field"]) == (2, "--n")


@BOTH
def test_help_text_is_the_data(framework):
    """--help and --version succeed; with JSON output the text is the data. The help lists the common options."""
    code, envelope = run_json(framework, "--help")
    assert code == 0
    assert "--retries" in envelope["data"]["text"]
    assert b"show" in run_sample(framework, "--help").stdout
    if framework == "click":
        assert "1.2.3" in run_json(framework, "--version")[1]["data"]["text"]
        assert run_json(framework, "show", "--help", "--nope")[0] in {0, 3}


@BOTH
def test_rich_is_not_loaded_by_us(framework, tmp_path):
    """A success imports neither Rich nor msgspec; a failure does not import Rich."""
    for arguments, unwanted in ((["show", "bob"], ("rich", "msgspec")), (["fail", "limited"], ("rich",))):
        code = (
            "import sys, runpy, atexit\n"
            f"atexit.register(lambda: print('LOADED', [m for m in {unwanted!r} if m in sys.modules], file=sys.stderr))\n"
            f"sys.argv = {argv(framework, *arguments, '--output', 'json')[1:]!r}\n"
            "sys.path.insert(0, sys.argv[0].rpartition('/')[0])\n"
            "runpy.run_path(sys.argv[0], run_name='__main__')\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENV, timeout=60)
        assert b"LOADED []" in done.stderr, done.stderr[-300:]


def test_completion_stays_with_the_framework():
    """Shell completion is handled by Click."""
    env = {"_SAMPLE_COMPLETE": "bash_complete", "COMP_WORDS": "sample sho", "COMP_CWORD": "1"}
    assert b"show" in run_sample("click", env=env).stdout


def test_main_rejects_other_objects():
    """An object that is neither Click's nor Typer's raises a TypeError."""
    with pytest.raises(TypeError, match="Click command"):
        main(object())
    assert choices(object()) == []


def test_the_newer_exit_table():
    """profile="v2": the same failure has the newer table's exit code."""
    program = (
        "import click\nfrom amends.bindings.click import main\nfrom amends.errors import RateLimitedError\n"
        "@click.command()\ndef app():\n    raise RateLimitedError('slow')\nmain(app, profile='v2', piped='json')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=ENV, timeout=60)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (11, "RATE_LIMITED")


@pytest.mark.parametrize(("kind", "exit", "runs"), [("exit", 4, 1), ("usage", 2, 1), ("exception", 1, 2)])
def test_exits_are_not_retried(kind, exit, runs, tmp_path):
    """C9: an exit and a usage error end a command under --retries; a failure is retried."""
    code, envelope = run_json("click", "leaving", tmp_path / "runs", kind, "--retries", "3")
    assert (code, envelope["ok"]) == (exit, False)
    assert len((tmp_path / "runs").read_text().splitlines()) == runs


def test_no_args_is_help():
    """no_args_is_help: a call without arguments is a usage error, not a success."""
    program = (
        "import click\nfrom amends.bindings.click import main\n"
        "@click.command(no_args_is_help=True)\n@click.option('--n')\ndef app(n):\n    pass\nmain(app, name='app')\n"
    )
    arguments = [sys.executable, "-c", program, "--output", "json"]
    done = subprocess.run(arguments, capture_output=True, env=ENV, timeout=60)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], error["field"]) == (3, "USAGE_ERROR", "an argument")


@BOTH
def test_a_mistake_under_retries(framework):
    """An unknown command is reported with its closest match and is not retried."""
    code, envelope = run_json(framework, "shwo", "bob", "--retries", "2")
    assert (code, envelope["error"]["fix_required"]) == (3, "Did you mean sample show?")
    assert envelope["meta"]["attempt"] == 1


def test_a_type_that_fails_on_the_second_pass():
    """If a type raises on the second pass, the first mistake is still reported."""
    code, envelope = run_json("click", "twice", "--value", "x")
    assert (code, envelope["error"]["field"], envelope["error"]["phase"]) == (2, "--value", "validation")


def test_several_letters_in_one_flag():
    """-xyz: the first unknown letter is reported if the rest cannot be parsed."""
    code, envelope = run_json("click", "show", "bob", "-xyz")
    assert (code, envelope["error"]["code"]) == (3, "USAGE_ERROR")


def test_the_name_of_a_package(tmp_path):
    """`python -m shop` is the program's name in messages; an epilog of the author is kept."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import click\nfrom amends.bindings.click import main\n"
        "@click.group(epilog='My own.')\ndef app(): pass\n"
        "@app.command()\ndef list(): pass\nmain(app)\n"
    )
    arguments = [sys.executable, "-m", "shop", "lst", "--output", "json"]
    done = subprocess.run(
        arguments, capture_output=True, env=ENV | {"PYTHONPATH": f"{tmp_path}:src"}, timeout=60
    )
    assert json.loads(done.stdout)["error"]["fix_required"] == "Did you mean python -m shop list?"
    arguments = [sys.executable, "-m", "shop", "--help"]
    done = subprocess.run(
        arguments, capture_output=True, env=ENV | {"PYTHONPATH": f"{tmp_path}:src"}, timeout=60
    )
    assert b"My own." in done.stdout


@pytest.mark.parametrize("command", ["inner", "outer"])
def test_async_groups_and_decorated_functions(command):
    """The function of a group may be async too; a command can await another one."""
    code, envelope = run_json("click", "setup", command)
    assert (code, envelope["data"]) == (0, {"ready": True})
