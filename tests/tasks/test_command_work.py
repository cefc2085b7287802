"""`amends tasks`: submitting, working, filters, and what will happen next."""

import json
import sys

import pytest

from amends.commands.console import run as run_command

MODULE = """
from amends.errors.task import KnowledgeNotFoundError
from amends.tasks import Agent

cook = Agent("cook")

@cook.capability(read_only=True)
async def boil(what: str):
    if what == "stone":
        raise KnowledgeNotFoundError
    return f"{what} boiled"

agents = [cook]
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    (tmp_path / "kitchen_agents.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMENDS_STORE", f"sqlite:///{tmp_path}/tasks.db")
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*arguments, exit=0):
        assert run_command(["tasks", *arguments, "--output", "json"]) == exit
        written = capsys.readouterr().out
        return None if exit else json.loads(written)

    yield call
    sys.modules.pop("kitchen_agents", None)


def test_from_submission_to_retry(run):
    submitted = run("submit", "boil", '"egg"', "--agent", "cook", "--id", "a")
    assert submitted["task"]["status"] == "pending"
    assert "no worker offers cook: start one" in submitted["next"]
    run("submit", "boil", "stone", "--agent", "cook", "--id", "b")
    assert run("worker", "kitchen_agents:agents", "--drain")["handled"] == 2
    assert run("show", "a")["task"]["result"] == "egg boiled"
    for filters, ids in (
        (("--attention",), ["b"]),
        (("--type", "boil"), ["a", "b"]),
        (("--type", "fry"), []),
        (("--agent", "cook"), ["a", "b"]),
        (("--older-than", "3600"), []),
        (("--newer-than", "3600"), ["a", "b"]),
    ):
        assert sorted(task["id"] for task in run("list", *filters)["tasks"]) == ids, filters
    assert run("retry", "--all", "--code", "TIMEOUT")["retried"] == []
    assert run("retry", "--all")["retried"] == ["b"]
    assert "nothing changes" in run("cancel", "a")["next"]


@pytest.mark.parametrize(
    "name", ["kitchen_agents", "no_such_module:x", "kitchen_agents:x", "kitchen_agents:boil"]
)
def test_agents_that_cannot_be_loaded(run, name):
    run("worker", name, "--drain", exit=2)


def test_a_retry_needs_a_task(run):
    run("submit", "boil", "--agent", "cook")
    run("retry", exit=3)
