"""C11: scoring is a function of the evidence, tested with made-up evidence for each rule and with recorded evidence."""

import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from amends.audit import Evidence, Observation, html, score
from amends.audit.evidence import Request
from amends.audit.views import lines

RECORDED = Path(__file__).parent / "recorded"


def envelope(retryable=True, meta=True, **more):
    error = {"code": "X", "message": "m", **({} if retryable is None else {"retryable": retryable}), **more}
    return json.dumps(
        {"ok": False, "error": error, "meta": {"attempt": 1, "max_attempts": 1} if meta else {}}
    )


def observation(probe, exit=1, stdout="", stderr="", times=(0.0,), **more):
    fixture = probe.isdecimal() or probe in {"hang", "drop"}
    requests = [Request("GET", "/", at) for at in times] if fixture else []
    return Observation(
        probe=probe,
        argv=["t"],
        exit=exit,
        stdout=stdout,
        stderr=stderr,
        fixture=fixture,
        requests=requests,
        **more,
    )


def report(*observations):
    return score(Evidence(command=["t"], observations=list(observations), network="none", retry_after=2))


LIMITED = envelope(retry_after_ms=2000, retry_strategy="exponential_backoff", max_retries=3)
NEVER = envelope(retryable=False)


def test_all_levels():
    """C11: each condition that is not met lowers the score to its level."""
    assert report(observation("429", 9, LIMITED), observation("unknown-flag", 3, NEVER)).score == 3
    assert (
        report(observation("429", 9, envelope(retry_after_ms=1)), observation("unknown-flag", 3, NEVER)).score
        == 2
    )
    assert report(observation("429", 9, envelope()), observation("unknown-flag", 3, NEVER)).score == 1
    assert report(observation("429", 1, LIMITED), observation("unknown-flag", 1, NEVER)).score == 1
    assert report(observation("429", 9, LIMITED), observation("unknown-flag", 3, "no")).score == 1
    assert report(observation("429", 9, ""), observation("unknown-flag", 3, "")).score == 0
    assert (
        report(
            observation("429", 9, LIMITED), observation("unknown-flag", 3, envelope(False, meta=False))
        ).score
        == 2
    )


@pytest.mark.parametrize("value", [None, "yes", 1, "Maybe"])
def test_only_three_values_are_retryable(value):
    """C11: retryable is true, false or "maybe"; any other value counts as absent."""
    text = envelope(retryable=value) if value is not None else envelope(None)
    assert report(observation("429", 9, text), observation("unknown-flag", 3, text)).score == 0


@pytest.mark.parametrize("wait", [None, "2000", True, -1])
def test_a_wait_is_a_number(wait):
    """C11: a retry_after_ms that is not a number of at least 0 does not count."""
    text = envelope(retry_after_ms=wait, retry_strategy="x", max_retries=1)
    assert report(observation("429", 9, text), observation("unknown-flag", 3, NEVER)).score == 1


def test_bounds_without_a_rate_limit():
    """C11: without a rate limit the report has a lower and an upper bound instead of a score."""
    found = report(observation("unknown-flag", 3, NEVER))
    assert (found.score, found.at_least, found.at_most) == (None, 1, 3)
    found = report(observation("unknown-flag", 3, "no"))
    assert (found.score, found.at_least, found.at_most) == (None, 0, 1)
    found = report(observation("unknown-flag", 3, NEVER), observation("429", 9, LIMITED, times=()))
    assert found.score is None
    found = report(observation("unknown-flag", 3, NEVER), observation("429", None, "", timed_out=True))
    assert found.score is None
    assert "before the timeout" in found.criteria[2].because


def test_an_envelope_on_stderr_counts_if_stdout_is_empty():
    """C11: the rubric reads the error on either stream; stdout purity scores where it is."""
    found = report(observation("429", 9, "", LIMITED), observation("unknown-flag", 3, "", NEVER))
    assert found.criteria[0].met is True
    assert extra_score(found, "stdout purity").score == 2


def extra_score(found, name):
    return next(one for one in found.extra_scores if one.name == name)


def test_stdout_purity():
    """One envelope per failure; empty or JSON; some text; only text."""
    name = "stdout purity"
    assert extra_score(report(observation("429", 9, LIMITED)), name).score == 3
    assert extra_score(report(observation("429", 9, ""), observation("404", 4, "[]")), name).score == 2
    assert extra_score(report(observation("429", 9, ""), observation("404", 4, "oops")), name).score == 1
    assert extra_score(report(observation("404", 4, f"oops {NEVER}")), name).score == 0
    assert extra_score(report(), name).score is None
    assert extra_score(report(observation("404", 4, "{broken")), name).score == 0
    assert extra_score(report(observation("404", 4, "[" * 100_000)), name).score == 0


def test_exit_code_meaning():
    """A published table; retryable failures differ; usage errors differ; no distinction."""
    name = "exit-code meaning"
    usage = observation("unknown-flag", 3)
    assert extra_score(report(usage, observation("429", 9), observation("404", 4)), name).score == 3
    assert (
        extra_score(
            report(observation("unknown-flag", 2), observation("429", 11), observation("404", 5)), name
        ).score
        == 3
    )
    assert extra_score(report(usage, observation("429", 20), observation("404", 4)), name).score == 2
    assert extra_score(report(usage, observation("429", 1), observation("404", 1)), name).score == 1
    assert (
        extra_score(
            report(observation("unknown-flag", 1), observation("429", 1), observation("404", 1)), name
        ).score
        == 0
    )
    assert extra_score(report(usage, observation("429", 0)), name).score == 0
    assert extra_score(report(usage), name).score is None


def test_suggestion_quality():
    """The right flag as data; another step as data; the right flag in the text; nothing."""
    name = "suggestion quality"
    assert (
        extra_score(
            report(observation("near-miss", 3, envelope(False, suggestions=["Did you mean --help?"]))), name
        ).score
        == 3
    )
    assert (
        extra_score(report(observation("near-miss", 3, envelope(False, fix_required="Think"))), name).score
        == 2
    )
    assert extra_score(report(observation("near-miss", 3, "", "try --help")), name).score == 1
    assert extra_score(report(observation("near-miss", 3)), name).score == 0
    assert extra_score(report(), name).score is None


def test_amplification():
    """Requests per rate limit; repeats that wait as long as asked do not count."""
    name = "amplification"
    for times, points in (
        ((0.0,), 3),
        ((0.0, 0.1), 2),
        ((0, 1, 2, 3), 1),
        (tuple(range(9)), 0),
        ((0.0, 2.1, 4.2), 3),
    ):
        assert extra_score(report(observation("429", 9, "", times=times)), name).score == points
    assert extra_score(report(), name).score is None


class ExpectedTool(NamedTuple):
    """What a tool does, determined by hand from its output and the server's requests."""

    extra_scores: dict[str, int]
    exits: dict[str, int]
    requests: range
    """The number of requests for one rate limit; random waits make it vary a little."""


def expected_tool(meaning, suggestion, amplification, requests, exits):
    extra_scores = {
        "exit-code meaning": meaning,
        "suggestion quality": suggestion,
        "amplification": amplification,
    }
    probes = ("unknown-command", "unknown-flag", "429", "503", "401", "404", "422", "drop")
    return ExpectedTool({"stdout purity": 2, **extra_scores}, dict(zip(probes, exits, strict=True)), requests)


ONCE = range(1, 2)
EXPECTED = {
    "aws": expected_tool(1, 0, 0, range(10, 11), (2, 2, 255, 255, 255, 255, 255, 255)),
    "curl": expected_tool(1, 1, 3, ONCE, (6, 2, 22, 22, 22, 22, 22, 52)),
    "gh": expected_tool(0, 0, 3, ONCE, (1, 1, 1, 1, 1, 1, 1, 1)),
    "git": expected_tool(1, 1, 3, ONCE, (1, 129, 128, 128, 128, 128, 128, 128)),
    "http": expected_tool(1, 1, 3, ONCE, (1, 1, 4, 5, 4, 4, 4, 1)),
    "kubectl": expected_tool(0, 1, 0, range(50, 60), (1, 1, 1, 1, 1, 1, 1, 1)),
}


@pytest.mark.parametrize("tool", sorted(EXPECTED))
def test_recorded_tools(tool):
    """C11: the recorded evidence of real tools gives the scores that were checked by hand."""
    evidence = msgspec.json.decode((RECORDED / f"{tool}.json").read_bytes(), type=Evidence)
    assert_report(score(evidence), EXPECTED[tool])


def assert_report(found, expected):
    """Assert that a report has the expected scores, exit codes and requests of a tool."""
    assert (found.score, found.at_most) == (0, 0)
    assert {one.name: one.score for one in found.extra_scores} == expected.extra_scores
    observed = {one.probe: one for one in found.evidence.observations}
    assert {probe: observed[probe].exit for probe in expected.exits} == expected.exits
    assert len(observed["429"].requests) in expected.requests
    assert f"{len(observed['429'].requests)} request" in extra_score(found, "amplification").because


def test_the_html_page_escapes_output():
    """The HTML report is one file; a tool's output is escaped in it."""
    text = html(
        report(
            observation("429", 9, "<script>alert(1)</script>\x1b[2J", "late\n"),
            observation("hang", None, signal="SIGTERM"),
        )
    )
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    assert "http" not in text.replace("https", "").replace("http-equiv", "")


def test_the_table_for_a_terminal():
    """A few lines, the score first."""
    for found in (
        report(observation("429", 9, LIMITED), observation("unknown-flag", 3, NEVER)),
        report(observation("unknown-flag", 3, NEVER)),
    ):
        shown = lines(found, lambda text, *styles: text)
        assert shown[0].startswith("3 of 3" if found.score else "? (1 to 3 of 3)")
        assert len(shown) <= 18


def test_the_reason_for_the_score():
    """One line: the first condition that is not met, or that could not be checked."""
    assert (
        report(observation("429", 9, LIMITED), observation("unknown-flag", 3, NEVER)).because
        == "all conditions are met"
    )
    missing = report(observation("429", 9, envelope()), observation("unknown-flag", 3, NEVER)).because
    assert missing.startswith("level 2 is not met: a rate limit includes retry_after_ms? absent")
    unknown = report(observation("unknown-flag", 3, NEVER)).because
    assert unknown.startswith("level 2 is unknown: all errors include retryable?")
    assert "\n" not in missing + unknown


def test_help_that_fails():
    """The warning names how --help ended."""
    assert report(observation("help", 0)).warnings == []
    assert "exit 3" in report(observation("help", 3)).warnings[0]
    assert "timeout" in report(observation("help", None, timed_out=True)).warnings[0]
    assert "SIGSEGV" in report(observation("help", None, signal="SIGSEGV")).warnings[0]


def test_reading_costs():
    """Bytes of both streams, and a token for four of them; evidence that was cut off has the number of all bytes."""
    costs = report(
        observation("help", 0, "é" * 4, "x"), observation("429", 9, "y" * 10, written=1000)
    ).reading_costs
    assert [(each.probe, each.bytes, each.tokens) for each in costs] == [
        ("help", 9, 3),
        ("429", 1000, 250),
        ("total", 1009, 253),
    ]
