"""The check of a producer's `details` (A14): recommended shapes and size; it never raises."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.details import MAX_BYTES, SHAPES, Kind, check_details
from amends.core.vocabularies.adcp import is_standard_code

FACTS = json.loads((Path(__file__).parents[1] / "data" / "adcp-codes.json").read_text())["details"]

EXAMPLES = {
    "RATE_LIMITED": {"limit": 100, "remaining": 0, "window_seconds": 60, "scope": "account"},
    "BUDGET_TOO_LOW": {"minimum_budget": 500, "currency": "USD"},
    "AUDIENCE_TOO_SMALL": {"minimum_size": 10000, "current_size": 2500},
    "ACCOUNT_SETUP_REQUIRED": {
        "setup_url": "https://seller.example.com/setup/acct_123",
        "setup_steps": ["Accept terms of service", "Add payment method"],
    },
    "CREATIVE_REJECTED": {
        "policy_id": "alcohol-advertising-v2",
        "policy_url": "https://seller.example.com/policies/alcohol-advertising",
        "reasons": ["Contains health claims not permitted for alcohol products"],
    },
    "POLICY_VIOLATION": {
        "policy_id": "targeting-restrictions-v3",
        "policy_url": "https://seller.example.com/policies/targeting",
        "violated_rules": ["No age-based targeting for financial products"],
    },
    "CONFLICT": {"resource_id": "mb_12345", "expected_version": 3, "current_version": 5},
}
"""The examples of S4."""


def described(fact: dict[str, Any]) -> str:
    """Describe a published type as `Kind.description` does."""
    if "enum" in fact:
        return f"one of {', '.join(fact['enum'])}"
    if fact["type"] == "array":
        return f"a list of {fact['items']['type']}s"
    types = fact["type"] if isinstance(fact["type"], list) else [fact["type"]]
    return " or ".join(f"a {name}" for name in types)


def test_the_shapes_are_the_published_ones():
    """The keys, types and enum values of the seven codes are those of the published schemas."""
    assert {
        code: {key: kind.description for key, kind in shape.items()} for code, shape in SHAPES.items()
    } == {code: {key: described(fact) for key, fact in keys.items()} for code, keys in FACTS.items()}
    assert all(map(is_standard_code, SHAPES))


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_published_examples_pass(code: str):
    """S4's example for each of the seven codes gives no warning."""
    assert EXAMPLES.keys() == SHAPES.keys()
    assert check_details(code, EXAMPLES[code]) == ()


@pytest.mark.parametrize("code", [*SHAPES, "NOT_CANCELLABLE", "X_ACME_OWN"])
@pytest.mark.parametrize("details", [None, {}, {"something": "else"}, {"nested": {"limit": "many"}}])
def test_everything_is_optional(code: str, details: object):
    """No details, empty details and details with other keys give no warning."""
    assert check_details(code, details) == ()


@pytest.mark.parametrize(
    ("code", "details", "keys"),
    [
        ("RATE_LIMITED", {"limit": "100"}, ["limit"]),
        ("RATE_LIMITED", {"limit": True, "remaining": None, "window_seconds": [60]}, ["limit", "remaining", "window_seconds"]),
        ("RATE_LIMITED", {"limit": float("nan"), "remaining": float("inf")}, ["limit", "remaining"]),
        ("RATE_LIMITED", {"scope": "planet"}, ["scope"]),
        ("RATE_LIMITED", {"limit": 2**70, "remaining": 10**400}, ["remaining"]),
        ("RATE_LIMITED", {"scope": 1}, ["scope"]),
        ("RATE_LIMITED", {"limit": 1.5, "remaining": 2**64 - 1, "scope": "global"}, []),
        ("BUDGET_TOO_LOW", {"minimum_budget": "500", "currency": 840}, ["minimum_budget", "currency"]),
        ("ACCOUNT_SETUP_REQUIRED", {"setup_steps": "Accept terms"}, ["setup_steps"]),
        ("ACCOUNT_SETUP_REQUIRED", {"setup_steps": ["Accept terms", 2]}, ["setup_steps"]),
        ("ACCOUNT_SETUP_REQUIRED", {"setup_steps": ("Accept terms",)}, []),
        ("CREATIVE_REJECTED", {"policy_url": {"href": "x"}, "reasons": []}, ["policy_url"]),
        ("POLICY_VIOLATION", {"origin": "buyer", "category": "age"}, ["origin"]),
        ("CONFLICT", {"expected_version": "W/1", "current_version": 5.5}, []),
        ("CONFLICT", {"expected_version": None, "current_version": False}, ["expected_version", "current_version"]),
    ],
)  # fmt: skip
def test_a_recommended_key_of_the_wrong_type(code: str, details: dict[str, object], keys: list[str]):
    """Each recommended key with a wrong type gives one warning; null, NaN and numbers beyond a double are wrong."""
    warnings = check_details(code, details)
    assert warnings == tuple(
        f"details.{key} should be {SHAPES[code][key].description}, or be left out" for key in keys
    )


@pytest.mark.parametrize("details", [[], "text", 5, True, [("limit", 5)]])
def test_details_are_an_object(details: object):
    """For a code with a recommended shape, a value that is not an object gives a warning."""
    assert check_details("CONFLICT", details) == ("details should be an object, or be left out",)
    assert check_details("INVALID_STATE", details) == ()


@pytest.mark.parametrize("code", ["RATE_LIMITED", "INVALID_STATE", "X_ACME_OWN", ""])
@pytest.mark.parametrize("letter", ["a", "é", "漢", "😀"])
def test_under_five_hundred_bytes(code: str, letter: str):
    """S4: the limit applies to the bytes of compact UTF-8 JSON: 499 pass, 500 give a warning."""
    size = len(letter.encode())
    room = MAX_BYTES - 1 - len('{"note":""}')
    details = {"note": letter * (room // size) + "." * (room % size)}
    assert len(json.dumps(details, ensure_ascii=False, separators=(",", ":")).encode()) == 499
    assert check_details(code, details) == ()
    details["note"] += "."
    assert check_details(code, details) == ("details take 500 bytes of JSON; keep them under 500",)


def test_size_and_shape_are_both_reported():
    """A long value of the wrong type gives two warnings, the size first."""
    assert len(check_details("RATE_LIMITED", {"limit": "9" * 600, "scope": "tool"})) == 2


def loop() -> dict[str, object]:
    """Return an object that contains itself."""
    itself: dict[str, object] = {}
    itself["itself"] = itself
    return itself


def deep(levels: int) -> dict[str, object]:
    """Return an object nested `levels` deep."""
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


class Hostile(msgspec.Struct):
    """Its encoding is invalid JSON."""

    raw: msgspec.Raw = msgspec.Raw(b"{not json")


class Odd:
    """Raises when its class or its repr is read."""

    @property
    def __class__(self):
        raise RuntimeError("__class__ was read")

    def __repr__(self):
        raise RuntimeError("__repr__ was called")


NO_JSON = {
    "object": lambda: {"limit": object()},
    "huge": lambda: {"limit": 10**5000},
    "surrogate": lambda: {"scope": "\ud800"},
    "key": lambda: {("a", "b"): 1},
    "function": lambda: {"call": print},
    "raw": Hostile,
    "loop": loop,
    "deep": lambda: deep(100_000),
    "odd": lambda: {"limit": Odd()},
    "odd itself": Odd,
}
"""Functions, because pytest reads the repr of its parameters."""


@pytest.mark.parametrize("code", ["RATE_LIMITED", "X_ACME_OWN"])
@pytest.mark.parametrize("make", NO_JSON.values(), ids=NO_JSON)
def test_values_that_json_cannot_represent(code: str, make: Callable[[], object]):
    """A value that cannot be encoded as JSON gives one warning for any code, and does not raise."""
    assert check_details(code, make()) == ("details cannot be written as JSON",)


def test_the_encoded_type_counts():
    """A date is encoded as a string, so it passes as a string and not as a number."""
    now = datetime.now(UTC)
    assert check_details("CONFLICT", {"expected_version": now}) == ()
    assert check_details("RATE_LIMITED", {"limit": now}) != ()


def test_warnings_repeat_no_value():
    """A19: warnings are logged, so they do not contain the wrong value, which may be a secret."""
    warnings = check_details("RATE_LIMITED", {"limit": "hunter2", "scope": "hunter2", "more": "hunter2" * 99})
    assert len(warnings) == 3
    assert "hunter2" not in "".join(warnings)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.builds(object),
    st.dates(),
)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner),
        st.dictionaries(
            st.one_of(
                st.sampled_from([key for shape in SHAPES.values() for key in shape]), st.text(), st.integers()
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)


@given(st.one_of(st.sampled_from(list(SHAPES)), st.text()), anything)
def test_never_raises_and_stays_bounded(code: str, details: object):
    """Any value for any code gives a tuple of few, short warnings."""
    warnings = check_details(code, details)
    assert isinstance(warnings, tuple)
    assert len(warnings) <= 1 + len(SHAPES.get(code, ("object",)))
    assert all(0 < len(warning) < 100 for warning in warnings)
    if code not in SHAPES:
        assert len(warnings) <= 1
        assert all("should be" not in warning for warning in warnings)


def fitting(kind: Kind) -> st.SearchStrategy[object]:
    """Return a strategy for values of this kind."""
    numbers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
    texts = st.text(st.characters(codec="utf-8"), max_size=8)
    if kind.description.startswith("one of "):
        return st.sampled_from(kind.description.removeprefix("one of ").split(", "))
    return {
        "a number": numbers,
        "a string": texts,
        "a list of strings": st.lists(texts, max_size=2),
        "a number or a string": st.one_of(numbers, texts),
    }[kind.description]


@given(st.data(), st.sampled_from(list(SHAPES)))
def test_matching_values_pass(data: st.DataObject, code: str):
    """Recommended keys with values of their types, and any other keys, give no warning."""
    keys = data.draw(st.sets(st.sampled_from(list(SHAPES[code]))))
    details = {"x_own": {"limit": "free"}, **{key: data.draw(fitting(SHAPES[code][key])) for key in keys}}
    assert check_details(code, details) == ()
