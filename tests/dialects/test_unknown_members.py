"""An unknown member becomes an extension and changes nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from amends.core.exits import PROFILES
from amends.dialects import decode
from amends.dialects.envelope import decode as decode_envelope

ODD = st.none() | st.booleans() | st.integers(-5, 700) | st.floats() | st.just([]) | st.just({}) | st.just("")
TEXTS = ODD | st.sampled_from(["RATE_LIMITED", "TIMEOUT", "NOT_FOUND", "maybe", "a sentence", "x" * 65])


def members(**kinds):
    """Return a strategy of objects with any of these members, some with wrong values."""
    return st.fixed_dictionaries({}, optional=kinds)


MEMBERS = {
    "problem": members(
        type=TEXTS,
        title=TEXTS,
        detail=TEXTS,
        trace_id=TEXTS,
        status=ODD | st.sampled_from([207, 404, 408, 429, 503]),
        is_retriable=ODD,
        retry_after_ms=ODD,
        retry_after_seconds=ODD,
        code=TEXTS,
        intent=ODD,
    ),
    "envelope": members(code=TEXTS, message=TEXTS, retryable=TEXTS, fix_required=TEXTS, retry_after_ms=ODD),
    "adcp": members(code=TEXTS, message=TEXTS, recovery=TEXTS, retry_after=ODD),
    "task": members(code=TEXTS, message=TEXTS, details=ODD | st.just({"a": 1}), recoverable=ODD),
    "arcp": members(code=TEXTS, message=TEXTS, details=ODD | st.just({"a": 1}), retryable=ODD),
}


@pytest.mark.parametrize("dialect", MEMBERS)
@given(st.data())
def test_an_unknown_member_changes_nothing_else(dialect, data):
    """Design 3: unknown members are kept, whichever known members the document has."""
    document = data.draw(MEMBERS[dialect])
    without, beside = decode(document, dialect), decode({**document, "unknown": 1}, dialect)
    if without is None:
        assert beside is None
    else:
        assert beside.extensions == {**without.extensions, "unknown": 1}
        assert without == replace(beside, extensions=without.extensions)


@given(MEMBERS["envelope"], st.sampled_from([None, *PROFILES["v2"].values()]))
def test_an_unknown_member_changes_nothing_else_with_an_exit_code(error, exit):
    """The exit code decides where the envelope does not."""
    without, beside = (
        decode_envelope({"ok": False, "error": each}, exit=exit) for each in (error, error | {"unknown": 1})
    )
    assert without == (None if beside is None else replace(beside, extensions={}))
