"""`encode` for AdCP never writes an object that a reader has to discard (A7)."""

import enum
import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import faults, often

from amends.core.fault import Fault, Origin
from amends.core.wire import compact
from amends.dialects.adcp import MAX_ERROR_BYTES, decode, encode, valid
from amends.dialects.adcp_size import LONGEST, fit

HOSTILE = st.text(st.characters(exclude_categories=()), max_size=3000)


class Colour(enum.StrEnum):
    """An enum in details."""

    RED = "red"


def error(**more):
    """Return an AdCP fault as written."""
    return encode(Fault(code="SERVICE_UNAVAILABLE", vocabulary="adcp", **more))


def test_members_are_left_out_in_order():
    """Details first, then nested errors from the last one on, then unknown members, then texts are cut."""
    part = Fault(code="CONFLICT", vocabulary="adcp", message="p" * 1500)
    parts = (part, part, part)
    big, half = {"x": "y" * 5000}, {"x": "y" * 2500}
    assert "details" in error(message="m", details=half)
    without = error(message="m", details=half, errors=parts[:1], extensions={"note": "n"})
    assert ("details" in without, len(without["errors"]), without["note"]) == (False, 1, "n")
    fewer = error(message="m", errors=parts, extensions={"note": "n"})
    assert (len(fewer["errors"]), fewer["note"]) == (2, "n")
    assert set(error(message="m", details=big, errors=parts, extensions={"note": "n" * 5000})) == {
        "code",
        "message",
        "recovery",
    }
    cut = error(message="m" * 9000, suggestions=["s" * 9000], field="f" * 9000)
    assert {name: len(cut[name]) for name in LONGEST} == LONGEST


def test_values_are_plain():
    """Keys are strings, enum members and tuples become plain, lone surrogates are replaced; also in received errors."""
    for origin in (None, Origin("adcp")):
        found = error(
            message="a\ud800b",
            details={1: Colour.RED, "t": (1, 2), "s": {"\udfff"}, "n": float("nan")},
            suggestions=("\ud83d",),
            origin=origin,
        )
        assert found["message"] == "a?b"
        assert found["suggestion"] == "?"
        assert found["details"] == {"1": "red", "t": [1, 2], "s": ["?"], "n": None}
        assert type(found["details"]["1"]) is str
        assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_received_error_at_the_limit_is_passed_on():
    """Members that `encode` adds do not push it over the limit."""
    received = {"code": "X", "details": {"a": "b" * 4060}}
    assert len(compact(received)) <= MAX_ERROR_BYTES
    fault = decode(received)
    assert fault.details is not None
    passed = encode(fault)
    assert valid(passed)
    assert "details" not in passed
    small = {"code": "X", "message": "", "recovery": "terminal", "details": {"deep": [[[1]]] * 50}}
    assert encode(decode(small)) == small


def test_a_code_has_64_characters():
    """A longer code, which a reader would discard, is cut."""
    assert encode(Fault(code="X" * 100, vocabulary="adcp", origin=Origin("adcp")))["code"] == "X" * 64


@often
@given(faults("adcp", strings=HOSTILE), st.booleans(), st.sampled_from(["", "x" * 5000, "\x00" * 5000]))
def test_every_written_error_is_read(fault, received, filler):
    """A7: whatever the fault contains, the object is JSON, valid, and has the fault's code."""
    fault = replace(
        fault,
        message=fault.message + filler,
        field=filler or None,
        origin=Origin("adcp") if received else None,
    )
    written = encode(fault)
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    json.dumps(written, ensure_ascii=False).encode()
    assert valid(written)
    assert decode(json.loads(json.dumps(written))).code == written["code"]
    assert fit(written) == written


def test_many_short_members_are_counted():
    """An object of short names and numbers can be too large, too (A7)."""
    large = {"code": "RATE_LIMITED", **{chr(0x4E00 + number): 10**14 for number in range(300)}}
    assert len(compact(large)) > MAX_ERROR_BYTES
    assert not valid(large)
    assert valid(dict(list(large.items())[:100]))
