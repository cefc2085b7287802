"""`amends tasks`: what a person and a program see of tasks on a store."""

import asyncio
import json

import pytest
from jsonschema import Draft202012Validator

from amends.commands.console import run
from amends.commands.tasks import STATUSES
from amends.errors import task as errors
from amends.schemas import schema
from amends.tasks import Agent, Orchestrator, Status, Step, sequence
from tests.commands.test_decode import amends


def travel():
    agent = Agent("travel-agent")

    @agent.capability(keyed=True, undo=lambda: None)
    async def book(what, ctx):
        if what == "moon":
            raise errors.KnowledgeNotFoundError
        if what == "busy" and ctx.attempt == 1:
            raise errors.McpRateLimitedError(retry_after=0.01)
        return what

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("Where to?\x1b[31m")

    @agent.capability
    async def pay(payload):
        return "paid"

    return agent


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A store with one task of every kind on it."""
    where = f"sqlite:///{tmp_path_factory.mktemp('tasks')}/tasks.db?synchronous=normal"

    async def fill():
        async with Orchestrator([travel()], store=where) as orchestrator:
            await orchestrator.run("book", "busy", id="good")
            plan = sequence(
                Step(name="hotel", type="book", payload="hotel"),
                Step(name="moon", type="book", payload="moon"),
            )
            await orchestrator.run(plan, id="bad")
            await orchestrator.run("ask", id="asks")
            await orchestrator.run("ask", id="asks-too")
        async with Orchestrator(store=where, worker=False) as client:
            from amends.tasks.entries import Doubted, Released, Started, encode
            from amends.tasks.task_reader import log_name

            await client.submit("pay", agent="travel-agent", id="doubt")
            gone = [Started(at=1.0, step="pay", attempt=1), Doubted(at=2.0, step="pay"), Released(at=3.0)]
            await client.store.log(log_name("tasks", "doubt")).append(encode(gone), last=1)

    asyncio.run(fill())
    return where


def shown(capsys, *words, output="json"):
    assert run(["tasks", *words, "--output", output]) == 0
    out = capsys.readouterr().out
    return json.loads(out) if output == "json" else out


def test_the_list(url, capsys):
    """Newest first, by status if asked, bounded."""
    listed = shown(capsys, "list", "--store", url)
    assert listed["total"] == 5
    by_id = {task["id"]: task for task in listed["tasks"]}
    assert by_id["bad"]["code"] == "COORDINATION_FAILED"
    assert by_id["good"]["agent"] == "travel-agent"
    text = shown(capsys, "list", "--store", url, "--limit", "1", output="text")
    assert "and 4 more" in text
    assert shown(capsys, "list", "--store", url, "--status", "completed")["total"] == 1
    assert shown(capsys, "list", "--store", url, "--name", "others", output="text") == "no tasks\n"


def test_the_statuses_are_those_that_tasks_have():
    """The command names them itself, so that its help need not load the tasks."""
    assert tuple(Status) == STATUSES


def test_one_task(url, capsys):
    """Its response, its steps, and every attempt and wait in order."""
    seen = shown(capsys, "show", "bad", "--store", url)
    assert seen["task"]["error"]["details"]["undone"] == ["hotel"]
    assert [step["state"] for step in seen["steps"]] == ["done", "failed"]
    whats = [line["what"] for line in seen["timeline"]]
    assert whats[0] == "submitted"
    assert whats[-4:] == ["failed", "undoing", "finished", "ended"]
    text = shown(capsys, "show", "good", "--store", url, output="text")
    assert "book, try 1" in text
    assert "MCP_RATE_LIMITED" in text
    assert "again in 10 ms" in text
    assert "book, try 2" in text
    asks = shown(capsys, "show", "asks", "--store", url, output="text")
    assert "asks: Where to?" in asks
    assert "\x1b" not in asks
    assert "somebody has to look" in shown(capsys, "show", "doubt", "--store", url, output="text")
    bad = shown(capsys, "show", "bad", "--store", url, output="text")
    assert "undoing hotel, try 1" in bad


def test_saying_things(url, capsys, monkeypatch):
    """answer, verify, cancel and retry are heard by whoever works next."""
    monkeypatch.setenv("AMENDS_STORE", url)
    assert shown(capsys, "answer", "asks", '{"city": "Rome"}')["task"]["id"] == "asks"
    assert "asks-too is" in shown(capsys, "answer", "asks-too", "just text", output="text")
    shown(capsys, "verify", "doubt", "--happened", "--result", '"seen"')
    shown(capsys, "retry", "bad")
    shown(capsys, "cancel", "bad")

    async def work():
        async with Orchestrator([travel()], store=url) as orchestrator:
            return [
                (await orchestrator.get(id).wait()).document() for id in ("asks", "asks-too", "doubt", "bad")
            ]

    asks, too, doubt, bad = asyncio.run(work())
    assert asks["result"] == {"city": "Rome"}
    assert too["result"] == "just text"
    assert doubt["result"] == "seen"
    assert bad["status"] == "cancelled"
    text = shown(capsys, "show", "bad", output="text")
    assert "tried again by request" in text
    assert "cancelled by request" in text
    assert "it had happened" in shown(capsys, "show", "doubt", output="text")
    assert "was answered" in shown(capsys, "show", "asks", output="text")


@pytest.mark.parametrize(
    ("words", "code", "exit"),
    [
        (["show", "nobody"], "NOT_FOUND", 4),
        (["cancel", "nobody"], "NOT_FOUND", 4),
        (["verify", "good", "--happened"], "VALIDATION_ERROR", 2),
        (["retry", "good"], "VALIDATION_ERROR", 2),
        (["list", "--store", "sqlite:////nowhere/x.db"], "VALIDATION_ERROR", 2),
        (["list", "--store", "pigeon:"], "VALIDATION_ERROR", 2),
        (["verify", "good"], "USAGE_ERROR", 3),
        (["list", "--status", "complete"], "VALIDATION_ERROR", 2),
    ],
)
def test_failures_are_envelopes(url, capfd, words, code, exit):
    """C7, for this command too."""
    words = words if "--store" in words else [*words, "--store", url]
    assert run(["tasks", *words, "--output", "json"]) == exit
    envelope = json.loads(capfd.readouterr().out)
    Draft202012Validator(schema("envelope")).validate(envelope)
    assert envelope["error"]["code"] == code


def test_without_a_store():
    """From the outside, as a program runs it."""
    done = amends("tasks", "list")
    assert done.returncode == 2
    assert "AMENDS_STORE" in json.loads(done.stdout)["error"]["message"]
