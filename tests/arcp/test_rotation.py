"""Credentials whose value is replaced while their job runs (9.8.2): who gets the new value, and the old one's end."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp import Credential, Limits, Runtime, connect
from amends.arcp.errors import InternalError
from amends.arcp.runtime.credentials import lifecycle as credential_lifecycle
from amends.arcp.runtime.credentials import rotation
from amends.stores import StoreUnavailableError
from tests.arcp.raw import TOKENS, connected, dial

SECRET = "sk-"


class Gateway:
    """A provider that records which values are valid."""

    def __init__(self, every=None):
        self.every = every
        self.live: dict[str, str] = {}
        """Value → id."""
        self.minted = 0
        self.fails = {"rotate": 0, "retire": 0, "revoke": 0}
        self.held: asyncio.Event | None = None
        self.wrong = None
        self.asked = 0

    def _mint(self, id):
        self.minted += 1
        value = f"{SECRET}{self.minted}"
        self.live[value] = id
        return Credential(id=id, value=value, endpoint="https://gateway.example/v1", rotate_after=self.every)

    def _fail(self, what):
        if self.fails[what] > 0:
            self.fails[what] -= 1
            raise ConnectionError(f"upstream is away: {SECRET}secret")

    async def issue(self, grant):
        return [self._mint(f"cred-{grant.job_id}-{name}") for name in ("a", "b")[: 1 + (self.every is None)]]

    async def revoke(self, job_id, ids):
        self._fail("revoke")
        self.live = {value: id for value, id in self.live.items() if id not in ids}

    async def rotate(self, grant, credential):
        assert grant.principal == "alice"
        self._fail("rotate")
        self.asked += 1
        if self.held is not None:
            await self.held.wait()
        return self._mint(self.wrong or credential.id)

    async def retire(self, job_id, credential):
        self._fail("retire")
        self.live.pop(credential.value, None)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Failed calls of a provider are repeated without a pause."""
    for module in (credential_lifecycle, rotation):
        monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)


async def until(condition):
    """Wait until a condition is true."""
    async with asyncio.timeout(100):
        while not condition():
            await asyncio.sleep(0.005)


async def rotating(input, ctx):
    """Rotates its credential as often as its input says."""
    values = [ctx.credentials[0]["value"]]
    for _ in range(input or 0):
        values.append((await ctx.rotate_credential(ctx.credentials[0]["id"]))["value"])
        assert ctx.credentials[0]["value"] == values[-1]
    return values


async def lasting(input, ctx):
    """Works until its credential was replaced so many times."""
    seen = [ctx.credentials[0]["value"]]
    while len(seen) <= input:
        await until(lambda: ctx.credentials[0]["value"] != seen[-1])
        seen.append(ctx.credentials[0]["value"])
    return seen


async def outstanding(runtime):
    return [row async for row in runtime.node.store.table("arcp.credentials").scan()]


async def settled(gateway, runtime):
    """Wait until no value is valid and no row is left."""
    async with asyncio.timeout(100):
        while gateway.live or await outstanding(runtime):
            await asyncio.sleep(0.005)


async def test_rotation_when_due_over_websocket(store_url, begin):
    """The client gets every new value in order, its handle has the newest, and only that one is valid."""
    gateway = Gateway(every=0.01)
    runtime = await begin(store_url, credentials=gateway)
    runtime.register_agent("lasting", lasting)
    async with (
        runtime.listen("127.0.0.1", 0) as server,
        connect(server.url, token="alice-token") as client,
    ):
        handle = await client.submit("lasting", 2)
        first = handle.credentials[0]
        assert first.keys() == {"id", "value", "endpoint", "scheme"}
        bodies = [
            event.body
            async for event in handle.events()
            if event.kind == "status" and event.body["phase"] == "credential_rotated"
        ]
        assert {body["id"] for body in bodies} == {first["id"]}
        values = [first["value"], *(body["value"] for body in bodies)]
        seen = await handle.done
        assert len(seen) == 3
        assert [value for value in values if value in seen] == seen
        assert handle.credentials == [{**first, "value": values[-1]}]
        await settled(gateway, runtime)


async def test_rotation_by_the_agent(store_url, begin):
    """The agent replaces a value that its endpoint no longer accepts; the old value is retired."""
    gateway = Gateway()
    runtime = await begin(store_url, credentials=gateway)
    runtime.register_agent("rotating", rotating)
    raw = await connected(runtime)
    end = await raw.run("rotating", 2)
    events = [m["payload"]["body"] for m in raw.events(end["job_id"], "status")]
    assert [body["value"] for body in events] == end["payload"]["result"][1:]
    assert {body["phase"] for body in events} == {"credential_rotated"}
    assert len(set(end["payload"]["result"])) == 3
    await settled(gateway, runtime)
    await raw.close()


async def test_other_principals_do_not_get_the_value(store_url, begin):
    """14: subscribers of other principals get no value, live or replayed, and their events have no gap."""
    gateway = Gateway()
    runtime = await begin(store_url, credentials=gateway, may_observe=lambda observer, owner: True)
    go_on, asked = asyncio.Event(), asyncio.Event()

    async def twice(input, ctx):
        await ctx.rotate_credential(ctx.credentials[0]["id"])
        asked.set()
        await go_on.wait()
        await ctx.rotate_credential(ctx.credentials[0]["id"])

    runtime.register_agent("twice", twice)
    raw, same, other = [
        await connected(runtime, token) for token in ("alice-token", "alice-token", "bob-token")
    ]
    job_id = (await raw.submit("twice"))["payload"]["job_id"]
    await asked.wait()
    for session in (same, other):
        request = await session.send("job.subscribe", {"job_id": job_id, "history": True})
        subscribed = (await session.answer(request))["payload"]
        assert ("credentials" in subscribed) is (session is same)
        if session is same:
            assert subscribed["credentials"][0]["value"] == f"{SECRET}3"
    go_on.set()
    for session in (raw, same, other):
        await session.end(job_id)
    values = {}
    for name, session in (("raw", raw), ("same", same), ("other", other)):
        bodies = [m["payload"]["body"] for m in session.events(job_id, "status")]
        assert [body["phase"] for body in bodies] == ["credential_rotated"] * 2
        values[name] = [body.get("value") for body in bodies]
    assert values == {"raw": ["sk-3", "sk-4"], "same": ["sk-3", "sk-4"], "other": [None, None]}
    replayed = dial(runtime)
    await replayed.hello("bob-token", resume=other.resume_block(0))
    await replayed.end(job_id)
    assert [m["event_seq"] for m in replayed.seen if "event_seq" in m] == [1, 2, 3]
    assert SECRET not in str(other.seen) + str(replayed.seen)
    for session in (raw, same, other, replayed):
        await session.close()


async def test_a_resumed_session_does_not_get_more(begin):
    """After a resume, a feed still removes the values."""
    gateway = Gateway()
    runtime = await begin(credentials=gateway, may_observe=lambda observer, owner: True)
    go_on = asyncio.Event()

    async def later(input, ctx):
        await ctx.status("started")
        await go_on.wait()
        await ctx.rotate_credential(ctx.credentials[0]["id"])

    runtime.register_agent("later", later)
    raw, other = await connected(runtime), await connected(runtime, "bob-token")
    job_id = (await raw.submit("later"))["payload"]["job_id"]
    await raw.until("job.event")
    await other.answer(await other.send("job.subscribe", {"job_id": job_id}))
    again = dial(runtime)
    await again.hello("bob-token", resume=other.resume_block())
    go_on.set()
    await again.end(job_id)
    assert [m["payload"]["body"] for m in again.events(job_id, "status")][-1].keys() == {"phase", "id"}
    for session in (raw, other, again):
        await session.close()


def test_the_command_line_hides_the_value(capsys):
    """Output in a pipe may end up in a log, so it does not contain the value."""
    from amends.arcp import Event
    from amends.commands.runtime.job_view import View

    body = {"phase": "credential_rotated", "id": "cred-1", "value": "sk-1"}
    View().event(Event("status", body))
    View().event(Event("status", {"phase": "x", "value": "kept"}))
    out = capsys.readouterr().out
    assert SECRET not in out
    assert "cred-1" in out
    assert "kept" in out


async def test_concurrent_rotations_share_one_result(begin):
    """Concurrent rotations of one credential share a result; other credentials are rotated independently."""
    gateway = Gateway()
    gateway.held = asyncio.Event()
    runtime = await begin(credentials=gateway)

    async def both(input, ctx):
        a, b = (one["id"] for one in ctx.credentials)
        asked = asyncio.gather(*(ctx.rotate_credential(id) for id in (a, a, b)))
        await asyncio.sleep(0)
        gateway.held.set()
        first, second, other = await asked
        return [first == second, first["id"] == a, other["id"] == b, len(ctx.credentials)]

    runtime.register_agent("both", both)
    raw = await connected(runtime)
    assert (await raw.run("both"))["payload"]["result"] == [True, True, True, 2]
    assert gateway.minted == 4
    await settled(gateway, runtime)
    await raw.close()


async def test_a_provider_that_fails(store_url, begin, monkeypatch):
    """The agent gets a generic error and keeps its value; due rotations and retirements are repeated."""
    runtime = await begin(store_url, credentials=(gateway := Gateway()))

    async def failing(input, ctx):
        gateway.fails = {"rotate": 1, "retire": 3, "revoke": 2}
        with pytest.raises(ValueError, match="no credential"):
            await ctx.rotate_credential("unknown")
        with pytest.raises(InternalError) as caught:
            await ctx.rotate_credential(ctx.credentials[0]["id"])
        assert SECRET not in str(caught.value)
        old = ctx.credentials[0]["value"]
        gateway.wrong = "another id"
        with pytest.raises(InternalError):
            await ctx.rotate_credential(ctx.credentials[0]["id"])
        gateway.wrong = None
        assert ctx.credentials[0]["value"] == old
        await ctx.rotate_credential(ctx.credentials[0]["id"])
        await until(lambda: old not in gateway.live)
        monkeypatch.setattr(rotation, "_MINT_TIMEOUT", 0.01)
        gateway.held = asyncio.Event()
        with pytest.raises(InternalError):
            await ctx.rotate_credential(ctx.credentials[0]["id"])
        return "checked"

    runtime.register_agent("failing", failing)
    raw = await connected(runtime)
    end = await raw.run("failing")
    assert end["payload"]["result"] == "checked"
    await settled(gateway, runtime)
    await raw.close()


async def test_due_rotations_are_retried(begin):
    """The provider was unavailable when a value was due."""
    gateway = Gateway(every=0.01)
    gateway.fails["rotate"] = 3
    runtime = await begin(credentials=gateway)
    runtime.register_agent("lasting", lasting)
    raw = await connected(runtime)
    assert len((await raw.run("lasting", 1))["payload"]["result"]) == 2
    assert gateway.fails["rotate"] == 0
    await settled(gateway, runtime)
    await raw.close()


async def test_a_job_that_ends_during_a_rotation(store_url, begin):
    """A value that is issued after the job's end is revoked too."""
    gateway = Gateway()
    gateway.held = asyncio.Event()
    runtime = await begin(store_url, credentials=gateway)
    asked = asyncio.Event()

    async def impatient(input, ctx):
        task = asyncio.ensure_future(ctx.rotate_credential(ctx.credentials[0]["id"]))
        await asyncio.sleep(0)
        asked.set()
        task.cancel()
        return "gone"

    runtime.register_agent("impatient", impatient)
    raw = await connected(runtime)
    assert (await raw.run("impatient"))["payload"]["result"] == "gone"
    assert len(await outstanding(runtime)) == 1
    gateway.held.set()
    await settled(gateway, runtime)
    await raw.close()


async def test_a_crash_leaves_no_old_value(store_url, begin, monkeypatch):
    """The node that takes the job over has the newest value, retires old ones and rotates when due."""
    monkeypatch.setattr(rotation, "_TRIES", 1)
    gateway = Gateway(every=0.05)
    gateway.fails["retire"] = 1
    taken_over = asyncio.Event()
    seen = []

    async def enduring(input, ctx):
        seen.append(ctx.credentials[0]["value"])
        await ctx.status("started")
        if len(seen) == 1:
            await until(lambda: gateway.fails["retire"] == 0)
            gateway.every = None
            taken_over.set()
            await asyncio.Event().wait()
        await until(lambda: ctx.credentials[0]["value"] != seen[-1])
        return ctx.credentials[0]["value"]

    limits = {"node_lease": 0.5}
    dying = Runtime(store_url, tokens=TOKENS, limits=Limits(**limits), credentials=gateway)
    dying.register_agent("enduring", enduring, repeatable=True)
    await dying.start()
    raw = await connected(dying)
    job_id = (await raw.submit("enduring"))["payload"]["job_id"]
    await taken_over.wait()
    await dying.abandon()
    gateway.every = None
    runtime = await begin(store_url, limits=limits, credentials=gateway)
    runtime.register_agent("enduring", enduring, repeatable=True)
    watcher = await connected(runtime)
    request = await watcher.send("job.subscribe", {"job_id": job_id, "history": True})
    await watcher.answer(request)
    end = await watcher.end(job_id)
    assert end["payload"]["result"] not in seen
    assert seen[1] != seen[0]
    await settled(gateway, runtime)
    await watcher.close()


async def test_maintenance_retires_old_values(begin, monkeypatch):
    """The provider was unavailable for longer than the retirement was tried."""
    monkeypatch.setattr(rotation, "_TRIES", 1)
    gateway = Gateway()
    gateway.fails["retire"] = 1
    runtime = await begin(credentials=gateway, limits={"node_lease": 0.1})

    async def patient(input, ctx):
        old = ctx.credentials[0]["value"]
        await ctx.rotate_credential(ctx.credentials[0]["id"])
        await until(lambda: old not in gateway.live)
        return "retired"

    runtime.register_agent("patient", patient)
    raw = await connected(runtime)
    assert (await raw.run("patient"))["payload"]["result"] == "retired"
    await settled(gateway, runtime)
    await raw.close()


async def test_rotate_after_without_a_rotating_provider(begin, caplog):
    """`rotate_after` without `rotate`: the submission is refused, and no credential stays valid."""

    class Plain:
        revoked: list[tuple[str, ...]] = []

        async def issue(self, grant):
            return [Credential(id="c", value="sk-1", endpoint="e", rotate_after=1.0)]

        async def revoke(self, job_id, ids):
            self.revoked.append(tuple(ids))

    runtime = await begin(credentials=Plain())
    raw = await connected(runtime)
    assert (await raw.submit("echo"))["payload"]["code"] == "INTERNAL_ERROR"
    await until(lambda: Plain.revoked == [()])
    await raw.close()


async def test_another_run_waits_for_the_revocation(store_url, begin, monkeypatch):
    """Credentials of two runs are never valid at the same time; a run that gets none fails, and can be repeated."""
    monkeypatch.setattr(credential_lifecycle, "_TRIES", 1)
    gateway = Gateway()
    gateway.fails["revoke"] = 2
    runtime = await begin(store_url, credentials=gateway)
    raw = await connected(runtime)
    work = {"fails": 1}
    assert (await raw.run("flaky", work, idempotency_key="k"))["payload"]["code"] == "INTERNAL_ERROR"
    await until(lambda: gateway.fails["revoke"] == 1)
    assert gateway.live
    end = await raw.run("flaky", work, idempotency_key="k")
    assert (end["payload"]["message"], end["payload"]["retryable"]) == (
        "Credentials could not be issued",
        True,
    )
    assert (await raw.run("flaky", work, idempotency_key="k"))["payload"]["result"] == {"run": 3}
    await settled(gateway, runtime)
    await raw.close()


async def test_a_store_that_fails_during_a_rotation(begin, monkeypatch, caplog):
    """A store failure while issuing, rotating, retiring or revoking: no call hangs, and in the end no value is valid."""
    gateway = Gateway()
    runtime = await begin(credentials=gateway, limits={"node_lease": 0.1})
    table, failing = runtime.node.store.table, set()

    def fail(name, what):
        async def away(*given, **more):
            raise StoreUnavailableError("away", executed="no")

        if what in failing:
            failing.discard(what)
            return away
        return None

    class Table:
        def __init__(self, real):
            self._real = real

        def __getattr__(self, name):
            return fail(self._real.name, name) or getattr(self._real, name)

    monkeypatch.setattr(
        runtime.node.store,
        "table",
        lambda name: Table(table(name)) if name == "arcp.credentials" else table(name),
    )

    async def unlucky(input, ctx):
        id, old = ctx.credentials[0]["id"], ctx.credentials[0]["value"]
        for what in ("get", "put"):
            failing.add(what)
            with pytest.raises(InternalError):
                await ctx.rotate_credential(id)
            assert not failing
            assert ctx.credentials[0]["value"] == old
        await until(lambda: len(gateway.live) == 2)
        await ctx.rotate_credential(id)
        return "done"

    runtime.register_agent("unlucky", unlucky)
    raw = await connected(runtime)
    failing.add("put")
    assert (await raw.submit("echo"))["payload"]["code"] == "INTERNAL_ERROR"
    assert (await raw.run("unlucky"))["payload"]["result"] == "done"
    await settled(gateway, runtime)
    accepted = (await raw.submit("waiting"))["payload"]
    await raw.until("job.event")
    failing.add("delete")
    await raw.send("job.cancel", {}, job_id=accepted["job_id"])
    await raw.end(accepted["job_id"])
    await settled(gateway, runtime)
    assert SECRET not in str([m for m in raw.seen if m["type"] == "job.error"])
    await raw.close()


async def test_revoked_credentials_are_not_rotated(begin):
    """Another node has ended the job: there is nothing to rotate, and the tries end."""
    gateway = Gateway()
    runtime = await begin(credentials=gateway)

    async def orphaned(input, ctx):
        await runtime.node.store.table("arcp.credentials").delete(ctx.job_id)
        with pytest.raises(InternalError) as caught:
            await ctx.rotate_credential(ctx.credentials[0]["id"])
        return caught.value.retryable

    runtime.register_agent("orphaned", orphaned)
    raw = await connected(runtime)
    assert (await raw.run("orphaned"))["payload"]["result"] is False
    assert gateway.minted == 2
    await raw.close()


async def test_another_node_has_replaced_the_value(store_url, begin):
    """The row has changed while a value was issued: that value is retired."""
    gateway = Gateway()
    gateway.held = asyncio.Event()
    runtime = await begin(store_url, credentials=gateway)

    async def beaten(input, ctx):
        id = ctx.credentials[0]["id"]
        asked = asyncio.ensure_future(ctx.rotate_credential(id))
        await until(lambda: gateway.asked)
        table = runtime.node.store.table("arcp.credentials")
        row = await table.get(ctx.job_id)
        changed = row.value.replace(ctx.credentials[0]["value"].encode(), b"sk-other")
        await table.put(ctx.job_id, changed)
        gateway.live["sk-other"] = id
        gateway.held.set()
        with pytest.raises(InternalError):
            await asked
        await until(lambda: "sk-3" not in gateway.live)
        return "beaten"

    runtime.register_agent("beaten", beaten)
    raw = await connected(runtime)
    assert (await raw.run("beaten"))["payload"]["result"] == "beaten"
    assert gateway.minted == 3
    await settled(gateway, runtime)
    await raw.close()
