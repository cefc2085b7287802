"""AdCP's error object (S4): validation, recovery, waits, and what a producer may send."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import each
from tests.strategies import json_objects, often

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.adcp import VOCABULARY
from amends.core.wire import MAX_DEPTH
from amends.dialects import decode as read
from amends.dialects.adcp import MAX_ERROR_BYTES, decode, encode, plain_error, valid


def sized(size, filler="a"):
    """Return an error with exactly that many bytes of compact UTF-8 JSON."""
    error = {"code": "X", "message": ""}
    room = size - len(json.dumps(error, separators=(",", ":")))
    width = len(filler.encode())
    error["message"] = filler * (room // width) + "a" * (room % width)
    assert len(json.dumps(error, separators=(",", ":"), ensure_ascii=False).encode()) == size
    return error


@pytest.mark.parametrize(("length", "found"), [(0, False), (1, True), (64, True), (65, False)])
@pytest.mark.parametrize("letter", ["X", "漢"])
def test_the_length_of_a_code(length, found, letter):
    """A7: a string of 1 to 64 characters."""
    assert (decode({"code": letter * length}) is not None) is found


@pytest.mark.parametrize("code", [None, 5, True, [], {}, ["X"], b"X"])
def test_a_code_is_a_string(code):
    """A7, S4: clients MUST validate that extracted errors have a code of type string."""
    assert decode({"code": code}) is None


@pytest.mark.parametrize("value", [None, 5, "X", [], [{"code": "X"}], (), {}, {"message": "x"}])
def test_an_error_is_an_object_with_a_code(value):
    """A7: arrays, scalars and objects without a code are not errors."""
    assert decode(value) is None
    assert not valid(value)


@pytest.mark.parametrize("filler", ["a", "é", "漢", "🙂", '"', "\\"])
def test_4096_bytes_and_one_more(filler):
    """A7, design 8: the length of the compact UTF-8 JSON, also with characters of several bytes."""
    if filler in {'"', "\\"}:
        # Escaped, they take two bytes each.
        room = MAX_ERROR_BYTES - len('{"code":"X","message":""}')
        fits, too_large = filler * (room // 2), filler * (room // 2 + 1)
        assert valid({"code": "X", "message": fits})
        assert not valid({"code": "X", "message": too_large})
        return
    assert decode(sized(4096, filler)) is not None
    assert decode(sized(4097, filler)) is None


def test_spaces_between_members_do_not_count():
    """Design 8: 4096 bytes of the compact form, however it was sent."""
    spread = json.dumps(sized(4096), indent=200).encode()
    assert len(spread) > 4096
    assert read(spread, "adcp") is not None


def test_short_escapes_that_grow_are_measured():
    """A7: a small document can hold an error that is large in its compact form, and the other way round."""
    floats = {"code": "X", "details": {"n": [1e15] * 400}}
    written = json.dumps(floats).replace("1000000000000000.0", "1e15").replace(" ", "").encode()
    assert len(written) < 4096
    assert read(written, "adcp") is None
    escaped = json.dumps({"code": "X", "message": "漢" * 1000}).encode()
    assert len(escaped) > 4096
    assert read(escaped, "adcp") is not None


def test_the_depth_of_an_error_is_limited():
    """A7: within the 4096 bytes."""
    value: list = []
    for _ in range(MAX_DEPTH - 3):
        value = [value]
    assert decode({"code": "X", "details": {"deep": value}}) is not None
    for _ in range(3):
        value = [value]
    assert decode({"code": "X", "details": {"deep": value}}) is None
    for _ in range(10_000):
        value = [value]
    assert decode({"code": "X", "details": {"deep": value}}) is None


def test_values_that_are_not_json_are_not_errors():
    """Their size cannot be measured."""
    assert decode({"code": "X", "details": {"a": object()}}) is None
    assert decode({"code": "X", None: 1}) is None


@each("code", VOCABULARY.rows)
@each("falsy", ["absent", None, "", 0, False, 0.0, float("nan")])
def test_without_a_recovery_the_table_decides(code, falsy):
    """A12, M1: if it is missing or falsy in JavaScript's sense."""
    error = {"code": code} if falsy == "absent" else {"code": code, "recovery": falsy}
    row = VOCABULARY.rows[code]
    fault = decode(error)
    assert (fault.recovery, fault.executed, fault.actor) == (row.recovery, row.executed, row.actor)


@pytest.mark.parametrize("recovery", ["transient", "correctable", "terminal"])
@pytest.mark.parametrize("code", ["RATE_LIMITED", "BUDGET_TOO_LOW", "X_ACME_ODD"])
def test_a_received_recovery_counts(code, recovery):
    """A12, A15: for known and unknown codes."""
    assert decode({"code": code, "recovery": recovery}).recovery == recovery


def test_an_unknown_code_without_recovery_is_terminal():
    """A12: S4 takes precedence over the published schema."""
    fault = decode({"code": "X_ACME_ODD"})
    assert (fault.recovery, fault.executed, fault.actor) == (
        Recovery.TERMINAL,
        Executed.MAYBE,
        Actor.OPERATOR,
    )


@pytest.mark.parametrize(
    "odd", ["uncertain", "TRANSIENT", "later", "transient ", 1, True, [], {}, ["transient"]]
)
def test_an_unknown_recovery_is_terminal_and_repaired(odd):
    """A12, M1: treated as terminal and passed on as that; the fault keeps the value as it was received (A9)."""
    error = {"code": "RATE_LIMITED", "message": "", "recovery": odd}
    fault = decode(error)
    assert (fault.recovery, fault.extensions["recovery"]) == (Recovery.TERMINAL, odd)
    assert encode(fault) == {**error, "recovery": "terminal"}


def test_an_unknown_recovery_is_dropped_if_the_recovery_changes():
    """M2: the Fault's recovery is always written; the kept value replaces it only if it is still terminal."""
    from msgspec.structs import replace

    fault = decode({"code": "RATE_LIMITED", "recovery": "later"})
    assert encode(replace(fault, recovery=Recovery.TRANSIENT))["recovery"] == "transient"
    assert encode(replace(fault, origin=None))["recovery"] == "terminal"


@pytest.mark.parametrize(
    ("wait", "kept"),
    [
        (5, 5),
        (5.2, 5.2),
        (0, 0),
        (-3, -3),
        (86400, 86400),
        (10**18, 10**18),
        (True, None),
        (False, None),
        ("5", None),
        (None, None),
        ([5], None),
        (float("nan"), None),
        (float("inf"), None),
        (-float("inf"), None),
        (10**400, None),
    ],
)
def test_waits_are_kept_as_received(wait, kept):
    """A9; a value that is not a finite number is absent (A10)."""
    fault = decode({"code": "RATE_LIMITED", "retry_after": wait})
    assert fault.retry_after == kept
    assert type(fault.retry_after) is type(kept)


@pytest.mark.parametrize(
    ("wait", "sent"),
    [(5, 5), (5.2, 6), (0, 1), (-3, 1), (0.01, 1), (3600, 3600), (3600.5, 3600), (86400, 3600)],
)
def test_a_producer_sends_whole_seconds_from_1_to_3600(wait, sent):
    """A10; also of an error that was received from an AdCP peer and is passed on."""
    written = encode(Fault(code="RATE_LIMITED", vocabulary="adcp", retry_after=wait))["retry_after"]
    assert (written, type(written)) == (sent, int)
    received = decode({"code": "RATE_LIMITED", "retry_after": wait})
    assert (received.retry_after, encode(received)["retry_after"]) == (wait, sent)
    foreign = Fault(code="RATE_LIMITED", retry_after=wait, origin=Origin("task"))
    assert encode(foreign)["retry_after"] == sent


@pytest.mark.parametrize(
    ("recovery", "written"),
    [
        ("transient", "transient"),
        ("correctable", "correctable"),
        ("terminal", "terminal"),
        ("uncertain", "transient"),
    ],
)
def test_recovery_is_always_written(recovery, written):
    """M2: in every error."""
    assert encode(Fault(code="X", recovery=recovery))["recovery"] == written


def test_every_member_is_read_and_passed_on():
    """A18: no member is lost, known or unknown."""
    error = {
        "code": "BUDGET_TOO_LOW",
        "message": "The budget is below the minimum",
        "recovery": "correctable",
        "field": "packages[0].budget",
        "suggestion": "Increase the budget",
        "details": {"minimum_budget": 500, "currency": "USD"},
        "issues": [{"pointer": "/packages/0"}],
    }
    fault = decode(error)
    assert (fault.field, fault.suggestions) == ("packages[0].budget", ("Increase the budget",))
    assert fault.extensions == {"issues": [{"pointer": "/packages/0"}]}
    assert encode(fault) == error


def test_wrong_types_are_ignored():
    """A20: code and recovery decide; other members are read only if their type is right."""
    fault = decode({"code": "X", "message": 5, "field": ["a"], "suggestion": {}, "details": "x"})
    assert (fault.message, fault.field, fault.suggestions, fault.details) == ("", None, (), None)


def test_only_the_first_suggestion_is_written():
    """S4 has one member for suggestions; the first is the most likely fix."""
    assert encode(Fault(code="X", suggestions=("a", "b")))["suggestion"] == "a"


def test_own_errors_are_redacted():
    """A19: message, suggestion, details; the declared URL members stay (A14)."""
    leak = "db01.internal.corp refused 10.0.0.5:5432"
    fault = Fault(
        code="ACCOUNT_SETUP_REQUIRED",
        vocabulary="adcp",
        message=leak,
        suggestions=(leak,),
        details={"setup_url": "https://seller.example.com/setup/a", "host": "db01.internal.corp"},
    )
    written = encode(fault)
    assert "db01" not in json.dumps(written)
    assert written["details"]["setup_url"] == "https://seller.example.com/setup/a"


def test_received_errors_are_not_rewritten():
    """A18, design 6: errors of a conformant upstream are passed on unchanged."""
    error = {
        "code": "X",
        "message": "10.0.0.5:5432",
        "recovery": "terminal",
        "details": {"path": "/etc/passwd"},
    }
    assert encode(decode(error)) == error


@often
@given(json_objects(), st.sampled_from(["", "\ufeff"]))
def test_the_same_from_bytes_and_from_objects(rest, mark):
    """A7: bytes and objects give the same fault."""
    error = {**rest, "code": "RATE_LIMITED"}
    assert read((mark + json.dumps(error)).encode(), "adcp") == decode(error)


def test_an_error_in_a_small_document_is_not_measured():
    """A7: the document's size bounds the error's; every other rule still holds."""
    assert plain_error({"code": "X", "message": "a"}, within=40) == {"code": "X", "message": "a"}
    assert plain_error({"code": ""}, within=12) is None
    assert plain_error({"code": "X", "message": "a" * 5000}, within=5100) is None
    assert plain_error([], within=2) is None


def test_a_part_has_its_own_executed():
    """M3: the whole invites to repeat it and had no effect; a part that timed out may have had its own."""
    fault = decode(
        {
            "code": "RATE_LIMITED",
            "message": "Slow down",
            "recovery": "transient",
            "retry_after": 5,
            "errors": [{"code": "TIMEOUT", "message": "Too slow"}],
        }
    )
    assert fault.executed is Executed.NO
    assert fault.errors[0].executed is Executed.MAYBE


SECRET, MASKED = "postgres://u:p@h/d", "postgres://u:[redacted]@h/d"


def test_a_received_error_is_repaired_and_not_replaced():
    """Its code and all keys of its details stay; recovery and wait become conformant, and credentials are masked."""
    received = {
        "code": "SOLD_OUT_AGAIN",
        "message": f"cannot reach {SECRET}",
        "recovery": "weird",
        "retry_after": 99999,
        "field": "/packages/0",
        "details": {"dsn": SECRET, "host": "db.internal", "list": [{"a": f"x {SECRET}"}], "n": 5},
        "errors": [{"code": "X", "recovery": "odd", "retry_after": 0.5, "message": SECRET}],
        "sdk": {"log": SECRET, "id": "seller/3"},
    }
    fault = decode(received)
    assert (fault.extensions["recovery"], fault.retry_after, fault.details["dsn"]) == ("weird", 99999, SECRET)
    written = encode(fault)
    assert written == {
        "code": "SOLD_OUT_AGAIN",
        "message": f"cannot reach {MASKED}",
        "recovery": "terminal",
        "retry_after": 3600,
        "field": "/packages/0",
        "details": {"dsn": MASKED, "host": "db.internal", "list": [{"a": f"x {MASKED}"}], "n": 5},
        "errors": [{"code": "X", "recovery": "terminal", "retry_after": 1, "message": MASKED}],
        "sdk": {"log": MASKED, "id": "seller/3"},
    }
    assert encode(decode(written)) == written


def test_a_conformant_error_is_not_changed():
    """Design 6: not its hosts, its paths, its field or its members that AdCP does not define."""
    received = {
        "code": "CREATIVE_REJECTED",
        "message": "db.internal at 10.0.0.5 says /srv/app is full",
        "recovery": "correctable",
        "field": "/creatives/0",
        "suggestion": "Look at https://internal.example:8443/x",
        "details": {"path": "/etc/passwd", "password_policy": "at least 8"},
        "issues": [{"pointer": "/creatives/0"}],
    }
    assert encode(decode(received)) == received


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("/packages/0/budget", "packages[0].budget"),
        ("packages[0].budget", "packages[0].budget"),
        ("budget", "budget"),
    ],
)
def test_a_field_is_written_as_a_property_path(field, path):
    """AdCP's notation; a pointer in an error that was received stays."""
    part = Fault(code="VALIDATION_ERROR", vocabulary="adcp", field=field)
    written = encode(Fault(code="VALIDATION_ERROR", vocabulary="adcp", field=field, errors=(part,)))
    assert (written["field"], written["errors"][0]["field"]) == (path, path)
    assert encode(decode({"code": "VALIDATION_ERROR", "field": field}))["field"] == field
