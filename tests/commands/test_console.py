"""The command line's own failures, and the commands besides decode."""

from __future__ import annotations

import json
import os
import sys

import pytest
from jsonschema import Draft202012Validator

from amends.dialects import NAMES, encode
from amends.schemas import NAMES as SCHEMAS
from amends.schemas import schema
from tests.commands.test_decode import AMENDS, RATE_LIMITED, amends
from tests.terminal import at_a_terminal


@pytest.mark.parametrize(
    ("arguments", "code", "exit"),
    [
        (["decod"], "USAGE_ERROR", 3),
        (["decode", "--nope"], "USAGE_ERROR", 3),
        (["translate", "--from", "adcp"], "USAGE_ERROR", 3),
        (["decode", "--via", "pigeon"], "VALIDATION_ERROR", 2),
        (["schema", "nope"], "VALIDATION_ERROR", 2),
        (["explain", "NOPE_NOPE"], "NOT_FOUND", 4),
    ],
)
def test_own_failures_are_envelopes_with_their_exit_code(arguments, code, exit):
    """C7: bad value 2, usage 3, not found 4; stdout has only the envelope (C1)."""
    done = amends(*arguments)
    envelope = json.loads(done.stdout)
    Draft202012Validator(schema("envelope")).validate(envelope)
    assert (envelope["error"]["code"], done.returncode) == (code, exit)
    assert envelope["error"]["fix_required"]
    assert done.stderr == b""


def test_output_applies_when_parsing_fails():
    """--output and AMENDS_OUTPUT also apply if the arguments are wrong."""
    for arguments, env in (
        (["--output", "problem"], None),
        (["--output=problem"], None),
        ([], {"AMENDS_OUTPUT": "problem"}),
    ):
        done = amends("decod", *arguments, env={**os.environ, **(env or {})})
        problem = json.loads(done.stdout)
        Draft202012Validator(schema("problem")).validate(problem)
        assert problem["code"] == "USAGE_ERROR"
    text = amends("decod", "--output", "text")
    assert text.stdout == b""
    assert b"USAGE_ERROR" in text.stderr


def test_close_matches_are_suggested():
    """A misspelt command or code is reported with the closest match."""
    assert "amends decode" in json.loads(amends("decod").stdout)["error"]["suggestions"][0]
    assert "RATE_LIMITED" in json.loads(amends("explain", "RATE_LIMITTED").stdout)["error"]["suggestions"][0]


@pytest.mark.parametrize(
    "arguments",
    [
        ("schema", "nope"),
        ("translate", "--from", "nope", "--to", "adcp"),
        ("explain", "nope:x"),
        ("explain", ""),
    ],
    ids=str,
)
def test_names_that_are_not_close_are_not_suggested(arguments):
    """For a value that resembles no name, the error lists the names and suggests none."""
    steps = json.loads(amends(*arguments).stdout)["error"]["suggestions"]
    assert steps
    assert not any("Did you mean" in step for step in steps)


@pytest.mark.parametrize(
    "arguments",
    [
        ("watch", "--last", "-1"),
        ("gateway", "http://127.0.0.1:1", "--listen", "nope"),
        ("audit", "cli", "--timeout", "0", "--", "true"),
        ("runtime", "submit", "ws://127.0.0.1:1", "a", "--max-runtime", "-1"),
    ],
    ids=lambda each: each[0],
)
def test_a_number_or_address_that_is_not_possible(arguments):
    """A value that no run can use is refused before anything happens: exit 2, and the message names the option."""
    done = amends(*arguments)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "VALIDATION_ERROR")
    assert any(each.startswith("--") and each in error["message"] for each in arguments)


def test_explain_knows_statuses_and_every_vocabulary():
    """A code is explained in each vocabulary that has it, or in one; a status by its row."""
    conflict = json.loads(amends("explain", "conflict", "--json").stdout)["entries"]
    assert {entry["vocabulary"]: entry["recovery"] for entry in conflict} == {
        "everyday": "correctable",
        "http": "correctable",
        "cli": "correctable",
        "adcp": "transient",
    }
    only = json.loads(amends("explain", "CONFLICT", "--vocabulary", "adcp", "--json").stdout)["entries"]
    assert [entry["vocabulary"] for entry in only] == ["adcp"]
    status = json.loads(amends("explain", "503", "--output", "json").stdout)["entries"]
    assert [(entry["code"], entry["status"]) for entry in status] == [("SERVICE_UNAVAILABLE", 503)]


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_translate_between_every_pair(source, target):
    """An error of every dialect can be translated to every other and matches its schema."""
    from amends import Fault

    vocabularies = {"problem": "http", "envelope": "cli", "task": "task", "adcp": "adcp", "arcp": "arcp"}
    document = encode(Fault(code="INTERNAL_ERROR", message="Broken", vocabulary=vocabularies[source]), source)
    done = amends("translate", "--from", source, "--to", target, stdin=document)
    assert done.returncode == 0, done
    Draft202012Validator(schema(target)).validate(json.loads(done.stdout))


def test_translate_reports_losses():
    """Losses are on stderr, or in the report."""
    done = amends("translate", "--from", "adcp", "--to", "arcp", stdin=RATE_LIMITED)
    assert b"retry_after" in done.stderr
    report = json.loads(
        amends("translate", "--from", "adcp", "--to", "arcp", "--report", stdin=RATE_LIMITED).stdout
    )
    assert report["losses"] == ["actor", "executed", "retry_after"]
    assert report["document"]["details"]["translated_from"] == {"vocabulary": "adcp", "code": "RATE_LIMITED"}


def test_translate_rejects_other_input():
    """Input of another dialect, or input that is not JSON, is a VALIDATION_ERROR."""
    for text in (b"{}", b"nope"):
        done = amends("translate", "--from", "task", "--to", "adcp", stdin=text)
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid(name):
    """Every schema is printed and is itself valid."""
    Draft202012Validator.check_schema(json.loads(amends("schema", name).stdout))


def test_samples_of_every_dialect():
    """--samples: each sample decoded, decided and translated; text in a pipe, JSON with --json."""
    assert amends("try", "--samples").stdout.decode().startswith("── ")
    tour = json.loads(amends("try", "--samples", "--json").stdout)
    assert [step["report"]["decision"]["action"] for step in tour] == ["retry", "fix", "fix", "fix", "retry"]
    assert all(step["translated"] for step in tour)


def test_decode_on_a_terminal(tmp_path):
    """Coloured text that starts with the decision; control characters of the response are removed."""
    hostile = RATE_LIMITED | {"message": "calm\x1b[2J down"}
    response = tmp_path / "response.json"
    response.write_text(json.dumps(hostile))
    code, seen = at_a_terminal([*AMENDS, "decode", str(response)])
    assert code == 0
    assert "retry in 5 s" in seen.splitlines()[0]
    assert "\x1b[1;33m" in seen
    assert "\x1b[2J" not in seen


def test_a_mistake_on_a_terminal():
    """A short text, the error first and then the fix, with the same exit code."""
    code, seen = at_a_terminal([*AMENDS, "decod"])
    assert code == 3
    first, second = seen.splitlines()
    assert "amends has no command decod (USAGE_ERROR)" in first
    assert "Did you mean amends decode?" in second


def test_no_command_prints_the_help():
    """`amends` alone is a question, not a mistake."""
    done = amends()
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == amends("--help").stdout


def test_explain_groups_vocabularies_that_agree():
    """As text, a code with one meaning is shown once, one with two meanings twice."""
    once = amends("explain", "RATE_LIMITED", "--output", "text").stdout.decode()
    assert once.startswith("RATE_LIMITED (Everyday errors, HTTP problem details, Command-line errors")
    assert once.count("next to act") == 1
    twice = amends("explain", "CONFLICT", "--output", "text").stdout.decode()
    assert "recovery     transient" in twice
    assert "recovery     correctable" in twice
    word = amends("explain", "openai:insufficient_quota", "--output", "text").stdout.decode()
    assert "QUOTA_EXCEEDED" in word


@pytest.mark.parametrize("code", ["RATE_LIMITED", "openai:insufficient_quota", "openai:", ":", None])
def test_explain_writes_json_into_a_pipe(code):
    """C1: the result is JSON in a pipe, as its failures are, and text on a terminal."""
    arguments = ["explain", *([] if code is None else [code])]
    assert isinstance(json.loads(amends(*arguments).stdout), dict)


def test_json_belongs_to_the_command_after_two_dashes():
    """`--json` after `--` is an argument of the other command."""
    done = amends("run", "--", "echo", "--json")
    assert done.stdout == b"--json\n"


def test_version_and_help():
    """--version and --help succeed, and the help lists the commands."""
    assert amends("--version").stdout.startswith(b"amends ")
    text = amends("--help").stdout.decode()
    assert all(command in text for command in ("try", "decode", "explain", "translate", "schema"))
    assert len(text.splitlines()) <= 24


def test_debug_prints_the_traceback_to_stderr():
    """--debug: a traceback on stderr; stdout still has only the envelope."""
    done = amends("explain", "NOPE_NOPE", "--debug")
    assert b"Traceback" in done.stderr
    assert json.loads(done.stdout)["ok"] is False
    assert sys.executable  # the test's interpreter ran it


def test_explanations_fit_the_terminal():
    """Lines are wrapped between words at a terminal, and not in a pipe."""
    env = {**os.environ, "COLUMNS": "60", "NO_COLOR": "1", "TERM": "xterm"}
    code, seen = at_a_terminal([*AMENDS, "explain", "RATE_LIMITED"], env=env)
    lines = seen.splitlines()
    assert (code, max(map(len, lines)) <= 60) == (0, True)
    piped = amends("explain", "RATE_LIMITED", "--output", "text").stdout.decode()
    assert max(map(len, piped.splitlines())) > 80
    assert " ".join(piped.split()) == " ".join(" ".join(lines).split())
