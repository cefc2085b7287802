"""Streamed results for sessions without chunks: between other events, of a later run, and after their deletion."""

from __future__ import annotations

from amends.arcp.errors import InternalError
from tests.arcp.raw import connected


async def streaming(input, ctx):
    """Streams a result and logs a line; fails in its first runs if requested."""
    if ctx.run <= input.get("fails", 0):
        raise InternalError("again")
    async with ctx.result_chunks() as result:
        await result.write("a" * input.get("size", 1))
    await ctx.log("done")


async def test_between_other_events(store_url, begin):
    """Other events in the same batch are sent unchanged and in order."""
    runtime = await begin(store_url)
    runtime.register_agent("streamer", streaming)
    raw = await connected(runtime, features=[])
    end = await raw.run("streamer", {"size": 3})
    assert end["payload"]["result"] == "aaa"
    kinds = [m["payload"].get("kind", m["type"]) for m in raw.seen if "event_seq" in m]
    assert kinds == ["log", "job.result"]
    await raw.close()


async def test_of_a_later_run(store_url, begin):
    """The message contains the run, whether the result could be sent or not."""
    runtime = await begin(store_url, limits={"result_bytes": 200})
    runtime.register_agent("streamer", streaming)
    raw = await connected(runtime, features=[])
    for size, key in ((3, "small"), (300, "large")):
        asked = {"size": size, "fails": 1}
        assert (await raw.run("streamer", asked, idempotency_key=key))["payload"]["code"] == "INTERNAL_ERROR"
        end = await raw.run("streamer", asked, idempotency_key=key)
        assert end["payload"]["run"] == 2
        assert (end["type"] == "job.result") is (size == 3)
    await raw.close()


async def test_chunks_that_are_no_longer_stored(begin, monkeypatch):
    """The job was deleted before its result was read: the session gets an error with `executed` "yes"."""
    runtime = await begin()
    runtime.register_agent("streamer", streaming)
    raw = await connected(runtime, features=[])

    async def nothing(job_id):
        for found in ():
            yield found

    monkeypatch.setattr(runtime.node.ledger, "history", nothing)
    end = await raw.run("streamer", {"size": 3})
    assert (end["type"], end["payload"]["message"]) == ("job.error", "The result is no longer stored")
    assert end["payload"]["details"] == {"result_size": 3, "feature": "result_chunk", "executed": "yes"}
    await raw.close()
