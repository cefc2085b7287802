"""Concurrent submissions with the same key: one job, credentials of one run, and a bounded number of tries."""

from __future__ import annotations

import asyncio

import pytest

from amends.stores import ConflictError
from tests.arcp.raw import connected
from tests.arcp.test_lifecycle import Gateway, using, wait_until_revoked


async def test_another_submission_wins_while_credentials_are_issued(store_url, begin):
    """The later submission joins the other's job, and the credentials issued for its own are revoked."""

    class Slow(Gateway):
        async def issue(self, grant):
            minted = await super().issue(grant)
            if len(self.grants) == 1:
                self.faster = (await other.submit("using", "wait", idempotency_key="k"))["payload"]
            return minted

    gateway = Slow()
    runtime = await begin(store_url, credentials=gateway)
    runtime.register_agent("using", using)
    raw, other = await connected(runtime), await connected(runtime)
    joined = (await raw.submit("using", "wait", idempotency_key="k"))["payload"]
    assert joined["job_id"] == gateway.faster["job_id"]
    assert joined["credentials"] == gateway.faster["credentials"]
    async with asyncio.timeout(100):
        while set(gateway.live) != {joined["job_id"]}:
            await asyncio.sleep(0.01)
    plain = await connected(runtime, features=[])
    assert "credentials" not in (await plain.submit("using", "wait", idempotency_key="k"))["payload"]
    await raw.send("job.cancel", {}, job_id=joined["job_id"])
    await raw.end(joined["job_id"])
    await wait_until_revoked(gateway, runtime)
    await asyncio.gather(raw.close(), other.close(), plain.close())


@pytest.mark.parametrize("step", ["accept", "rerun"])
async def test_tries_are_bounded(store_url, begin, monkeypatch, step):
    """If other submissions always win, the client is asked to submit again, and no capacity stays reserved."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    if step == "rerun":
        await raw.run("flaky", {"fails": 5}, idempotency_key="k")
    tries = 0

    async def beaten(*given, **more):
        nonlocal tries
        tries += 1
        raise ConflictError("arcp.keys", 0, None, "k")

    with monkeypatch.context() as patch:
        patch.setattr(runtime.node.ledger, step, beaten)
        answer = await raw.submit("flaky", {"fails": 5}, idempotency_key="k")
    assert (answer["payload"]["code"], answer["payload"]["retryable"]) == ("INTERNAL_ERROR", True)
    assert 1 < tries < 100
    assert not runtime.node.capacity.running
    assert not runtime.node.quota.here
    assert (await raw.run("flaky", {"fails": 5}, idempotency_key="k"))["type"] == "job.error"
    await raw.close()
