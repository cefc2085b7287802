"""The five modules have the same names; encode and decode find them by name."""

import json

import pytest

from amends.core.fault import Fault, Origin
from amends.dialects import ALIASES, NAMES, decode, dialect, encode
from amends.errors import TimeoutError as AmendsTimeoutError


@pytest.mark.parametrize("name", NAMES)
def test_the_same_names_in_each(name):
    """House style 3: NAME, SPEC, LOSSES, encode, decode."""
    module = dialect(name)
    assert name == module.NAME
    assert isinstance(module.SPEC, str)
    assert isinstance(module.LOSSES, frozenset)
    assert {"NAME", "SPEC", "LOSSES", "encode", "decode"} <= set(module.__all__)


def test_a_vocabularys_name_finds_its_dialect():
    """Design 9: envelope (alias cli); http is problem."""
    assert ALIASES == {"cli": "envelope", "http": "problem"}
    assert dialect("cli") is dialect("envelope")
    assert dialect("http") is dialect("problem")


@pytest.mark.parametrize("name", ["nowhere", "", "amends", "problem.x"])
def test_an_unknown_dialect_is_a_lookup_error(name):
    """There are five."""
    for call in (lambda: dialect(name), lambda: decode({}, name), lambda: encode(Fault(code="X"), name)):
        with pytest.raises(LookupError):
            call()


@pytest.mark.parametrize("name", [*NAMES, *ALIASES])
@pytest.mark.parametrize(
    "kind",
    [
        dict,
        json.dumps,
        lambda data: json.dumps(data).encode(),
        lambda data: bytearray(json.dumps(data), "utf8"),
    ],
)
def test_documents_come_as_objects_bytes_or_text(name, kind):
    """decode takes a mapping, or its JSON."""
    fault = Fault(code="RATE_LIMITED", message="é", retry_after=5)
    assert decode(kind(encode(fault, name)), name) == decode(encode(fault, name), name) is not None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "data", [b"", b"{", "nope", b"\xff", b"[]", b"null", "[" * 10_000, b"x" * (8 * 1024**2 + 1)]
)
def test_unreadable_documents_are_none(name, data):
    """decode never raises on data."""
    assert decode(data, name) is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", [None, {"code": "X"}, "X", AmendsTimeoutError("late")])
def test_encode_takes_a_fault(name, wrong):
    """Anything else raises."""
    with pytest.raises(TypeError):
        encode(wrong, name)


@pytest.mark.parametrize("name", NAMES)
def test_encode_returns_plain_json_values(name):
    """Any JSON encoder can write them."""
    fault = Fault(code="CONFLICT", errors=(Fault(code="TIMEOUT"),), suggestions=("a",), actor="user")
    assert json.loads(json.dumps(encode(fault, name))) == encode(fault, name)


@pytest.mark.parametrize("name", NAMES)
def test_extensions_are_written_beside_known_members(name):
    """Design 3: an unknown member is passed on; an extension named like a known member is not written."""
    known = {"code": "EVIL", "message": "evil", "detail": "evil", "retryable": "evil", "recoverable": "evil"}
    fault = Fault(code="TIMEOUT", message="late", extensions={**known, "vendor": [1]}, origin=Origin(name))
    document = encode(fault, name)
    written = document.get("error", document)
    assert written["vendor"] == [1]
    members = dialect(name)._MEMBERS
    assert "evil" not in [value for member, value in written.items() if member in members]
    assert written["code"] == "TIMEOUT"
