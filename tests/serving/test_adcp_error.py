"""`error_object` returns an object that every reader accepts, whatever its author put into it."""

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import Fault, extract
from amends.core.fault import Origin
from amends.dialects import adcp
from amends.serving.adcp_error import error_object, sentence


def written(**more):
    return error_object(Fault(code="SERVICE_UNAVAILABLE", vocabulary="adcp", **more))


def test_an_ordinary_error_is_written_whole():
    """An error that fits has all its members."""
    error = written(message="Closed", retry_after=4.2, details={"until": "noon", "n": [1, 2]})
    assert error == {
        "code": "SERVICE_UNAVAILABLE",
        "message": "Closed",
        "recovery": "transient",
        "retry_after": 5,
        "details": {"until": "noon", "n": [1, 2]},
    }


def test_values_that_are_not_json_become_plain():
    """Only the value that has no plain form is replaced; the rest of the error is written."""
    assert written(message="m", details={"setup_url": object(), "n": 1})["details"] == {
        "setup_url": "[redacted]",
        "n": 1,
    }
    error = written(message="m", details={"at": dt.date(2026, 1, 2), "n": float("nan")})
    assert json.loads(json.dumps(error)) == error
    assert error["details"] == {"at": "2026-01-02", "n": None}
    assert written(details={"s": "\ud800", "n": float("nan")})["details"] == {"s": "?", "n": None}


def test_details_that_contain_themselves_are_bounded():
    """The result is valid JSON of bounded depth."""
    loop: dict = {}
    loop["loop"] = loop
    error = written(details={"setup_url": [loop]})
    assert adcp.valid(error)
    assert json.dumps(error["details"]).count("loop") <= 32


def test_details_nested_deeper_than_the_carrier_allows_are_left_out():
    """`levels` is the limit; readers of protobuf's JSON refuse deeper values."""
    nested: dict = {}
    for _ in range(20):
        nested = {"n": nested}
    fault = Fault(code="CONFLICT", vocabulary="adcp", details=nested)
    assert "details" in error_object(fault)
    assert "details" not in error_object(fault, levels=12)


def test_an_error_that_is_too_large_is_reduced():
    """First the details are left out, then the extensions, then texts are cut, until 4096 bytes are enough."""
    assert "details" not in written(message="m", details={"x": "y" * 5000})
    kept = written(message="m", extensions={"note": "short"}, details={"x": "y" * 5000})
    assert kept["note"] == "short"
    assert "note" not in written(message="m", extensions={"note": "y" * 5000})
    cut = written(message="m" * 9000, suggestions=["s" * 9000], field="f" * 9000)
    assert adcp.valid(cut)
    assert (len(cut["message"]), len(cut["suggestion"]), len(cut["field"])) == (1024, 512, 256)


@given(
    st.dictionaries(st.text(), st.one_of(st.text(), st.floats(), st.integers(), st.binary(), st.none())),
    st.text(),
)
def test_extract_reads_every_error_object(details, message):
    """Any details and any message: `extract` finds the code."""
    error = written(message=message, details=details)
    assert extract(json.dumps(error), "adcp").code == "SERVICE_UNAVAILABLE"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"message": "Slow down", "recovery": "transient", "retry_after": 5}, "Slow down. Retry in 5 s."),
        ({"message": "Slow down", "recovery": "transient"}, "Slow down."),
        (
            {"message": "Which day?", "recovery": "correctable", "suggestion": "Name one."},
            "Which day? Name one.",
        ),
        ({"message": "No.", "recovery": "terminal", "retry_after": 5, "suggestion": "x"}, "No."),
        ({"message": "", "recovery": "terminal"}, "X."),
    ],
)
def test_the_sentence_has_the_message_and_the_wait_or_suggestion(error, text):
    """A wait is written for transient errors, a suggestion for correctable ones."""
    assert sentence({"code": "X", **error}) == text


def test_the_trace_id_is_an_extra_member():
    """AdCP defines no member for it. An error received from an upstream is not changed."""
    id = "4bf92f3577b34da6a3ce929d0e0e4736"
    assert written(message="m", trace_id=id)["trace_id"] == id
    assert written(message="m", trace_id=id, extensions={"trace_id": "theirs"})["trace_id"] == "theirs"
    assert "trace_id" not in written(message="m", trace_id=id, origin=Origin("adcp"))
