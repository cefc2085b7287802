"""Streamed results for sessions that take no chunks: beside other events, of a further run, and when they are gone."""

from __future__ import annotations

from amends.arcp.errors import InternalError
from tests.arcp.raw import connected


async def telling(input, ctx):
    """Streams, says something, and may fail first."""
    if ctx.run <= input.get("fails", 0):
        raise InternalError("again")
    async with ctx.result_chunks() as result:
        await result.write("a" * input.get("size", 1))
    await ctx.log("done")


async def test_beside_other_events(store_url, begin):
    """What is sent together with it is sent as it is, in its place."""
    runtime = await begin(store_url)
    runtime.register_agent("telling", telling)
    raw = await connected(runtime, features=[])
    end = await raw.run("telling", {"size": 3})
    assert end["payload"]["result"] == "aaa"
    kinds = [m["payload"].get("kind", m["type"]) for m in raw.seen if "event_seq" in m]
    assert kinds == ["log", "job.result"]
    await raw.close()


async def test_of_a_further_run(store_url, begin):
    """It says of which, whether it could be sent or not."""
    runtime = await begin(store_url, limits={"result_bytes": 200})
    runtime.register_agent("telling", telling)
    raw = await connected(runtime, features=[])
    for size, key in ((3, "small"), (300, "large")):
        asked = {"size": size, "fails": 1}
        assert (await raw.run("telling", asked, idempotency_key=key))["payload"]["code"] == "INTERNAL_ERROR"
        end = await raw.run("telling", asked, idempotency_key=key)
        assert end["payload"]["run"] == 2
        assert (end["type"] == "job.result") is (size == 3)
    await raw.close()


async def test_what_is_no_longer_kept(begin, monkeypatch):
    """The job was forgotten before its result was read: the session is told that it has succeeded, and no more."""
    runtime = await begin()
    runtime.register_agent("telling", telling)
    raw = await connected(runtime, features=[])

    async def nothing(job_id):
        for found in ():
            yield found

    monkeypatch.setattr(runtime.node.ledger, "history", nothing)
    end = await raw.run("telling", {"size": 3})
    assert (end["type"], end["payload"]["message"]) == ("job.error", "The result is no longer kept")
    assert end["payload"]["details"] == {"result_size": 3, "feature": "result_chunk", "executed": "yes"}
    await raw.close()
