"""C11: scoring is a function of the evidence: made-up evidence for each rule, recorded evidence of real tools."""

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


def seen(probe, exit=1, stdout="", stderr="", times=(0.0,), **more):
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
    """C11: each condition that falls away costs its level."""
    assert report(seen("429", 9, LIMITED), seen("unknown-flag", 3, NEVER)).score == 3
    assert report(seen("429", 9, envelope(retry_after_ms=1)), seen("unknown-flag", 3, NEVER)).score == 2
    assert report(seen("429", 9, envelope()), seen("unknown-flag", 3, NEVER)).score == 1
    assert report(seen("429", 1, LIMITED), seen("unknown-flag", 1, NEVER)).score == 1
    assert report(seen("429", 9, LIMITED), seen("unknown-flag", 3, "no")).score == 1
    assert report(seen("429", 9, ""), seen("unknown-flag", 3, "")).score == 0
    assert report(seen("429", 9, LIMITED), seen("unknown-flag", 3, envelope(False, meta=False))).score == 2


@pytest.mark.parametrize("value", [None, "yes", 1, "Maybe"])
def test_only_three_values_are_retryable(value):
    """C11: retryable is true, false or "maybe"; anything else is none."""
    text = envelope(retryable=value) if value is not None else envelope(None)
    assert report(seen("429", 9, text), seen("unknown-flag", 3, text)).score == 0


@pytest.mark.parametrize("wait", [None, "2000", True, -1])
def test_a_wait_is_a_number(wait):
    """C11: retry_after_ms that is no number is none."""
    text = envelope(retry_after_ms=wait, retry_strategy="x", max_retries=1)
    assert report(seen("429", 9, text), seen("unknown-flag", 3, NEVER)).score == 1


def test_what_was_not_triggered_stays_open():
    """C11: without a rate limit, the most that is still possible is said beside the least that is certain."""
    found = report(seen("unknown-flag", 3, NEVER))
    assert (found.score, found.at_least, found.at_most) == (None, 1, 3)
    found = report(seen("unknown-flag", 3, "no"))
    assert (found.score, found.at_least, found.at_most) == (None, 0, 1)
    found = report(seen("unknown-flag", 3, NEVER), seen("429", 9, LIMITED, times=()))
    assert found.score is None
    found = report(seen("unknown-flag", 3, NEVER), seen("429", None, "", timed_out=True))
    assert found.score is None
    assert "within the time" in found.criteria[2].because


def test_an_envelope_on_stderr_counts_where_stdout_is_empty():
    """C11: the rubric is about the error; where it stands is stdout purity's business."""
    found = report(seen("429", 9, "", LIMITED), seen("unknown-flag", 3, "", NEVER))
    assert found.criteria[0].met is True
    assert side(found, "stdout purity").score == 2


def side(found, name):
    return next(one for one in found.sides if one.name == name)


def test_stdout_purity():
    """Beside the rubric: one envelope and nothing else; empty; some text; only text."""
    name = "stdout purity"
    assert side(report(seen("429", 9, LIMITED)), name).score == 3
    assert side(report(seen("429", 9, ""), seen("404", 4, "[]")), name).score == 2
    assert side(report(seen("429", 9, ""), seen("404", 4, "oops")), name).score == 1
    assert side(report(seen("404", 4, f"oops {NEVER}")), name).score == 0
    assert side(report(), name).score is None
    assert side(report(seen("404", 4, "{broken")), name).score == 0
    assert side(report(seen("404", 4, "[" * 100_000)), name).score == 0


def test_exit_code_meaning():
    """Beside the rubric: a published table; retryable told apart; usage told apart; nothing."""
    name = "exit-code meaning"
    usage = seen("unknown-flag", 3)
    assert side(report(usage, seen("429", 9), seen("404", 4)), name).score == 3
    assert side(report(seen("unknown-flag", 2), seen("429", 11), seen("404", 5)), name).score == 3
    assert side(report(usage, seen("429", 20), seen("404", 4)), name).score == 2
    assert side(report(usage, seen("429", 1), seen("404", 1)), name).score == 1
    assert side(report(seen("unknown-flag", 1), seen("429", 1), seen("404", 1)), name).score == 0
    assert side(report(usage, seen("429", 0)), name).score == 0
    assert side(report(usage), name).score is None


def test_suggestions():
    """Beside the rubric: the right flag as data; some step as data; the right flag as text; nothing."""
    name = "suggestion quality"
    assert (
        side(report(seen("near-miss", 3, envelope(False, suggestions=["Did you mean --help?"]))), name).score
        == 3
    )
    assert side(report(seen("near-miss", 3, envelope(False, fix_required="Think"))), name).score == 2
    assert side(report(seen("near-miss", 3, "", "try --help")), name).score == 1
    assert side(report(seen("near-miss", 3)), name).score == 0
    assert side(report(), name).score is None


def test_amplification():
    """Beside the rubric: requests per rate limit; waiting as asked is no amplification."""
    name = "amplification"
    for times, points in (
        ((0.0,), 3),
        ((0.0, 0.1), 2),
        ((0, 1, 2, 3), 1),
        (tuple(range(9)), 0),
        ((0.0, 2.1, 4.2), 3),
    ):
        assert side(report(seen("429", 9, "", times=times)), name).score == points
    assert side(report(), name).score is None


class Known(NamedTuple):
    """What a tool was seen to do, by hand: read off what it printed and off what the server was asked."""

    sides: dict[str, int]
    exits: dict[str, int]
    requests: range
    """How often one rate limit made it ask; random waits make it differ a little."""


def known(meaning, suggestion, amplification, requests, exits):
    sides = {"exit-code meaning": meaning, "suggestion quality": suggestion, "amplification": amplification}
    probes = ("unknown-command", "unknown-flag", "429", "503", "401", "404", "422", "drop")
    return Known({"stdout purity": 2, **sides}, dict(zip(probes, exits, strict=True)), requests)


ONCE = range(1, 2)
EXPECTED = {
    "aws": known(1, 0, 0, range(10, 11), (2, 2, 255, 255, 255, 255, 255, 255)),
    "curl": known(1, 1, 3, ONCE, (6, 2, 22, 22, 22, 22, 22, 52)),
    "gh": known(0, 0, 3, ONCE, (1, 1, 1, 1, 1, 1, 1, 1)),
    "git": known(1, 1, 3, ONCE, (1, 129, 128, 128, 128, 128, 128, 128)),
    "http": known(1, 1, 3, ONCE, (1, 1, 4, 5, 4, 4, 4, 1)),
    "kubectl": known(0, 1, 0, range(50, 60), (1, 1, 1, 1, 1, 1, 1, 1)),
}


@pytest.mark.parametrize("tool", sorted(EXPECTED))
def test_real_tools_replayed(tool):
    """C11: what real tools did against the fixture, recorded, scores as it was checked by hand: none says anything."""
    evidence = msgspec.json.decode((RECORDED / f"{tool}.json").read_bytes(), type=Evidence)
    agrees(score(evidence), EXPECTED[tool])


def agrees(found, expected):
    """A report says of a tool what is known of it."""
    assert (found.score, found.at_most) == (0, 0)
    assert {one.name: one.score for one in found.sides} == expected.sides
    observed = {one.probe: one for one in found.evidence.observations}
    assert {probe: observed[probe].exit for probe in expected.exits} == expected.exits
    assert len(observed["429"].requests) in expected.requests
    assert f"{len(observed['429'].requests)} request" in side(found, "amplification").because


def test_the_page_holds_everything_and_runs_nothing():
    """The HTML report is one file; what a tool printed is shown, not obeyed."""
    text = html(
        report(
            seen("429", 9, "<script>alert(1)</script>\x1b[2J", "late\n"), seen("hang", None, signal="SIGTERM")
        )
    )
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    assert "http" not in text.replace("https", "").replace("http-equiv", "")


def test_the_table_for_a_terminal():
    """A few lines, score first."""
    for found in (
        report(seen("429", 9, LIMITED), seen("unknown-flag", 3, NEVER)),
        report(seen("unknown-flag", 3, NEVER)),
    ):
        shown = lines(found, lambda text, *styles: text)
        assert shown[0].startswith("3 of 3" if found.score else "? (1 to 3 of 3)")
        assert len(shown) <= 16
