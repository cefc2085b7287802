"""Documents of the usual members are read by a shorter way; it comes to the same as the long one."""

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
    """Objects with any of these members, and sometimes values nobody should send."""
    return st.fixed_dictionaries({}, optional=kinds)


USUAL = {
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
    "task": members(code=TEXTS, message=TEXTS, details=ODD | st.just({"a": 1}), recoverable=ODD),
    "arcp": members(code=TEXTS, message=TEXTS, details=ODD | st.just({"a": 1}), retryable=ODD),
}


@pytest.mark.parametrize("dialect", USUAL)
@given(st.data())
def test_a_stranger_among_the_members_changes_nothing_else(dialect, data):
    """A member nobody knows sends a document the long way, and is all that differs."""
    document = data.draw(USUAL[dialect])
    short, long = decode(document, dialect), decode({**document, "stranger": 1}, dialect)
    if short is None:
        assert long is None
    else:
        assert long.extensions == {**short.extensions, "stranger": 1}
        assert short == replace(long, extensions=short.extensions)


@given(USUAL["envelope"], st.sampled_from([None, *PROFILES["v2"].values()]))
def test_whatever_the_exit_code_said(error, said):
    """An exit code decides where the envelope does not, on both ways."""
    short, long = (
        decode_envelope({"ok": False, "error": each}, exit=said) for each in (error, error | {"stranger": 1})
    )
    assert short == (None if long is None else replace(long, extensions={}))
