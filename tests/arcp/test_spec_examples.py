"""The literal examples of the specification (draft 1.1): we read each of them, and our messages have their members."""

import json

import pytest

from amends.arcp import Credential
from amends.arcp.wire import Malformed, read, read_payload
from tests.arcp.raw import dial

FEATURES = [
    *("heartbeat", "ack", "list_jobs", "subscribe", "lease_expires_at", "cost.budget", "model.use"),
    *("provisioned_credentials", "progress", "result_chunk", "agent_versions"),
]
HELLO = {
    "client": {"name": "examplectl", "version": "0.4.1"},
    "auth": {"scheme": "bearer", "token": "alice-token"},
    "capabilities": {"encodings": ["json"], "features": FEATURES},
}
LEASE = {
    "fs.read": ["/workspace/myapp/**"],
    "fs.write": ["/workspace/myapp/src/**"],
    "cost.budget": ["USD:5.00"],
    "model.use": ["tier-fast/*"],
}
SUBMIT = {
    "agent": "echo@1.0.0",
    "input": {"a": 1},
    "lease_request": LEASE,
    "lease_constraints": {"expires_at": "2099-05-13T23:42:00Z"},
    "idempotency_key": "refactor-auth-2026-W19",
    "max_runtime_sec": 1800,
}
LISTING = {
    "filter": {"status": ["success", "running"], "agent": "echo", "created_after": "2026-05-13T00:00:00Z"},
    "limit": 100,
    "cursor": None,
}
# what the specification shows of each answer
ANSWERS = {
    "session.welcome": {
        "runtime": {"name": "", "version": ""},
        "resume_token": "",
        "resume_window_sec": 600,
        "heartbeat_interval_sec": 30,
        "capabilities": {"encodings": [], "features": [], "agents": []},
    },
    "job.accepted": {
        "job_id": "",
        "lease": {},
        "lease_constraints": {"expires_at": ""},
        "budget": {"USD": 5.0},
        "credentials": [],
        "accepted_at": "",
        "trace_id": "",
    },
    "session.jobs": {"request_id": "", "jobs": [], "next_cursor": None},
    "job.subscribed": {
        "job_id": "",
        "current_status": "",
        "agent": "",
        "lease": {},
        "lease_constraints": {"expires_at": ""},
        "budget": {"USD": 3.58},
        "parent_job_id": None,
        "trace_id": "",
        "subscribed_from": 1830,
        "replayed": False,
    },
    "session.pong": {"ping_nonce": "", "received_at": ""},
}
LISTED = {
    "job_id": "",
    "agent": "",
    "status": "",
    "lease": {},
    "parent_job_id": None,
    "created_at": "",
    "trace_id": "",
    "last_event_seq": 1822,
}
CREDENTIAL = {"id": "", "scheme": "bearer", "value": "", "endpoint": ""}


class Provider:
    async def issue(self, grant):
        return [Credential(id="cred_01J", value="sk-virt", endpoint="https://gateway.example.com/v1")]

    async def revoke(self, job_id, ids):
        pass


def assert_has(found, example, where=""):
    """Every member of the example is there, with a value of its type."""
    for name, value in example.items():
        assert name in found, f"{where}.{name}"
        if isinstance(value, dict):
            assert_has(found[name], value, f"{where}.{name}")
        elif value is not None and found[name] is not None:
            wanted = (
                (int, float)
                if isinstance(value, int | float) and not isinstance(value, bool)
                else type(value)
            )
            assert isinstance(found[name], wanted), f"{where}.{name}"


async def test_our_answers_have_the_members_of_the_examples(begin):
    """A whole session made of the examples' requests."""
    raw = dial(await begin(credentials=Provider()))
    await raw.send("session.hello", HELLO, session_id=None)
    welcome = await raw.receive()
    raw.session_id = welcome["session_id"]
    accepted = await raw.answer(
        await raw.send("job.submit", SUBMIT, trace_id="4bf92f3577b34da6a3ce929d0e0e4736")
    )
    job_id = accepted["payload"]["job_id"]
    await raw.end(job_id)
    subscribe = {"job_id": job_id, "from_event_seq": 0, "history": True}
    subscribed = await raw.answer(await raw.send("job.subscribe", subscribe))
    jobs = await raw.answer(await raw.send("session.list_jobs", LISTING))
    await raw.send("session.ack", {"last_processed_seq": 1})
    await raw.send("job.unsubscribe", {"job_id": job_id})
    await raw.send("session.ping", {"nonce": "p_01J", "sent_at": "2026-05-13T19:42:13.000Z"})
    pong = await raw.until("session.pong")
    for answer in (welcome, accepted, subscribed, jobs, pong):
        assert_has(answer["payload"], ANSWERS[answer["type"]], answer["type"])
        assert answer["session_id"] == raw.session_id
    assert_has(jobs["payload"]["jobs"][0], LISTED)
    assert_has(accepted["payload"]["credentials"][0], CREDENTIAL)
    assert (accepted["payload"]["lease"], accepted["payload"]["budget"]) == (LEASE, {"USD": 5.0})
    assert accepted["payload"]["lease_constraints"] == SUBMIT["lease_constraints"]
    assert pong["payload"]["ping_nonce"] == "p_01J"
    await raw.close()


EXAMPLES = [
    ("session.hello", HELLO),
    ("session.ping", {"nonce": "p_01J...", "sent_at": "2026-05-13T19:42:13.000Z"}),
    ("session.pong", {"ping_nonce": "p_01J...", "received_at": "2026-05-13T19:42:13.020Z"}),
    ("session.ack", {"last_processed_seq": 1827}),
    ("session.list_jobs", LISTING),
    ("job.submit", SUBMIT),
    ("job.subscribe", {"job_id": "job_01JABC...", "from_event_seq": 0, "history": True}),
    ("job.unsubscribe", {"job_id": "job_01JABC..."}),
    *ANSWERS.items(),
    ("job.event", {"kind": "progress", "ts": "2026-05-13T19:42:13Z", "body": {"current": 47, "total": 120}}),
    ("job.event", {"kind": "metric", "body": {"name": "cost.inference", "value": 0.0234, "unit": "USD"}}),
    (
        "job.result",
        {
            "final_status": "success",
            "result_id": "res_01J...",
            "result_size": 31_457_280,
            "summary": "137 chunks",
        },
    ),
]


@pytest.mark.parametrize(("type", "payload"), EXAMPLES, ids=[type for type, _ in EXAMPLES])
def test_the_examples_are_read(type, payload):
    """Also with members that a later version may add (section 5)."""
    frame = {
        "arcp": "1.1",
        "id": "01J...",
        "type": type,
        "session_id": "sess_...",
        "payload": payload,
        "later": 1,
    }
    message = read(json.dumps(frame).encode())
    assert not isinstance(message, Malformed)
    assert not isinstance(read_payload(message), Malformed)
