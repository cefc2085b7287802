"""The command `amends tasks`, with text and JSON output."""

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
    """A store with tasks that completed, failed, ask a question, and have a step to be verified."""
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
            from amends.tasks.journal import log_name

            await client.submit("pay", agent="travel-agent", id="doubt")
            records = [Started(at=1.0, step="pay", attempt=1), Doubted(at=2.0, step="pay"), Released(at=3.0)]
            await client.store.log(log_name("tasks", "doubt")).append(encode(records), last=1)

    asyncio.run(fill())
    return where


def run_tasks(capsys, *arguments, output="json"):
    assert run(["tasks", *arguments, "--output", output]) == 0
    out = capsys.readouterr().out
    return json.loads(out) if output == "json" else out


def test_the_list(url, capsys):
    """Newest first, filtered by status, with a limit."""
    listed = run_tasks(capsys, "list", "--store", url)
    assert listed["total"] == 5
    by_id = {task["id"]: task for task in listed["tasks"]}
    assert by_id["bad"]["code"] == "COORDINATION_FAILED"
    assert by_id["good"]["agent"] == "travel-agent"
    text = run_tasks(capsys, "list", "--store", url, "--limit", "1", output="text")
    assert "and 4 more" in text
    assert run_tasks(capsys, "list", "--store", url, "--status", "completed")["total"] == 1
    assert run_tasks(capsys, "list", "--store", url, "--name", "others", output="text") == "no tasks\n"


def test_the_statuses_are_those_of_tasks():
    """The command has its own list, so that `--help` does not import `amends.tasks`."""
    assert tuple(Status) == STATUSES


def test_one_task(url, capsys):
    """`show` has the response, the steps, and every attempt and wait in order."""
    seen = run_tasks(capsys, "show", "bad", "--store", url)
    assert seen["task"]["error"]["details"]["undone"] == ["hotel"]
    assert [step["state"] for step in seen["steps"]] == ["done", "failed"]
    whats = [line["what"] for line in seen["timeline"]]
    assert whats[0] == "submitted"
    assert whats[-5:] == ["failed", "undoing", "started", "finished", "ended"]
    text = run_tasks(capsys, "show", "good", "--store", url, output="text")
    assert "book, attempt 1" in text
    assert "MCP_RATE_LIMITED" in text
    assert "retry in 10 ms" in text
    assert "book, attempt 2" in text
    asks = run_tasks(capsys, "show", "asks", "--store", url, output="text")
    assert "asks: Where to?" in asks
    assert "\x1b" not in asks
    assert "verify whether it happened" in run_tasks(capsys, "show", "doubt", "--store", url, output="text")
    bad = run_tasks(capsys, "show", "bad", "--store", url, output="text")
    assert "undoing hotel, attempt 1" in bad


def test_sending_commands(url, capsys, monkeypatch):
    """The next worker applies answer, verify, cancel and retry."""
    monkeypatch.setenv("AMENDS_STORE", url)
    assert run_tasks(capsys, "answer", "asks", '{"city": "Rome"}')["task"]["id"] == "asks"
    assert "asks-too is" in run_tasks(capsys, "answer", "asks-too", "just text", output="text")
    run_tasks(capsys, "verify", "doubt", "--happened", "--result", '"seen"')
    run_tasks(capsys, "retry", "bad")
    run_tasks(capsys, "cancel", "bad")

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
    text = run_tasks(capsys, "show", "bad", output="text")
    assert "retried by request" in text
    assert "cancelled by request" in text
    assert "verified: it happened" in run_tasks(capsys, "show", "doubt", output="text")
    assert "was answered" in run_tasks(capsys, "show", "asks", output="text")


@pytest.mark.parametrize(
    ("arguments", "code", "exit"),
    [
        (["show", "unknown"], "NOT_FOUND", 4),
        (["cancel", "unknown"], "NOT_FOUND", 4),
        (["verify", "good", "--happened"], "VALIDATION_ERROR", 2),
        (["retry", "good"], "VALIDATION_ERROR", 2),
        (["list", "--store", "sqlite:////nowhere/x.db"], "VALIDATION_ERROR", 2),
        (["list", "--store", "pigeon:"], "VALIDATION_ERROR", 2),
        (["verify", "good"], "USAGE_ERROR", 3),
        (["list", "--status", "complete"], "VALIDATION_ERROR", 2),
    ],
)
def test_failures_are_envelopes(url, capfd, arguments, code, exit):
    """C7 holds for this command."""
    arguments = arguments if "--store" in arguments else [*arguments, "--store", url]
    assert run(["tasks", *arguments, "--output", "json"]) == exit
    envelope = json.loads(capfd.readouterr().out)
    Draft202012Validator(schema("envelope")).validate(envelope)
    assert envelope["error"]["code"] == code


def test_without_a_store():
    """The fix names the option and the environment variable."""
    done = amends("tasks", "list")
    assert done.returncode == 2
    fix = json.loads(done.stdout)["error"]["fix_required"]
    assert "--store" in fix
    assert "AMENDS_STORE" in fix
