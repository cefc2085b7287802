"""The payloads of all messages, as we write them and as peers do."""

from __future__ import annotations

import json

import msgspec
import pytest
from arcp._messages.session import SessionResume

from amends.arcp import wire
from amends.arcp.wire import Envelope, Malformed
from amends.arcp.wire import messages as m
from tests.arcp.test_envelope import frame


def payload(type, value):
    message = wire.read(json.dumps({"arcp": "1", "id": "x", "type": type, "payload": value}))
    assert isinstance(message, Envelope)
    return wire.read_payload(message)


def test_resuming_from_the_beginning():
    """0 is written, because a published peer requires it."""
    written = json.loads(msgspec.json.encode(m.Hello(resume=m.Resume("sess_1", "x", 0))))["resume"]
    assert written == {"session_id": "sess_1", "resume_token": "x", "last_event_seq": 0}
    assert SessionResume.model_validate(written).last_event_seq == 0
    assert (
        payload("session.hello", {"resume": {"session_id": "s", "resume_token": "x"}}).resume.last_event_seq
        == 0
    )


def test_payloads_that_are_not_objects():
    """A payload that was skipped while reading the envelope may be invalid; reading it reports that."""
    broken = Envelope("1", "x", "job.submit", payload=msgspec.Raw(b'{"agent":'))
    assert wire.payload_of(broken) is None
    assert wire.read_payload(broken).reason == "the payload of job.submit cannot be read"
    # Skipping does not check escapes, so an invalid one is not noticed; deep brackets are allowed.
    odd = wire.read(frame(payload={"a": 1}).replace('{"a": 1}', '{"a": "\\q", "b": [' + "[]," * 300 + "[]]}"))
    assert isinstance(odd, Malformed) or wire.payload_of(odd) is None


@pytest.mark.parametrize(
    ("type", "value", "reason"),
    [
        ("job.submit", {}, "does not fit"),
        ("job.submit", None, "does not fit"),
        ("job.submit", [], "does not fit"),
        ("job.submit", {"agent": 5}, "does not fit"),
        ("session.ack", {"last_processed_seq": "x"}, "does not fit"),
        ("job.teleport", {}, "unknown"),
    ],
)
def test_payloads_that_do_not_fit(type, value, reason):
    """Malformed with the request's id, so that it can be answered."""
    found = payload(type, value)
    assert isinstance(found, Malformed)
    assert reason in found.reason
    assert found.id == "x"


def test_payloads_as_peers_write_them():
    """Null for absent members, strings for numbers, agents by name or as objects, budgets in any form, unknown members."""
    assert payload("session.bye", None) == m.Bye()
    assert payload("job.submit", {"agent": "a", "max_runtime_sec": "30", "new": 1}).max_runtime_sec == 30
    welcome = payload("session.welcome", {"capabilities": {"agents": ["a", {"name": "b", "default": "1"}]}})
    assert welcome.capabilities.agents == ["a", m.Agent("b", default="1")]
    assert (
        payload(
            "session.welcome", {"heartbeat_interval_sec": None, "resume_window_sec": 600}
        ).resume_window_sec
        == 600
    )
    accepted = payload(
        "job.accepted", {"job_id": "j", "budget": {"USD": 5.0, "EUR": "5.00"}, "credentials": None}
    )
    assert accepted.budget == {"USD": 5.0, "EUR": "5.00"}
    assert payload("job.subscribed", {"job_id": "j", "replayed": 3}).replayed == 3


def test_every_type_of_the_protocol_has_its_struct():
    """Sections 6 to 8, v1.0 and v1.1; all types can be written and read back."""
    assert set(wire.MESSAGES) >= {
        *(f"session.{name}" for name in ("hello", "welcome", "error", "bye", "close", "closed", "resume")),
        *(f"session.{name}" for name in ("ping", "pong", "ack", "list_jobs", "jobs")),
        *(
            f"job.{name}"
            for name in ("submit", "accepted", "cancel", "cancelled", "event", "result", "error")
        ),
        *(f"job.{name}" for name in ("subscribe", "subscribed", "unsubscribe")),
    }
    for type, struct in wire.MESSAGES.items():
        required = [field for field in msgspec.structs.fields(struct) if field.required]
        example = struct(**{field.name: "x" if field.type is str else 1 for field in required})
        assert wire.read_payload(wire.read(wire.write(wire.envelope(type, example)))) == example


def test_secrets_are_not_shown():
    """Tokens and credentials are not in the `repr`."""
    secret = "s3cr3t"
    for value in (
        m.Auth("bearer", secret),
        m.Hello(auth=m.Auth("bearer", secret)),
        m.Resume("s", secret),
        m.Welcome(session_id="s", resume_token=secret),
        m.Accepted("j", credentials=[{"value": secret}]),
        m.Subscribed("j", credentials=[{"value": secret}]),
    ):
        assert secret not in repr(value) + str(value)
        assert secret.encode() in msgspec.json.encode(value)
