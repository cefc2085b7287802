"""Effects inside A2A agents, ARCP jobs and agent tasks, and `amends run --once`."""

from types import SimpleNamespace

import msgspec
import pytest
from a2a.client import ClientConfig  # noqa: F401 - skips early where a2a is missing

from amends.arcp import Runtime, connect
from amends.bindings.a2a import Client, guard
from amends.bindings.a2a.message_effects import key_of
from amends.commands import main
from amends.effects import AlreadyDoneError, Effects
from amends.errors.base import FaultError
from amends.tasks import Agent as TaskAgent
from amends.tasks import Orchestrator
from tests.bindings.agents import PATHS, Agent, agent_server, card, events_of, plain_client, request, works


async def test_an_a2a_agent_executes_a_keyed_message_once():
    """A repeated key gets the recorded events under its own task; without a key a message is executed as always."""
    agent = Agent(works)
    with agent_server(guard(agent, effects=Effects("memory:"))) as base:
        async with plain_client(base, PATHS[0]) as client:
            first, second = [
                await events_of(client, request("book it", metadata={"amends/key": "k"})) for _ in range(2)
            ]
            assert agent.calls == 1
            states = [
                [event for event in events if "task" in event or "statusUpdate" in event]
                for events in (first, second)
            ]
            assert len(states[0]) == len(states[1])
            await events_of(client, request("book it"))
            await events_of(client, request("book it"))
            assert agent.calls == 3
            other = await events_of(client, request("another", metadata={"amends/key": "k"}))
            assert "VALIDATION_ERROR" in str(other)
            assert agent.calls == 3


def test_an_a2a_key_belongs_to_its_sender():
    """Two users who send the same key have two effects; users who are not known share it."""

    def key(name):
        user = SimpleNamespace(is_authenticated=bool(name), user_name=name)
        message = SimpleNamespace(metadata={"amends/key": "k"})
        return key_of(SimpleNamespace(message=message, call_context=SimpleNamespace(user=user)))

    assert len({key("alice"), key("bob"), key("")}) == 3
    assert key("") == "k"


async def test_an_a2a_client_sends_the_key_of_the_effect():
    """A message that is sent inside an effect carries a key, so that the agent's ledger recognises a repeat."""
    agent, ours = Agent(works), Effects("memory:")
    outcome = {"found": False}

    @ours.once(verify=lambda day: outcome["found"], timeout=0.01)
    async def book(day):
        async with Client(card(base, PATHS[0])) as client:
            async for _ in client.send_message(request(day)):
                pass
        if agent.calls == 1:
            raise TimeoutError

    with agent_server(guard(agent, effects=Effects("memory:"))) as base:
        with pytest.raises(FaultError) as lost:
            await book("monday")
        assert lost.value.fault.executed == "no"
        # `verify` said that it did not happen, so the effect runs again; the agent's ledger knows better.
        agent.calls += 1
        await book("monday")
        assert agent.calls == 2


async def test_a_message_of_an_effect_has_an_id_and_the_key():
    """A message without an id gets one that is the same whenever the effect runs, and keeps the key of the effect."""
    sent, ours = [], Effects("memory:")

    async def note(context, updater):
        sent.append((context.message.message_id, dict(context.message.metadata).get("amends/key")))
        await works(context, updater)

    @ours.once
    async def book(day):
        message = request(day)
        message.message.ClearField("message_id")
        async with Client(card(base, PATHS[0])) as client:
            async for _ in client.send_message(message):
                pass

    with agent_server(guard(Agent(note))) as base:
        await book("monday")
    ((message_id, key),) = sent
    assert message_id == key
    assert key


async def test_effects_of_an_arcp_job_belong_to_the_job():
    """Two jobs with the same input have effects of their own; within one job a repeat is recognised."""
    effects, sent = Effects("memory:"), []

    @effects.once
    async def send(to):
        sent.append(to)

    async def agent(input, ctx):
        await send(input)
        try:
            await send(input)
        except AlreadyDoneError:
            return "once"
        return "twice"

    runtime = Runtime(tokens={"t": "tester"})
    runtime.register_agent("mailer", agent)
    async with runtime, connect(runtime, token="t") as client:
        for _ in range(2):
            assert await (await client.submit("mailer", "ann")).done == "once"
    assert sent == ["ann", "ann"]


async def test_effects_of_a_task_belong_to_its_step():
    """An attempt that is made again has the same scope, so its effect is not repeated."""
    effects, sent, attempts = Effects("memory:"), [], []
    mailer = TaskAgent("mailer")

    @effects.once
    async def send(to):
        sent.append(to)
        return "sent"

    @mailer.capability(idempotent=True)
    async def notify(to: str) -> str:
        attempts.append(to)
        try:
            result = await send(to)
        except AlreadyDoneError as done:
            return done.outcome
        if len(attempts) == 1:
            raise ConnectionResetError
        return result

    async with Orchestrator([mailer]) as orchestrator:
        response = await orchestrator.run("notify", "ann")
        assert (response.result, sent, len(attempts)) == ("sent", ["ann"], 2)
        await orchestrator.run("notify", "ann")
    assert sent == ["ann", "ann"]


def test_run_once(tmp_path, monkeypatch, capfd):
    """A command runs once per key; a failure that may have had its effect is in doubt; without a ledger it is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMENDS_STORE", "sqlite:///effects.db")

    def run(key, script, *options):
        return main(["run", "--once", key, *options, "--", "sh", "-c", script])

    assert [run("a", "echo x >> a") for _ in range(2)] == [0, 0]
    assert "succeeded before" in capfd.readouterr().err
    assert run("a", "echo x >> a", "--output", "json") == 0
    assert msgspec.json.decode(capfd.readouterr().out)["data"] == {"once": "a", "ran": False}
    assert run("a", "echo other") != 0
    assert [run("b", "echo x >> b; exit 1") for _ in range(2)] == [1, 1]
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "x\n"
    assert main(["effects", "verify", "run:b", "--not-happened"]) == 0
    assert run("b", "echo x >> b") == 0
    assert main(["run", "--once", "c", "--store", "", "--", "true"]) == 2
