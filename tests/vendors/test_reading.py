"""Failures in the formats of services: the shipped vectors hold, and ordinary answers are no failures."""

from pathlib import Path

import msgspec
import pytest

from amends import extract, vectors
from amends.carriers.extraction import examine
from amends.carriers.report import report
from amends.core.executed import executed_by_status
from amends.vendors import NAMES
from amends.vendors import vendor as vendor_of
from tests.vendors.ordinary import bodies

ALL = tuple(vectors.load_vendors())
FURTHER = msgspec.json.decode(
    (Path(__file__).parent / "shapes.json").read_bytes(), type=list[vectors.VendorVector]
)
"""Shapes of further services whose source is not recorded; they are not shipped."""


def without_name(vector):
    """
    Return the values of `executed` that are right if nobody names the service: "no" only where the status says so.

    The numbers of gRPC and JSON-RPC are the protocol's own.
    """
    document = vector.response if isinstance(vector.response, dict) else {}
    fields = document.get("headers")
    if fields is not None and executed_by_status(document.get("status")) == "no":
        return {"no"}
    return {"maybe", "no"} if "grpc-status" in (fields or {}) or "jsonrpc" in str(document) else {"maybe"}


def differences(vector, vendor):
    """Return the members that differ from the vector."""
    via, reading = examine(vector.response, vendor=vendor, in_success=vector.in_success)
    got = report(via, reading)
    if got.fault is None:
        return {"fault": None}
    found = {}
    for name, value in vector.expected["fault"].items():
        seen = getattr(got.fault, name)
        if name == "executed" and value == "no" and vendor is None and vector.vendor is not None:
            if seen not in without_name(vector):
                found[name] = (without_name(vector), seen)
            continue
        if (pytest.approx(value) if isinstance(value, float) else value) != getattr(seen, "value", seen):
            found[name] = (value, seen)
    decision = {"action": got.decision.action.value, "delay": got.decision.delay}
    if decision != {name: pytest.approx(value) for name, value in vector.expected["decision"].items()}:
        found["decision"] = decision
    return found


def test_every_vector_of_a_vendor_holds():
    """Fault and decision are those of the published reference, with and without the vendor's name."""
    wrong = {
        f"{vector.id} {vendor}": found
        for vector in (*ALL, *FURTHER)
        for vendor in {None, vector.vendor} - ({None} if vector.named_only else set())
        if (found := differences(vector, vendor))
    }
    assert wrong == {}


def test_a_number_needs_evidence():
    """
    A number counts for a service that is known by its host, name, header or an unmistakable shape.

    Without the name, 15 vectors of Discord, Zhipu and Zoom are read by the status: each sends a number and a text only, as others do.
    """
    by_number = [vector for vector in ALL if vector.named_only]
    assert {vector.vendor for vector in by_number} == {"discord", "zhipu", "zoom"}
    assert len(by_number) == 15
    # One service's arrears, from another service that is named; and a stranger's number against 429 and Retry-After.
    arrears = {"status": 429, "headers": {}, "body": {"error": {"code": "1113", "message": "…"}}}
    assert extract(arrears, vendor="zhipu").code == "QUOTA_EXCEEDED"
    assert extract(arrears, vendor="openai").code == "RATE_LIMITED"
    assert extract(arrears).code == "RATE_LIMITED"
    stranger = {"status": 429, "headers": {"Retry-After": "5"}, "body": {"code": 50001, "message": "…"}}
    assert (extract(stranger).code, extract(stranger).retry_after) == ("RATE_LIMITED", 5.0)
    assert extract(stranger, vendor="discord").code == "PERMISSION_DENIED"


@pytest.mark.parametrize("status", [429, 500, 502, 503])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "5"}])
def test_no_word_of_a_stranger_stops_a_call_against_status_and_wait(status, headers):
    """Every code word of every service, from an unknown sender: none but used-up money ends a 429, a 503 or a wait."""
    money = {"QUOTA_EXCEEDED", "PAYMENT_REQUIRED"}
    wrong = []
    for word in {word for name in NAMES for word in vendor_of(name).words if not word.startswith("@")}:
        fault = extract({"status": status, "headers": headers, "body": {"error": {"code": word}}})
        stops = fault.recovery in {"terminal", "correctable"} and fault.code not in money
        if stops and (status == 429 or (headers and status == 503)) and fault.code not in ALLOWED:
            wrong.append((word, fault.code))
        assert fault.executed == "maybe" or executed_by_status(status) == "no"
    assert wrong == []


ALLOWED = {"CONTENT_TOO_LARGE", "CONTEXT_TOO_LONG"}
"""A request that is larger than the limit alone, also under 429."""


def test_the_vectors_cover_the_services():
    """At least 400 shapes of at least 40 services, each with the address of its source."""
    assert len(ALL) >= 400
    assert len({vector.vendor for vector in ALL}) >= 40
    assert {vector.vendor for vector in ALL} <= {None, *NAMES}
    assert all(vector.source.startswith("https://") for vector in ALL)
    assert len({vector.id for vector in ALL}) == len(ALL)


def test_ordinary_answers_are_no_failures():
    """No false positive in at least 500 ordinary bodies, though they use the code words of errors."""
    seen = list(bodies())
    assert len(seen) >= 500
    wrong = [
        (body, fault.code)
        for body in seen
        for fault in (
            extract(
                {"status": 200, "headers": {"content-type": "application/json"}, "body": body},
                in_success=True,
            ),
            extract({"status": 200, "headers": {}, "body": body}),
        )
        if fault is not None
    ]
    assert wrong == []


def test_answers_that_describe_failures_are_no_failures():
    """Webhooks, lists, states of jobs, results of linters and logs: no fault, whatever the vendor."""
    answers = msgspec.json.decode((Path(__file__).parent / "ordinary.json").read_bytes())
    assert len(answers) >= 150
    wrong = [
        (body, vendor, fault.code)
        for body in answers
        for vendor in (None, *NAMES)
        if (fault := extract({"status": 200, "headers": {}, "body": body}, vendor=vendor, in_success=True))
        is not None
    ]
    assert wrong == []


def test_examples_of_api_references_are_no_failures():
    """Successful answers as references print them, chosen for members with the names of errors, whatever the vendor."""
    answers = msgspec.json.decode((Path(__file__).parent / "ordinary_references.json").read_bytes())
    assert len(answers) >= 200
    wrong = [
        (each["body"], vendor, fault.code)
        for each in answers
        for vendor in (None, *NAMES)
        if (
            fault := extract(
                {"status": 200, "headers": {}, "body": each["body"]}, vendor=vendor, in_success=True
            )
        )
        is not None
    ]
    wrong += [
        (each["body"], None, fault.code) for each in answers if (fault := extract(each["body"])) is not None
    ]
    assert wrong == []


def test_ordinary_documents_are_no_failures():
    """A bare document needs more evidence than one code word."""
    # A document with `status: failed`, `ok` or `isError` has the shape of one of our formats, which are read as such.
    ours = {"status", "ok", "content", "jsonrpc", "artifacts"}
    wrong = [
        (body, fault.code)
        for body in bodies()
        if not (isinstance(body, dict) and ours & set(body)) and (fault := extract(body)) is not None
    ]
    assert wrong == []


@pytest.mark.parametrize("vendor", ["nowhere", "", 5])
def test_an_unknown_vendor_is_a_lookup_error(vendor):
    """The message lists the names; no response raises."""
    with pytest.raises(LookupError, match="openai"):
        extract({}, vendor=vendor)


def test_values_of_any_type_are_read_without_an_error():
    """Every member may have any type: lists for code words, numbers for objects, deep nesting."""
    deep: object = "x"
    for _ in range(200):
        deep = {"error": deep}
    odd = [
        [],
        {},
        5,
        1e308,
        True,
        None,
        "",
        "x" * 9999,
        [[[]]],
        {"a": [{}]},
        deep,
        "\ud800",
        float("nan"),
        10**400,
    ]
    names = (
        "error",
        "errors",
        "code",
        "type",
        "details",
        "metadata",
        "retry_after",
        "status",
        "ok",
        "success",
        "object",
        "kind",
        "message",
        "data",
        "json",
        "choices",
        "innererror",
        "fault",
        "durability",
        "loc",
    )
    for name in names:
        for value in odd:
            for body in (
                {name: value},
                {"error": {name: value}},
                [{name: value}],
                {"errors": [{name: value}]},
            ):
                for status in (200, 429, 503):
                    for vendor in (None, "google"):
                        extract(
                            {"status": status, "headers": {name: value}, "body": body},
                            vendor=vendor,
                            in_success=True,
                        )
                extract(body)
