"""Saying something to a task that moves on meanwhile, or is over, or is asked for in the wrong way."""

from functools import partial

import pytest

from amends.errors import task as errors
from amends.tasks import Agent, commands, entries
from amends.tasks.task_reader import log_name


def asking():
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return [ctx.ask("One?"), ctx.ask("Two?")]

    return agent


async def test_said_to_the_state_it_is_about(still):
    """Somebody was quicker: it is said about what is there now, not about what was."""
    still.register(asking())
    await still.submit("ask", id="t")
    await still.drain()
    quicker = [entries.encode([entries.Answered(at=1.0, step="ask", answer="theirs")])]

    class Busy:
        """A store on which somebody else answers just before every first append."""

        def __getattr__(self, name):
            return getattr(still.store, name)

        def log(self, name):
            return Log(still.store.log(name))

    class Log:
        def __init__(self, log):
            self._log = log

        def __getattr__(self, name):
            return getattr(self._log, name)

        async def append(self, entry, *, last):
            if quicker:
                await self._log.append(quicker.pop(), last=last)
            return await self._log.append(entry, last=last)

    async def heard(id):
        return False

    answer = partial(commands.answer, now=2.0, answer="ours", step=None)
    with pytest.raises(errors.InvalidFieldValueError):
        await commands.say(Busy(), "tasks", "t", answer, heard)
    assert [record.answer for record in await still.records("t") if isinstance(record, entries.Answered)] == [
        "theirs"
    ]


async def test_a_result_that_there_is_none_of(still):
    """Of a task that waits, was cancelled or failed: an error that says so."""
    still.register(asking())
    handle = await still.submit("ask", id="t")
    assert repr(handle) == "Handle('t')"
    await still.drain()
    with pytest.raises(errors.InvalidFieldValueError):
        await handle.result()
    await handle.cancel()
    await still.drain()
    with pytest.raises(errors.InvalidFieldValueError):
        await handle.result()
    assert (await handle.cancel()).status == "cancelled"
    agent = Agent("broken")

    @agent.capability(read_only=True)
    async def fail(payload):
        raise errors.KnowledgeNotFoundError

    still.register(agent)
    failed = await still.submit("fail")
    await still.drain()
    with pytest.raises(errors.KnowledgeNotFoundError):
        await failed.result()


async def test_a_deadline_that_is_none(still):
    """Refused with its field, before anything is stored."""
    still.register(asking())
    refused = await still.run("ask", deadline="tomorrow")
    assert (refused.error.code, refused.error.field) == ("INVALID_FIELD_VALUE", "/deadline")
    assert [each async for each in still.list()] == []


async def test_a_log_that_cannot_be(still, clock, caplog):
    """Records of another task's step: nobody guesses, nobody spins, the next sweep goes on with the others."""
    from amends.stores.errors import DamagedStoreError
    from amends.tasks.maintenance import sweep

    still.register(asking())
    for id in ("bad", "good"):
        await still.submit("ask", id=id)
    impossible = entries.encode([entries.Answered(at=1.0, step="other", answer=1)])
    await still.store.log(log_name("tasks", "bad")).append(impossible, last=1)
    assert await still.drain() == 2
    assert await still.drain() == 0
    assert "cannot be read" in caplog.text
    with pytest.raises(DamagedStoreError):
        await still.state("bad")
    assert (await still.get("good").response()).status == "input_required"
    await still.cancel("good")
    await still.drain()
    still._house.clock = lambda: 9e12
    assert await sweep(still.store, still._house, keep=3600) == 1
    assert [row.id async for row in still.list()] == ["bad"]
