"""Provisioned credentials (9.8): issued before the job is accepted, and revoked after its end, also after failures."""

from __future__ import annotations

import asyncio

from amends.arcp import Credential, Limits, Runtime
from amends.arcp.errors import PermissionDeniedError
from tests.arcp.raw import TOKENS, connected


class Gateway:
    """A provider that records which credentials are valid."""

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


async def wait_until_revoked(gateway, runtime):
    async with asyncio.timeout(100):
        while gateway.live or [row async for row in runtime._node.store.table("arcp.credentials").scan()]:
            await asyncio.sleep(0.01)


async def test_issued_at_acceptance_and_revoked_at_the_end(store_url, begin):
    """They are in `job.accepted` and in the agent's context, and invalid after the end; each job has its own."""
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
        await wait_until_revoked(gateway, runtime)
    job_id = (await raw.submit("using", "wait"))["payload"]["job_id"]
    await raw.until("job.event")
    await raw.send("job.cancel", {}, job_id=job_id)
    await raw.end(job_id)
    await wait_until_revoked(gateway, runtime)
    assert len(values) == 2
    await raw.close()


async def test_other_principals_do_not_see_them(begin):
    """7.6, 14: subscribers of the same principal see them; subscribers of others and listings do not."""
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


async def test_given_only_to_sessions_with_the_feature(begin):
    """Without a provider the feature is not offered; a session without the feature gets no credentials."""
    gateway = Gateway()
    runtime = await begin(credentials=gateway)
    raw = await connected(runtime, features=["ack"])
    assert "credentials" not in (await raw.submit("echo", 1))["payload"]
    assert not gateway.grants
    await raw.close()


async def test_a_provider_that_fails(begin, caplog):
    """The submission is refused, and the provider's message is not sent."""
    gateway = Gateway()
    gateway.broken = True
    runtime = await begin(credentials=gateway)
    raw = await connected(runtime)
    answer = await raw.submit("echo", 1)
    assert answer["payload"]["code"] == "INTERNAL_ERROR"
    assert "sk-123" not in str(raw.seen)
    await wait_until_revoked(gateway, runtime)
    await raw.close()


async def test_revocation_is_tried_again(begin, monkeypatch):
    """Revocation is repeated while the provider is unavailable."""
    from amends.arcp.runtime.credentials import lifecycle as credential_lifecycle

    monkeypatch.setattr(credential_lifecycle, "_FIRST_PAUSE", 0.01)
    gateway = Gateway()
    gateway.failures = 3
    runtime = await begin(credentials=gateway)
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await wait_until_revoked(gateway, runtime)
    await raw.close()


async def test_revocation_survives_a_crash(store_url, begin):
    """Another node revokes the credentials of a dead node's job."""
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
    await wait_until_revoked(gateway, runtime)


async def test_another_run_gets_new_credentials(begin):
    """The credentials of the previous run are invalid."""
    gateway = Gateway()
    runtime = await begin(credentials=gateway)
    raw = await connected(runtime)
    await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    await wait_until_revoked(gateway, runtime)
    again = (await raw.submit("flaky", {"fails": 1}, idempotency_key="k"))["payload"]
    assert again["credentials"][0]["value"] == "sk-2"
    await raw.end(again["job_id"])
    await wait_until_revoked(gateway, runtime)
    await raw.close()


async def test_a_store_with_credentials_is_private(begin, tmp_path):
    """The file is readable by its owner alone, also while it holds an outstanding credential."""
    runtime = await begin(f"sqlite:///{tmp_path}/jobs.db", credentials=Gateway())
    raw = await connected(runtime)
    await raw.submit("waiting")
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o077 == 0
    await raw.close()


async def test_an_issued_credential_in_an_error_is_masked(store_url, begin):
    """R4: its value, and no other, wherever the agent wrote it: followers of a job do not get its credentials."""
    gateway = Gateway()
    runtime = await begin(store_url, credentials=gateway)
    details = {
        "password": "hunter2",
        "target": "s3://other/",
        "at": "10.0.0.3",
        "n": [1, None, {"token": "tok_17"}],
    }

    async def quoting(input, ctx):
        value = ctx.credentials[0]["value"]
        quoted = {**details, "sent": f"Bearer {value}", value: [value]}
        for error in (
            PermissionDeniedError(f"{value} denied", details=quoted),
            {"code": "PERMISSION_DENIED", "message": f"{value} denied", "details": quoted},
        ):
            await ctx.tool_result("call", error=error)
        raise PermissionDeniedError(f"net.fetch denied for s3://other/ with {value}", details=quoted)

    runtime.register_agent("quoting", quoting)
    raw = await connected(runtime)
    accepted = (await raw.submit("quoting", None))["payload"]
    (credential,) = accepted["credentials"]
    masked = {**details, "sent": "Bearer [redacted]", "[redacted]": ["[redacted]"]}
    for _ in range(2):
        error = (await raw.until("job.event"))["payload"]["body"]["error"]
        assert (error["message"], error["details"]) == ("[redacted] denied", masked)
    end = (await raw.end(accepted["job_id"]))["payload"]
    assert end["message"] == "net.fetch denied for s3://other/ with [redacted]"
    assert end["details"] == masked
    assert credential["value"] not in str(end)
