"""C11: the audit, run for real: samples of each framework with us and without, and a tool that misbehaves."""

import os
import sys
from pathlib import Path

import pytest

from amends.audit import html, observe, score
from tests.process.alive import all_gone, written

APPS = Path(__file__).parent / "apps"
SRC = str(Path(__file__).parents[2] / "src")


def audited(framework, *, bound, call="get {url}/42", **options):
    env = {"PYTHONPATH": os.pathsep.join([SRC, str(APPS)]), **({"BOUND": "1"} if bound else {})}
    command = [sys.executable, str(APPS / f"{framework}_app.py")]
    return score(observe(command, call=call, env=env, timeout=20, **options))


@pytest.mark.parametrize("framework", ["click", "typer", "argparse", "guard"])
def test_with_us_it_scores_three(framework):
    """C11: one line turns every failure into what the rubric asks for."""
    report = audited(framework, bound=True)
    assert (report.score, report.at_least, report.at_most) == (3, 3, 3), report.criteria
    assert {side.name: side.score for side in report.sides} == {
        "stdout purity": 3,
        "exit-code meaning": 3,
        "suggestion quality": 3,
        "amplification": 3,
    }
    limited = next(one for one in report.evidence.observations if one.probe == "429")
    assert limited.error["retry_after_ms"] == 2000
    assert [request.method for request in limited.requests] == ["GET"]


@pytest.mark.parametrize(
    "framework",
    ["click", "argparse", *(pytest.param(name, marks=pytest.mark.soak) for name in ("typer", "guard"))],
)
def test_without_us_it_scores_nothing(framework):
    """C11: the same application on its own."""
    report = audited(framework, bound=False)
    assert (report.score, report.at_most) == (0, 0)
    assert next(side for side in report.sides if side.name == "exit-code meaning").score in {0, 1}


def test_without_a_fixture_nothing_is_guessed():
    """C11: what was not triggered is unknown; only the root is asked."""
    report = audited("argparse", bound=True, call=None)
    assert (report.score, report.at_least, report.at_most) == (None, 1, 3)
    assert [one.probe for one in report.evidence.observations] == [
        "help",
        "version",
        "unknown-command",
        "unknown-flag",
        "near-miss",
    ]
    assert "?" in html(report)


def test_a_call_that_never_asks_the_fixture():
    """C11: a call that goes elsewhere triggers nothing, and the report says so."""
    report = score(observe(["/bin/false"], call="get", json_way=["--output", "json"]))
    assert (report.score, report.at_most) == (None, 1)
    assert "never asked" in html(report)


def test_the_probes_run_in_a_place_of_their_own(tmp_path):
    """A clean home for each, thrown away; none of our variables; everything it started is gone."""
    seen, pids = tmp_path / "seen", tmp_path / "pids"
    tool = tmp_path / "tool.sh"
    tool.write_text(
        f'#!/bin/sh\necho $HOME >> {seen}\ntouch $HOME/left\n[ -z "$SECRET" ] || echo leaked >> {seen}\n'
        f"sleep 60 &\necho $! >> {pids}\nexec sleep 60\n"
    )
    tool.chmod(0o755)
    os.environ["SECRET"] = "x"
    try:
        report = score(observe([str(tool)], timeout=1.0))
    finally:
        del os.environ["SECRET"]
    homes = seen.read_text().split()
    assert len(set(homes)) == len(homes) == 5
    assert not any(Path(place).exists() for place in homes)
    assert all(one.timed_out for one in report.evidence.observations)
    assert report.score is None
    assert all_gone(written(pids, 5))


def test_a_command_that_is_not_there():
    """It cannot be started: 127, as a shell says."""
    assert {one.exit for one in observe(["/no/such/tool"]).observations} == {127}
