"""An error object that every reader takes, whatever its author put into it."""

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import Fault, extract
from amends.dialects import adcp
from amends.serving.adcp_error import error_object, sentence


def written(**more):
    return error_object(Fault(code="SERVICE_UNAVAILABLE", vocabulary="adcp", **more))


def test_an_ordinary_error_is_written_whole():
    """Nothing is left out that fits."""
    error = written(message="Closed", retry_after=4.2, details={"until": "noon", "n": [1, 2]})
    assert error == {
        "code": "SERVICE_UNAVAILABLE",
        "message": "Closed",
        "recovery": "transient",
        "retry_after": 5,
        "details": {"until": "noon", "n": [1, 2]},
    }


def test_what_is_no_json_is_left_out_and_the_rest_stays():
    """An object in the details does not cost the caller the error."""
    assert written(message="m", details={"setup_url": object()}) == {
        "code": "SERVICE_UNAVAILABLE",
        "message": "m",
        "recovery": "transient",
    }
    error = written(message="m", details={"at": dt.date(2026, 1, 2), "n": float("nan")})
    assert json.loads(json.dumps(error)) == error
    assert error["details"] == {"at": "2026-01-02", "n": None}
    assert written(details={"s": "\ud800"})["details"]["s"].isprintable()
    # The writer that takes the one lets the other through.
    assert "details" not in written(details={"s": "\ud800", "n": float("nan")})


def test_what_holds_itself_is_left_out():
    """There is no end to write."""
    loop: dict = {}
    loop["loop"] = loop
    assert "details" not in written(details={"setup_url": [loop]})


def test_what_is_nested_deeper_than_the_carrier_allows_is_left_out():
    """Protobuf refuses to read it back."""
    nested: dict = {}
    for _ in range(20):
        nested = {"n": nested}
    fault = Fault(code="CONFLICT", vocabulary="adcp", details=nested)
    assert "details" in error_object(fault)
    assert "details" not in error_object(fault, levels=12)


def test_what_is_too_large_is_made_small():
    """First the details go, then the extensions, then texts are cut; a reader would take nothing else."""
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
def test_it_can_always_be_read(details, message):
    """Whatever is in it, `extract` finds the error."""
    error = written(message=message, details=details)
    assert extract(json.dumps(error), "adcp").code == "SERVICE_UNAVAILABLE"


@pytest.mark.parametrize(
    ("error", "said"),
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
def test_one_terse_sentence(error, said):
    """What happened, and what to do about it."""
    assert sentence({"code": "X", **error}) == said
