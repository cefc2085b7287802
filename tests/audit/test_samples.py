"""C11: real audits of the sample applications with and without the bindings, and of a misbehaving tool."""

import os
import sys
from pathlib import Path

import pytest

from amends.audit import html, observe, score
from amends.process import child
from tests.process.alive import JumpingClock, all_gone, read_pids

APPS = Path(__file__).parent / "apps"
SRC = str(Path(__file__).parents[2] / "src")


def audit_sample(framework, *, bound, call="get {url}/42", **options):
    env = {"PYTHONPATH": os.pathsep.join([SRC, str(APPS)]), **({"BOUND": "1"} if bound else {})}
    command = [sys.executable, str(APPS / f"{framework}_app.py")]
    return score(observe(command, call=call, env=env, timeout=20, **options))


@pytest.mark.parametrize("framework", ["click", "typer", "argparse", "guard"])
def test_bound_applications_score_three(framework):
    """C11: with the binding every failure meets the rubric."""
    report = audit_sample(framework, bound=True)
    assert (report.score, report.at_least, report.at_most) == (3, 3, 3), report.criteria
    assert {extra.name: extra.score for extra in report.extra_scores} == {
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
def test_unbound_applications_score_zero(framework):
    """C11: the same application without the binding."""
    report = audit_sample(framework, bound=False)
    assert (report.score, report.at_most) == (0, 0)
    assert next(extra for extra in report.extra_scores if extra.name == "exit-code meaning").score in {0, 1}


def test_without_a_fixture_nothing_is_guessed():
    """C11: criteria that were not triggered are unknown; only the root command runs."""
    report = audit_sample("argparse", bound=True, call=None)
    assert (report.score, report.at_least, report.at_most) == (None, 1, 3)
    assert [one.probe for one in report.evidence.observations] == [
        "help",
        "version",
        "unknown-command",
        "unknown-flag",
        "near-miss",
    ]
    assert "?" in html(report)


def test_a_call_that_does_not_reach_the_fixture():
    """C11: such a call triggers nothing, and the report says so."""
    report = score(observe(["/bin/false"], call="get", json_flags=["--output", "json"]))
    assert (report.score, report.at_most) == (None, 1)
    assert "no request reached the fixture" in html(report)


def test_probes_are_isolated(tmp_path, monkeypatch):
    """Each probe has a new temporary home and none of our variables, and its processes are terminated."""
    log, pids = tmp_path / "log", tmp_path / "pids"
    monkeypatch.setattr(child, "time", JumpingClock(pids))
    tool = tmp_path / "tool.sh"
    tool.write_text(
        f'#!/bin/sh\necho $HOME >> {log}\ntouch $HOME/left\n[ -z "$SECRET" ] || echo leaked >> {log}\n'
        f"sleep 60 &\necho $! >> {pids}\nexec sleep 60\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("SECRET", "x")
    report = score(observe([str(tool)], timeout=500))
    homes = log.read_text().split()
    assert len(set(homes)) == len(homes) == 5
    assert not any(Path(place).exists() for place in homes)
    assert all(one.timed_out for one in report.evidence.observations)
    assert report.score is None
    assert all_gone(read_pids(pids, 5))


def test_a_missing_command():
    """A command that cannot be started has exit code 127, as in a shell."""
    assert {one.exit for one in observe(["/no/such/tool"]).observations} == {127}
