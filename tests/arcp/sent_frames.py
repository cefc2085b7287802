"""A session with every kind of message that our runtime sends."""

import time

from amends.arcp import Credential
from amends.arcp.wire import FEATURES, text_of
from tests.arcp.raw import connected, dial

LEASE = {"cost.budget": ["USD:5.00"], "agent.delegate": ["*"], "tool.call": ["*"], "model.use": ["fast/*"]}


class Provider:
    """Issues a credential for every job with models."""

    async def issue(self, grant):
        if "model.use" not in grant.lease:
            return []
        constraints = {"allowed_models": ["fast/*"]}
        id, endpoint = f"{grant.job_id}-key", "http://127.0.0.1/v1"
        return [Credential(id=id, value=f"key-{grant.job_id}", endpoint=endpoint, constraints=constraints)]

    async def revoke(self, job_id, ids):
        pass


async def sent_frames(begin, features=FEATURES, id=None):
    """Run jobs of every kind for a client with these features; returns all frames that the runtime sent."""
    runtime = await begin(limits={"heartbeat": 1.0, "unacknowledged": 20}, credentials=Provider())
    frames = []
    wrong = dial(runtime)
    await wrong.hello("wrong-token")
    raw = await connected(runtime, features=features, id=id)
    other = await connected(runtime)
    for agent, given in (
        ("echo", {"a": [1, None]}),
        ("echo", None),
        ("talking", None),
        ("streaming", {"pieces": ["a", "é"]}),
        ("streaming", {"pieces": ["a"], "binary": True}),
        ("yielding", {"pieces": ["a"]}),
        ("calling", None),
        ("spending", {"amounts": [0.25, "0.10"]}),
        ("spending", {"amounts": [9]}),
        ("delegating", {"agent": "echo", "input": 1}),
        ("delegating", {"agent": "nobody"}),
        ("delegating", {"agent": "echo", "lease": {"fs.read": ["/**"]}}),
        ("counting", {"count": 60}),
        ("everyday", None),
        ("crashing", None),
        ("exiting", None),
        *(("raising", {"code": code}) for code in CODES),
        ("raising", {"code": "NOT_OURS", "retryable": True, "details": {"a": 1}}),
        ("raising", {"code": "INTERNAL_ERROR", "retryable": False}),
    ):
        expires_at = text_of(time.time() + 60)
        await raw.run(agent, given, lease_request=LEASE, lease_constraints={"expires_at": expires_at})
    await raw.run("waiting", None, max_runtime_sec=0.05)
    job_id = (await raw.submit("waiting", trace_id="ab" * 16))["job_id"]
    subscribed = await other.send("job.subscribe", {"job_id": job_id, "history": True, "from_event_seq": 0})
    await other.answer(subscribed)
    await raw.send("job.cancel", {}, job_id=job_id)
    await raw.end(job_id)
    await raw.answer(await raw.send("session.list_jobs", {"limit": 2}))
    await raw.answer(await raw.send("session.list_jobs", {"limit": 100}))
    for agent in ("nobody", "Not A Name!", "echo@9"):
        await raw.submit(agent)
    for given in (1, 2):
        await raw.submit("echo", given, idempotency_key="k")
    for type in ("job.subscribe", "job.cancel"):
        await raw.answer(await raw.send(type, {"job_id": "job_x"}, job_id="job_x"))
    await raw.send("session.ping", {"nonce": "n", "sent_at": text_of(time.time())})
    await raw.until("session.pong")
    await raw.until("session.ping")
    await raw.send("session.close", {})
    await raw.until("session.closed")
    for each in (wrong, other, raw):
        await each.close()
        frames += each.seen
    return frames


TYPESCRIPT = (
    "heartbeat",
    "ack",
    "list_jobs",
    "subscribe",
    "lease_expires_at",
    "cost.budget",
    "progress",
    "result_chunk",
    "agent_versions",
    "model.use",
    "provisioned_credentials",
)
"""The features in the hello of the TypeScript SDK, in its order."""
TYPESCRIPT_ID = "msg_01JABCDEFGHJKMNPQRSTVWXYZ0"
"""An id as that SDK writes it."""
CODES = (
    "INVALID_REQUEST",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "JOB_NOT_FOUND",
    "AGENT_NOT_AVAILABLE",
    "AGENT_VERSION_NOT_AVAILABLE",
    "CANCELLED",
    "TIMEOUT",
    "INTERNAL_ERROR",
    "LEASE_SUBSET_VIOLATION",
    "LEASE_EXPIRED",
    "BUDGET_EXHAUSTED",
    "RESUME_WINDOW_EXPIRED",
    "HEARTBEAT_LOST",
    "DUPLICATE_KEY",
)
