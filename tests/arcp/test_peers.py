"""What the client of each published SDK gets. The hellos and the rules by which they match answers are from their sources."""

import asyncio

import pytest

from amends.arcp.runtime.server.peers import PEERS, identify
from amends.arcp.wire import FEATURES
from amends.arcp.wire.messages import Capabilities, Hello
from amends.arcp.wire.messages import Peer as Named
from tests.arcp.raw import connected
from tests.arcp.sent_frames import TYPESCRIPT, TYPESCRIPT_ID

ULID = "01JABCDEFGHJKMNPQRSTVWXYZ0"
UUID7 = "018f2c3d-4e5f-7a6b-8c7d-0123456789ab"
GO = (
    *("heartbeat", "ack", "list_jobs", "subscribe", "agent_versions", "lease_expires_at", "cost.budget"),
    *("model.use", "provisioned_credentials", "progress", "result_chunk"),
)
RUBY = {"client": None, "client_name": "shop", "client_version": "1"}
PYTHON = {"capabilities": {"encodings": ["json"], "features": list(FEATURES), "agents": []}}
HELLOS = {
    "typescript": {"id": TYPESCRIPT_ID, "features": TYPESCRIPT, "name": "demo"},
    "python": {"id": ULID, "more": PYTHON},
    "go": {"id": UUID7, "features": GO, "name": "arcp-go-client"},
    "java": {"id": ULID, "name": "arcp-client-java"},
    "ruby": {"id": UUID7, "more": RUBY},
    "unknown": {"id": TYPESCRIPT_ID, "features": ("subscribe", "ack"), "name": "shop"},
}


def hello(name, *features, agents=None):
    return Hello(client=Named(name, "1"), capabilities=Capabilities(["json"], list(features), agents))


@pytest.mark.parametrize(
    ("id", "sent", "sdk"),
    [
        (TYPESCRIPT_ID, hello("demo", *TYPESCRIPT), "typescript"),
        (TYPESCRIPT_ID, hello("demo", "ack", "progress"), "typescript"),
        (TYPESCRIPT_ID, hello("demo"), "typescript"),
        (TYPESCRIPT_ID, hello("demo", "progress", "ack"), "unknown"),
        (UUID7, hello("arcp-go-client", *GO), "go"),
        (UUID7, hello("shop", *GO), "go"),
        (UUID7, hello("shop", "ack"), "unknown"),
        (ULID, hello("arcp-client-java", *FEATURES), "java"),
        (ULID, hello("x", agents=[]), "python"),
        (ULID, hello("x", *TYPESCRIPT), ""),
        ("1", hello("x"), ""),
        ("1", Hello(), ""),
        (UUID7, Hello(client_name="shop"), "ruby"),
        (TYPESCRIPT_ID, hello("amends", "progress", "ack"), ""),
        (UUID7, hello("amends-worker"), ""),
    ],
)
def test_an_sdk_is_recognised_by_its_hello(id, sent, sdk):
    """By its name, the form of its ids, and the order of its features; any list of the TypeScript SDK's own is recognised."""
    assert identify(id, sent).name == sdk


def test_every_sdk_of_the_table_has_a_hello_here():
    assert HELLOS.keys() == PEERS.keys()


async def answers(begin, sdk, type, payload, job_id=None):
    """Return the frames that answer a request, up to the last one that may follow."""
    raw = await connected(await begin(), **HELLOS[sdk])
    more = {} if job_id is None else {"job_id": job_id}
    request = await raw.send(type, payload, **more)
    await raw.until(lambda m: m["payload"].get("request_id") == request or m["type"] == "job.error")
    if PEERS[sdk].refusal.name == "ACCEPTED_THEN_ERROR":
        await raw.until("job.error")
    frames = [m for m in raw.seen if m["type"] != "session.welcome"]
    await raw.close()
    return request, frames


@pytest.mark.parametrize(
    ("sdk", "types"),
    [
        ("typescript", ["job.error"]),
        ("python", ["job.accepted", "job.error"]),
        ("go", ["session.error"]),
        ("java", ["job.error"]),
        ("ruby", ["job.error"]),
        ("unknown", ["job.accepted", "job.error"]),
    ],
)
@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"agent": "nobody"}, "AGENT_NOT_AVAILABLE"),
        ({"agent": "echo@9"}, "AGENT_VERSION_NOT_AVAILABLE"),
        ({"agent": "Not A Name!"}, "INVALID_REQUEST"),
        ({"agent": "echo", "max_runtime_sec": "soon"}, "INVALID_REQUEST"),
    ],
)
async def test_a_refused_submission_is_matched(begin, sdk, types, payload, code):
    """Each SDK matches it by another member; none of them waits."""
    request, frames = await answers(begin, sdk, "job.submit", payload)
    assert [frame["type"] for frame in frames] == types
    end = frames[-1]
    assert end["payload"]["code"] == code
    if sdk == "java":
        assert end["id"] == request
        assert "job_id" not in end
    elif sdk == "go":
        assert end["payload"]["request_id"] == request
    elif sdk == "ruby":
        assert end["payload"]["reply_to"] == request
    elif sdk == "typescript":
        assert end["job_id"]
    else:
        assert frames[0]["payload"]["job_id"] == frames[0]["job_id"] == end["job_id"]


@pytest.mark.parametrize("sdk", ["go", "unknown"])
async def test_a_refused_cancellation_ends_no_job(begin, sdk):
    """The running job of another session goes on, and is not named in a way that ends a handle."""
    runtime = await begin()
    raw, other = await connected(runtime, **HELLOS[sdk]), await connected(runtime)
    job_id = (await other.submit("waiting"))["payload"]["job_id"]
    await raw.send("job.cancel", {}, job_id=job_id)
    await raw.run("echo", 1)
    assert not [m for m in raw.seen if m.get("job_id") == job_id]
    await asyncio.gather(raw.close(), other.close())


async def test_a_go_client_finds_its_result(begin):
    """It reads `output`; every other client reads `result`. One that may be either gets both."""
    runtime = await begin()
    for sdk, members in (("go", {"output"}), ("typescript", {"result"}), ("unknown", {"output", "result"})):
        raw = await connected(runtime, **HELLOS[sdk])
        payload = (await raw.run("echo", {"a": [1, None]}))["payload"]
        assert {name for name in ("output", "result") if name in payload} == members
        assert all(payload[name] == {"a": [1, None]} for name in members)
        await raw.close()


async def test_a_ruby_client_reads_ids_from_payloads(begin):
    """Its results and errors must have `job_id`, and answers `reply_to`."""
    raw = await connected(await begin(), **HELLOS["ruby"])
    accepted = await raw.submit("echo", 1)
    assert accepted["payload"]["reply_to"] == accepted["payload"]["request_id"]
    job_id = accepted["payload"]["job_id"]
    assert (await raw.end(job_id))["payload"]["job_id"] == job_id
    accepted = await raw.submit("raising", {"code": "NOT_OURS"})
    job_id = accepted["payload"]["job_id"]
    assert (await raw.end(job_id))["payload"]["job_id"] == job_id
    await raw.close()


@pytest.mark.parametrize("sdk", ["typescript", "unknown"])
@pytest.mark.parametrize(
    ("raised", "code"),
    [
        ({"code": "NOT_OURS", "retryable": True}, "INTERNAL_ERROR"),
        ({"code": "NOT_OURS", "retryable": False}, "CANCELLED"),
        ({"code": "INTERNAL_ERROR", "retryable": False}, "CANCELLED"),
        ({"code": "INTERNAL_ERROR", "retryable": True}, "INTERNAL_ERROR"),
    ],
)
async def test_a_code_that_an_sdk_drops_is_written_as_one_that_it_reads(begin, sdk, raised, code):
    """With the same `retryable`, and the code that was raised in the details."""
    raw = await connected(await begin(), **HELLOS[sdk])
    payload = (await raw.run("raising", raised))["payload"]
    assert (payload["code"], payload["retryable"]) == (code, raised["retryable"])
    if code != raised["code"]:
        assert payload["details"]["code"] == raised["code"]
    await raw.close()
