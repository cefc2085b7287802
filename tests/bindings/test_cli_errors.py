"""Mistakes in arguments, for every framework that parses them: the error and the suggested correction."""

import pytest

from tests.bindings.commands import run_json

PARSING = ("click", "typer", "argparse")


@pytest.mark.parametrize("framework", PARSING)
def test_every_mistake_at_once(framework):
    """All mistakes are reported together, each with its field and the closest match, before the command runs."""
    code, envelope = run_json(framework, "show", "bob", "--cuont", "3", "--color", "gren", "--count", "x")
    error = envelope["error"]
    assert (code, error["code"], error["phase"]) == (3, "USAGE_ERROR", "validation")
    assert error["message"].endswith(f"are wrong: {', '.join(part['field'] for part in error['errors'])}")
    assert {part["field"]: part["code"] for part in error["errors"]} == {
        "--cuont": "USAGE_ERROR",
        "--color": "VALIDATION_ERROR",
        "--count": "VALIDATION_ERROR",
    }
    assert {"Did you mean --count?", "Did you mean green?"} <= set(error["suggestions"])


MISTAKES = [
    (["show", "bob", "--count", "x"], "VALIDATION_ERROR", 2, "Give a whole number for --count"),
    (["show"], "USAGE_ERROR", 3, "name"),
    (["show", "a", "b"], "USAGE_ERROR", 3, "Remove b"),
    (["shw", "a"], "USAGE_ERROR", 3, "Did you mean sample show?"),
    (["show", "a", "--count"], "USAGE_ERROR", 3, "--help"),
    (["--nope"], "USAGE_ERROR", 3, "--help"),
    (["--nope", "show", "a"], "USAGE_ERROR", 3, "--help"),
]
NOTHING = {"click": "show", "typer": "show", "argparse": "COMMAND"}
"""What the suggestion names if no command is given: the commands, or the metavar."""


@pytest.mark.parametrize(
    ("framework", "arguments", "code", "exit", "step"),
    [
        *((framework, *mistake) for framework in PARSING for mistake in MISTAKES),
        *((framework, [], "USAGE_ERROR", 3, step) for framework, step in NOTHING.items()),
    ],
)
def test_one_mistake(framework, arguments, code, exit, step):
    """C7: bad value 2, usage 3; the first suggestion corrects the mistake."""
    number, envelope = run_json(framework, *arguments)
    error = envelope["error"]
    assert (number, error["code"], error["phase"]) == (exit, code, "validation")
    assert step.lower() in error["fix_required"].lower()
