"""The five dialects: `encode`, `decode` and the names that all modules share."""

import json

import pytest
from tests.each import each

from amends.core.fault import Fault, Origin
from amends.dialects import ALIASES, NAMES, decode, dialect, encode
from amends.errors import TimeoutError as AmendsTimeoutError


@pytest.mark.parametrize("name", NAMES)
def test_every_module_has_the_same_names(name):
    """House style 3: every dialect has NAME, SPEC, LOSSES, encode and decode."""
    module = dialect(name)
    assert name == module.NAME
    assert isinstance(module.SPEC, str)
    assert isinstance(module.LOSSES, frozenset)
    assert {"NAME", "SPEC", "LOSSES", "encode", "decode"} <= set(module.__all__)


def test_aliases():
    """Design 9: cli is an alias of envelope, and http of problem."""
    assert ALIASES == {"cli": "envelope", "http": "problem"}
    assert dialect("cli") is dialect("envelope")
    assert dialect("http") is dialect("problem")


@pytest.mark.parametrize("name", ["nowhere", "", "amends", "problem.x"])
def test_other_names_raise(name):
    """An unknown dialect raises LookupError."""
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
def test_decode_takes_objects_bytes_and_text(name, kind):
    """The result is the same for a mapping and for its JSON."""
    fault = Fault(code="RATE_LIMITED", message="é", retry_after=5)
    assert decode(kind(encode(fault, name)), name) == decode(encode(fault, name), name) is not None


@each("name", NAMES)
@each("data", [b"", b"{", "nope", b"\xff", b"[]", b"null", "[" * 10_000, b"x" * (8 * 1024**2 + 1)])
def test_unreadable_data_is_none(name, data):
    """decode returns None for invalid or too large JSON."""
    assert decode(data, name) is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", [None, {"code": "X"}, "X", AmendsTimeoutError("late")])
def test_encode_takes_a_fault(name, wrong):
    """encode raises TypeError for a value that is not a Fault."""
    with pytest.raises(TypeError):
        encode(wrong, name)


@pytest.mark.parametrize("name", NAMES)
def test_encode_returns_plain_json(name):
    """The standard library's `json` can write the result of encode."""
    fault = Fault(code="CONFLICT", errors=(Fault(code="TIMEOUT"),), suggestions=("a",), actor="user")
    assert json.loads(json.dumps(encode(fault, name))) == encode(fault, name)


@pytest.mark.parametrize("name", NAMES)
def test_extensions_do_not_replace_known_members(name):
    """Design 3: extensions are written, except those with the name of a known member."""
    known = {"code": "EVIL", "message": "evil", "detail": "evil", "retryable": "evil", "recoverable": "evil"}
    fault = Fault(code="TIMEOUT", message="late", extensions={**known, "vendor": [1]}, origin=Origin(name))
    document = encode(fault, name)
    written = document.get("error", document)
    assert written["vendor"] == [1]
    members = dialect(name)._MEMBERS
    assert "evil" not in [value for member, value in written.items() if member in members]
    assert written["code"] == "TIMEOUT"
