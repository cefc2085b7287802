"""`outgoing`: every field of a fault is made plain and redacted, or is a listed exception."""

import json
import logging
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType

import pydantic
import pytest

from amends.core.fault import Fault, Origin
from amends.core.redaction import URL_MEMBERS
from amends.dialects import NAMES, encode
from amends.dialects.outgoing import FORMATS, check_adcp_details, outgoing

LEAK = "connect to 10.0.0.5:5432 failed"


def test_a_fault_without_leaks_is_returned_as_it_is():
    """If no field changes, the same object is returned."""
    fault = Fault(code="TIMEOUT", message="It took too long")
    assert outgoing(fault, "problem") is fault


def test_every_free_text_is_redacted():
    """A19: message, title, user message, suggestions, details, extensions and nested errors are redacted."""
    fault = Fault(
        code="TIMEOUT",
        message=LEAK,
        title=LEAK,
        user_message=LEAK,
        suggestions=(LEAK,),
        details={"a": [LEAK], **dict.fromkeys(sorted(URL_MEMBERS), LEAK)},
        extensions={"b": LEAK},
        errors=(Fault(code="X", message=LEAK),),
    )
    clean = outgoing(fault, "problem")
    texts = (clean.message, clean.title, clean.user_message, *clean.suggestions)
    assert not any("10.0.0.5" in text for text in (*texts, clean.details["a"][0], clean.extensions["b"]))
    assert "10.0.0.5" not in clean.errors[0].message
    assert all(clean.details[name] == LEAK for name in URL_MEMBERS)
    assert fault.message == LEAK, "the fault itself does not change"


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_fault_received_in_the_format_is_passed_on_unchanged(format):
    """Design section 6: an error received in the same format is not rewritten."""
    fault = Fault(code="TIMEOUT", message=LEAK, details={"password": "x"}, origin=Origin(format))
    assert outgoing(fault, format) is fault


def test_identifiers_and_urls_lose_credentials_only():
    """Field, instance and intent are not redacted; URLs lose only their credentials."""
    fault = Fault(
        code="VALIDATION_ERROR",
        field="order.customer.com",
        doc_uri="https://user:hunter2@docs.shop.example/errors/x?api_key=abc123def456",
        instance="/srv/orders/7",
        intent={"resource_id": "/srv/x"},
    )
    clean = outgoing(fault, "problem")
    assert (clean.field, clean.instance, clean.intent) == (fault.field, fault.instance, fault.intent)
    assert clean.doc_uri == "https://user:[redacted]@docs.shop.example/errors/x?api_key=[redacted]"


def test_an_envelope_keeps_paths_and_loses_credentials():
    """Paths stay, because the reader started the command on the same machine; credentials are redacted."""
    fault = Fault(code="NOT_FOUND", message="/home/me/a.csv: no such file (password=hunter2)")
    assert (
        encode(fault, "envelope")["error"]["message"] == "/home/me/a.csv: no such file (password=[redacted])"
    )


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Range:
    low: int
    high: float


class Item(pydantic.BaseModel):
    name: str
    secret: pydantic.SecretStr = pydantic.SecretStr("hunter2")


@pytest.mark.parametrize("format", ["problem", "envelope", "adcp", "task", "arcp"])
def test_details_are_plain_in_every_format(format):
    """Enum members, dataclasses, models, sets and bytes become plain JSON; secrets in a model are redacted."""
    details = {
        "colour": Colour.RED,
        "level": Level.HIGH,
        "range": Range(1, float("inf")),
        "item": Item(name="tea"),
        "tags": {"b", "a"},
        "raw": b"ok",
        "view": MappingProxyType({1: "one"}),
        "big": 10**400,
        "odd": object(),
    }
    written = encode(Fault(code="CONFLICT", details=details), format)
    assert written.get("error", written)["details"] == {
        "colour": "red",
        "level": 3,
        "range": {"low": 1, "high": None},
        "item": {"name": "tea", "secret": "[redacted]"},
        "tags": ["a", "b"],
        "raw": "ok",
        "view": {"1": "one"},
        "big": None,
        "odd": "[redacted]",
    }


def test_a_warning_names_the_kind_of_leak(caplog):
    """Design section 6: the details of an ARCP error are sent as raised (R4); the log names the kind of leak, not the text."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        outgoing(Fault(code="TIMEOUT", suggestions=(LEAK,), details={"a": LEAK}), "arcp")
        outgoing(Fault(code="TIMEOUT", details={"a": object()}), "arcp")
        outgoing(Fault(code="TIMEOUT"), "arcp")
    assert [record.args[:2] for record in caplog.records] == [("arcp", "TIMEOUT")]
    assert "10.0.0.5" not in caplog.text


def test_details_of_another_shape_are_logged(caplog):
    """A14: details that differ from the recommended shape are logged as a warning."""
    with caplog.at_level(logging.WARNING, logger="amends"):
        check_adcp_details(Fault(code="RATE_LIMITED", vocabulary="adcp"))
        check_adcp_details(Fault(code="RATE_LIMITED", vocabulary="adcp", details={"limit": 100}))
        assert not caplog.records
        check_adcp_details(Fault(code="RATE_LIMITED", vocabulary="adcp", details={"limit": "many"}))
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("name", NAMES)
def test_lone_surrogates_are_replaced(name):
    """Every format can be sent as UTF-8, whatever a producer wrote or a tolerant reader accepted."""
    bad = "a\ud800b"
    part = Fault(code="X", message=bad, field=bad)
    for origin in (None, Origin(name), Origin("other")):
        fault = Fault(
            code="X" + bad, message=bad, field=bad, suggestions=(bad, "é"), details={bad: [bad], "b": "é"}, errors=(part,),
            trace_id=bad, doc_uri=bad, type=bad, title=bad, instance=bad, intent={bad: bad}, user_message=bad, strategy=bad,
            extensions={bad: bad}, origin=origin,
        )  # fmt: skip
        written = json.dumps(encode(fault, name), ensure_ascii=False).encode()
        assert b"a?b" in written
        assert "é".encode() in written
