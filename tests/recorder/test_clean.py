"""Events are redacted, plain and bounded, whatever a binding reports."""

import math
import random

import msgspec

from amends import Decision, Fault
from amends.core.enums import Action
from amends.core.fault import Origin
from amends.core.redaction import SECRETS as REDACTED
from amends.core.redaction import redact
from amends.core.redaction.text import hide_keys
from amends.recorder.clean import event_of
from amends.recorder.event import decode_events, encode_events

SECRETS = (
    "hunter2",
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "Bearer abcdef0123456789abcdef",
    "10.0.0.5",
    "db.internal",
)


def test_secrets_leave_no_trace():
    """In every member of the fault, its parts and the facts, also in faults that were received."""
    text = f"password={SECRETS[0]} {SECRETS[1]} Authorization: {SECRETS[2]} at {SECRETS[3]} of {SECRETS[4]}"
    for origin in (None, Origin("problem"), Origin("adcp"), Origin("telemetry")):
        fault = Fault(
            code="TIMEOUT",
            message=text,
            suggestions=(text,),
            details={"text": text, "password": SECRETS[0]},
            extensions={"token": SECRETS[1]},
            errors=(Fault(code="CONFLICT", message=text, intent={"text": text}),),
            intent={"text": text},
            user_message=text,
            title=text,
            instance=f"https://ada:{SECRETS[0]}@shop.test/a?key={SECRETS[1]}",
            origin=origin,
        )
        event = event_of(
            1.0,
            "http client",
            "gave-up",
            fault,
            {
                "url": f"https://ada:{SECRETS[0]}@shop.test/a?key={SECRETS[1]}",
                "name": f"GET /a?api_key={SECRETS[1]}",
                "facts": {"authorization": SECRETS[2], "more": text},
            },
        )
        written = encode_events([event]).decode()
        assert [each for each in SECRETS if each in written] == [], written


def test_events_are_bounded():
    """The largest fault and the largest facts make an event of a few kilobytes."""
    many = tuple(Fault(code="X" * 9000, message="y" * 9000) for _ in range(100))
    fault = Fault(
        code="C" * 9000,
        message="é" * 100_000,
        suggestions=("s" * 9000,) * 100,
        details={"a": "b" * 100_000},
        extensions={str(number): "x" * 100 for number in range(1000)},
        errors=many,
        trace_id="t" * 9000,
    )
    event = event_of(1.0, "call", "retry", fault, {"name": "n" * 100_000, "facts": {"f": "g" * 100_000}})
    assert len(encode_events([event])) < 16_000
    assert event.fault.details == {"omitted": "too large for the recorder"}
    assert decode_events(encode_events([event]), 1)[0].fault.code == "C" * 200


def test_odd_facts_are_ignored():
    """Values of wrong types, numbers that are none, and unknown members."""
    odd = {
        "attempt": math.nan,
        "elapsed": math.inf,
        "wait": "x",
        "decision": 7,
        "nonsense": object(),
        "status": None,
    }
    event = event_of(1.0, "call", "retry", Fault(code="TIMEOUT", details={"o": object(), "n": math.nan}), odd)
    assert (event.attempt, event.elapsed, event.wait, event.decision, event.status) == (
        1,
        None,
        None,
        None,
        None,
    )
    assert msgspec.json.decode(encode_events([event]))[0]["fault"]["details"] == {
        "o": "[redacted]",
        "n": None,
    }
    decision = Decision(action=Action.RETRY, delay=1.0, reason="hint")
    assert event_of(1.0, "call", "retry", Fault(code="TIMEOUT"), {"decision": decision}).decision == decision


def test_equal_failures_are_cleaned_once(monkeypatch):
    """Failures that differ in their trace id only: 100 of them take the time of one, which keeps the recorder below 3 %."""
    from amends.recorder import clean

    cleaned = []
    monkeypatch.setattr(clean, "outgoing", lambda fault, _: cleaned.append(fault) or fault)
    clean._clean_encoded.cache_clear()
    ids = [f"{number:032x}" for number in range(100)]
    events = [
        event_of(1.0, "call", "retry", Fault(code="TIMEOUT", message="late", trace_id=id), {"trace_id": id})
        for id in ids
    ]
    clean._clean_encoded.cache_clear()
    assert len(cleaned) == 1
    assert [(each.fault.trace_id, each.trace_id) for each in events] == [(id, id) for id in ids]


def test_trace_ids_are_kept_and_keys_in_their_place_are_not():
    """A random id of a trace or a span is no secret; what looks like a key is one, in the cache or not."""
    for _ in range(2):
        for id in ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"):
            event = event_of(1.0, "call", "retry", Fault(code="TIMEOUT", trace_id=id), {"trace_id": id})
            assert (event.fault.trace_id, event.trace_id) == (id, id)
        event = event_of(
            1.0, "call", "retry", Fault(code="TIMEOUT", trace_id=SECRETS[1]), {"trace_id": SECRETS[1]}
        )
        assert SECRETS[1] not in encode_events([event]).decode()


def test_redaction_leaves_trace_ids_alone():
    """The short way for ids of 16 and 32 hexadecimal digits does what redaction does."""
    draw = random.Random(26)
    for _ in range(500):
        for bits in (64, 128):
            id = f"{draw.getrandbits(bits):0{bits // 4}x}"
            assert redact(hide_keys(id), kinds=REDACTED) == id


def test_a_fault_that_is_no_json_is_recorded():
    """A value that JSON has no form for, a lone surrogate, and one that is too deep, are written plain or left out."""
    deep = {}
    for _ in range(5000):
        deep = {"deep": deep}
    for details in ({"it": object()}, {"it": "\ud800"}, deep, {"it": b"\xff"}, {("a",): 1}):
        event = event_of(1.0, "call", "retry", Fault(code="TIMEOUT", details=details), {})
        assert decode_events(encode_events([event]), 1)[0].fault.code == "TIMEOUT"
