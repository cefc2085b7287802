"""Provisioned credentials (9.8): minted before the job is accepted, worthless after it has ended, whatever happens."""

from __future__ import annotations

import asyncio

from amends.arcp import Credential, Limits, Runtime
from tests.arcp.raw import TOKENS, connected


class Gateway:
    """A provider that remembers what is live."""

    def __init__(self):
        self.live = {}
        self.grants = []
        self.failures = 0
        self.broken = False

    async def issue(self, grant):
        if self.broken:
            raise RuntimeError("upstream says no: key sk-123")
        self.grants.append(grant)
        self.live[grant.job_id] = f"sk-{len(self.grants)}"
        return [
            Credential(
                id=f"cred-{grant.job_id}",
                value=self.live[grant.job_id],
                endpoint="https://gateway.example/v1",
                profile="openai",
                constraints={"cost.budget": grant.lease.get("cost.budget", [])},
            )
        ]

    async def revoke(self, job_id, ids):
        if self.failures > 0:
            self.failures -= 1
            raise ConnectionError("upstream is away")
        self.live.pop(job_id, None)


async def using(input, ctx):
    await ctx.status("using")
    if input == "wait":
        await asyncio.Event().wait()
    return ctx.credentials[0]["value"]


async def gone(gateway, runtime):
    async with asyncio.timeout(100):
        while gateway.live or [row async for row in runtime._node.store.table("arcp.credentials").scan()]:
            await asyncio.sleep(0.01)


async def test_from_acceptance_to_the_end(store_url, begin):
    """In job.accepted, in the agent's hands, and worthless afterwards; each job has its own."""
    gateway = Gateway()
    runtime = await begin(store_url, credentials=gateway)
    runtime.register_agent("using", using)
    raw = await connected(runtime)
    assert "provisioned_credentials" in raw.welcome["capabilities"]["features"]
    lease = {"cost.budget": ["USD:5.00"]}
    values = set()
    for agent, input, ending in (("using", None, "job.result"), ("crashing", None, "job.error")):
        accepted = (await raw.submit(agent, input, lease_request=lease))["payload"]
        (credential,) = accepted["credentials"]
        assert credential["constraints"] == lease
        assert credential["endpoint"] == "https://gateway.example/v1"
        values.add(credential["value"])
        end = await raw.end(accepted["job_id"])
        assert end["type"] == ending
        if agent == "using":
            assert end["payload"]["result"] == credential["value"]
        await gone(gateway, runtime)
    job_id = (await raw.submit("using", "wait"))["payload"]["job_id"]
    await raw.until("job.event")
    await raw.send("job.cancel", {}, job_id=job_id)
    await raw.end(job_id)
    await gone(gateway, runtime)
    assert len(values) == 2
    await raw.close()


async def test_others_do_not_see_them(begin):
    """7.6, 14: a subscriber of the same principal does, any other does not, and no listing does."""
    gateway = Gateway()
    runtime = await begin(credentials=gateway, may_observe=lambda observer, owner: True)
    runtime.register_agent("using", using)
    raw, same, other = [
        await connected(runtime, token) for token in ("alice-token", "alice-token", "bob-token")
    ]
    job_id = (await raw.submit("using", "wait"))["payload"]["job_id"]
    for session, sees in ((same, True), (other, False)):
        request = await session.send("job.subscribe", {"job_id": job_id, "history": True})
        subscribed = (await session.answer(request))["payload"]
        assert ("credentials" in subscribed) is sees
        request = await session.send("session.list_jobs", {})
        assert "sk-" not in str(await session.answer(request))
    assert "sk-" not in str(other.seen)
    assert "sk-" not in repr(Credential(id="i", value="sk-1", endpoint="e"))
    await asyncio.gather(raw.close(), same.close(), other.close())


async def test_not_offered_not_named_not_given(begin):
    """Without a provider the feature is not offered; whoever does not name it gets none."""
    gateway = Gateway()
    runtime = await begin(credentials=gateway)
    raw = await connected(runtime, features=["ack"])
    assert "credentials" not in (await raw.submit("echo", 1))["payload"]
    assert not gateway.grants
    await raw.close()


async def test_a_provider_that_fails(begin, caplog):
    """No credentials, no job; and nothing of what it said leaves."""
    gateway = Gateway()
    gateway.broken = True
    runtime = await begin(credentials=gateway)
    raw = await connected(runtime)
    answer = await raw.submit("echo", 1)
    assert answer["payload"]["code"] == "INTERNAL_ERROR"
    assert "sk-123" not in str(raw.seen)
    await gone(gateway, runtime)
    await raw.close()


async def test_revocation_is_tried_again(begin, monkeypatch):
    """An upstream that is away for a while."""
    from amends.arcp.runtime import credential_lifecycle

    monkeypatch.setattr(credential_lifecycle, "_FIRST_PAUSE", 0.01)
    gateway = Gateway()
    gateway.failures = 3
    runtime = await begin(credentials=gateway)
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await gone(gateway, runtime)
    await raw.close()


async def test_revocation_survives_a_crash(store_url, begin):
    """Whoever comes after revokes what the dead node has left."""
    gateway = Gateway()
    limits = {"node_lease": 0.3}
    dying = Runtime(store_url, tokens=TOKENS, limits=Limits(**limits), credentials=gateway)
    dying.register_agent("using", using)
    await dying.start()
    raw = await connected(dying)
    await raw.submit("using", "wait")
    await dying.abandon()
    assert gateway.live
    runtime = await begin(store_url, limits=limits, credentials=gateway)
    await gone(gateway, runtime)


async def test_a_further_run_gets_new_ones(begin):
    """Those of the run before are worthless."""
    gateway = Gateway()
    runtime = await begin(credentials=gateway)
    raw = await connected(runtime)
    await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    await gone(gateway, runtime)
    again = (await raw.submit("flaky", {"fails": 1}, idempotency_key="k"))["payload"]
    assert again["credentials"][0]["value"] == "sk-2"
    await raw.end(again["job_id"])
    await gone(gateway, runtime)
    await raw.close()
