"""Translation between vocabularies: M5's table, the original code in `details`, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from amends.core.crosswalk import ORIGINAL, TARGETS, code_in, original, source_row, transfer, transfer_plainly
from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies import app
from amends.core.vocabulary import EVERYDAY, row_for, vocabulary
from amends.dialects import encode
from amends.errors import FaultError
from tests.each import each
from tests.strategies import often

# The table of mappings.md M5: the HTTP status, then the code in each other vocabulary.
M5 = {
    "RATE_LIMITED": (429, "RATE_LIMITED", "RATE_LIMITED", "RATE_LIMITED", "INTERNAL_ERROR"),
    "SERVICE_UNAVAILABLE": (
        503,
        "SERVICE_UNAVAILABLE",
        "AGENT_UNAVAILABLE",
        "SERVICE_UNAVAILABLE",
        "INTERNAL_ERROR",
    ),
    "TIMEOUT": (504, "TIMEOUT", "TIMEOUT", "SERVICE_UNAVAILABLE", "TIMEOUT"),
    "VALIDATION_ERROR": (422, "VALIDATION_ERROR", "INVALID_INPUT", "VALIDATION_ERROR", "INVALID_REQUEST"),
    "NOT_FOUND": (404, "NOT_FOUND", "INVALID_FIELD_VALUE", "REFERENCE_NOT_FOUND", "INVALID_REQUEST"),
    "PERMISSION_DENIED": (
        403,
        "PERMISSION_DENIED",
        "INTERNAL_ERROR",
        "PERMISSION_DENIED",
        "PERMISSION_DENIED",
    ),
    "UNAUTHENTICATED": (401, "PERMISSION_DENIED", "MCP_AUTH_FAILED", "AUTH_MISSING", "UNAUTHENTICATED"),
    "CONFLICT": (409, "CONFLICT", "INVALID_FIELD_VALUE", "CONFLICT", "INVALID_REQUEST"),
    "INTERNAL_ERROR": (500, "INTERNAL_ERROR", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "INTERNAL_ERROR"),
    "CANCELLED": (408, "INTERNAL_ERROR", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "CANCELLED"),
    # What services report most often besides these.
    "QUOTA_EXCEEDED": (429, "PAYMENT_REQUIRED", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "BUDGET_EXHAUSTED"),
    "OVERLOADED": (503, "SERVICE_UNAVAILABLE", "AGENT_BUSY", "SERVICE_UNAVAILABLE", "INTERNAL_ERROR"),
    "CONTEXT_TOO_LONG": (422, "VALIDATION_ERROR", "INVALID_INPUT", "VALIDATION_ERROR", "INVALID_REQUEST"),
    "CONTENT_REFUSED": (422, "VALIDATION_ERROR", "INVALID_INPUT", "POLICY_VIOLATION", "INVALID_REQUEST"),
    "PAYMENT_REQUIRED": (
        402,
        "PAYMENT_REQUIRED",
        "INTERNAL_ERROR",
        "ACCOUNT_PAYMENT_REQUIRED",
        "BUDGET_EXHAUSTED",
    ),
    "NOT_READY": (503, "SERVICE_UNAVAILABLE", "AGENT_BUSY", "SERVICE_UNAVAILABLE", "INTERNAL_ERROR"),
}
EVERY_CODE = [(name, code) for name in TARGETS for code in vocabulary(name).rows]


@pytest.mark.parametrize("code", M5)
def test_the_everyday_set_in_every_vocabulary(code):
    """M5: every row of the table."""
    status, *codes = M5[code]
    fault = Fault(code=code)
    translated = transfer(fault, "http")
    assert (translated.code, translated.status, translated.vocabulary) == (code, status, "http")
    assert [transfer(fault, to).code for to in TARGETS[1:]] == codes


def test_the_table_is_the_whole_everyday_set():
    """M5 has a row for every everyday code."""
    assert set(M5) == set(vocabulary(EVERYDAY).rows)


def test_a_terminal_unauthenticated_is_auth_invalid_in_adcp():
    """M5: UNAUTHENTICATED becomes AUTH_INVALID if it is terminal, else AUTH_MISSING."""
    assert code_in("adcp", "UNAUTHENTICATED", Recovery.TERMINAL) == "AUTH_INVALID"
    assert code_in("adcp", "UNAUTHENTICATED") == "AUTH_MISSING"
    assert transfer(Fault(code="UNAUTHENTICATED", recovery="terminal"), "adcp").code == "AUTH_INVALID"


@each("to", TARGETS)
@each("code", M5)
def test_recovery_does_not_change(code, to):
    """M2: translation keeps the recovery; M5's exception is a cancellation that has the default recovery."""
    fault = Fault(code=code)
    expected = fault.recovery if (code, to) != ("CANCELLED", "http") else Recovery.TRANSIENT
    assert transfer(fault, to).recovery is expected


@pytest.mark.parametrize("to", TARGETS[1:])
def test_a_cancellation_raised_for_http_is_terminal_elsewhere(to):
    """M5: CANCELLED is transient in http (S1) and terminal elsewhere (S5)."""
    fault = Fault(code="CANCELLED", vocabulary="http")
    assert fault.recovery is Recovery.TRANSIENT
    assert transfer(fault, to).recovery is Recovery.TERMINAL


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("recovery", Recovery)
def test_a_received_cancellation_keeps_its_recovery(to, recovery):
    """M2: the recovery that the sender or the decoder set is kept."""
    for name in ("http", "arcp"):
        fault = Fault(code="CANCELLED", vocabulary=name, recovery=recovery, origin=Origin(name))
        assert transfer(fault, to).recovery is recovery


@pytest.mark.parametrize("to", TARGETS)
def test_there_and_back_restores_every_code(to):
    """M5: the original code is restored from `details` for any recovery, and then removed from `details`."""
    for name, code in EVERY_CODE:
        for recovery in Recovery:
            fault = Fault(code=code, vocabulary=name, recovery=recovery, details={"a": 1}, origin=Origin("x"))
            translated = transfer(fault, to)
            assert translated.vocabulary == to
            assert translated.recovery is recovery
            back = transfer(translated, name)
            assert (back.code, back.recovery, back.details) == (code, recovery, {"a": 1}), (name, translated)


@pytest.mark.parametrize("via", TARGETS)
@pytest.mark.parametrize("to", TARGETS)
def test_a_detour_changes_nothing(via, to):
    """Translating through a third vocabulary gives the same code as translating directly."""
    for name, code in EVERY_CODE:
        if name not in {via, to}:
            fault = Fault(code=code, vocabulary=name, status=row_for(name, code).status, origin=Origin("x"))
            direct = transfer(fault, to)
            detour = transfer(transfer(fault, via), to)
            if original(transfer(fault, via)) is not None:
                assert detour.code == direct.code, (name, code)
            assert transfer(detour, name).recovery is fault.recovery


@often
@given(
    st.text(min_size=1, max_size=64),
    st.sampled_from(TARGETS),
    st.sampled_from(TARGETS),
    st.sampled_from(Recovery),
    st.none() | st.integers(100, 599),
)
def test_there_and_back_restores_unknown_codes(code, name, to, recovery, status):
    """A15: a vendor's code is restored, and its recovery does not change."""
    fault = Fault(code=code, vocabulary=name, recovery=recovery, status=status, origin=Origin("x"))
    translated = transfer(fault, to)
    back = transfer(translated, name)
    assert translated.recovery is recovery
    # A status that was added for http stays; the other vocabularies ignore it.
    assert replace(back, status=status) == fault


def test_an_identical_code_needs_no_original():
    """If both vocabularies have the code with the same meaning, `details` do not change."""
    assert transfer(Fault(code="RATE_LIMITED", vocabulary="cli"), "adcp").details is None


def test_an_identical_code_with_another_meaning_keeps_its_original():
    """An unknown task code that is also the name of an AdCP code keeps its original in `details`."""
    fault = Fault(code="SERVICE_UNAVAILABLE", vocabulary="task", origin=Origin("task"))
    translated = transfer(fault, "adcp")
    assert translated.details == {ORIGINAL: {"vocabulary": "task", "code": "SERVICE_UNAVAILABLE"}}
    assert transfer(translated, "task").code == "SERVICE_UNAVAILABLE"


@pytest.mark.parametrize("code", ["INVALID_REQUEST", "BUDGET_EXHAUSTED"])
def test_codes_that_two_vocabularies_share_are_kept(code):
    """AdCP and ARCP share these codes, so they are not replaced by the coarser everyday code."""
    assert transfer(Fault(code=code, vocabulary="adcp"), "arcp").code == code
    assert transfer(Fault(code=code, vocabulary="arcp"), "adcp").code == code


@pytest.mark.parametrize("to", ["everyday", "app", "problem", "nowhere", ""])
def test_other_targets_raise(to):
    """Design 9: the targets are http, cli, task, adcp and arcp; others raise LookupError."""
    with pytest.raises(LookupError):
        transfer(Fault(code="TIMEOUT"), to)


def test_a_missing_status_is_added_for_http():
    """Translation into http adds the status of the row, unless the fault has one."""
    assert transfer(Fault(code="TIMEOUT"), "http").status == 504
    assert transfer(Fault(code="TIMEOUT", status=408), "http").status == 408
    assert transfer(Fault(code="X_ACME_ODD", vocabulary="adcp"), "http").status == 500
    assert transfer(Fault(code="TIMEOUT"), "cli").status is None


def test_parts_are_translated_too():
    """A18: each nested fault is translated and keeps its own original code."""
    part = Fault(code="NOT_FOUND", errors=(Fault(code="TIMEOUT"),))
    translated = transfer(Fault(code="CONFLICT", errors=(part,)), "adcp")
    assert [child.code for child in translated.errors] == ["REFERENCE_NOT_FOUND"]
    assert [child.code for child in translated.errors[0].errors] == ["SERVICE_UNAVAILABLE"]
    mixed = Fault(code="CONFLICT", vocabulary="adcp", errors=(part,))
    assert transfer(mixed, "adcp").errors == translated.errors
    done = replace(translated, details=None)
    assert transfer(done, "adcp") is done


@pytest.mark.parametrize(
    "note",
    [
        "NOT_FOUND",
        None,
        {},
        {"vocabulary": "everyday"},
        {"vocabulary": "everyday", "code": 5},
        {"vocabulary": 5, "code": "NOT_FOUND"},
        {"vocabulary": ["everyday"], "code": "NOT_FOUND"},
        {"vocabulary": "nowhere", "code": "NOT_FOUND"},
        {"vocabulary": "everyday", "code": ""},
        {"vocabulary": "everyday", "code": "N" * 65},
        {"vocabulary": "everyday", "code": "RATE_LIMITED"},
        {"vocabulary": "task", "code": "TIMEOUT"},
    ],
)
def test_a_received_original_is_checked(note):
    """A20: an original code in received details is used only if it translates into the received code."""
    fault = Fault(code="REFERENCE_NOT_FOUND", vocabulary="adcp", details={ORIGINAL: note})
    assert original(fault) is None
    assert source_row(fault) == row_for("adcp", "REFERENCE_NOT_FOUND")
    assert transfer(fault, "task").recovery is fault.recovery


def test_the_original_of_a_translated_fault():
    """`original` and `source_row` return the code and row that the fault was raised with."""
    translated = transfer(Fault(code="NOT_FOUND"), "adcp")
    assert original(translated) == ("everyday", "NOT_FOUND")
    assert source_row(translated) == row_for(EVERYDAY, "NOT_FOUND")
    assert original(Fault(code="X")) is None


@pytest.fixture
def own_code():
    """A user's own code, unregistered after the test."""

    class OutOfStock(FaultError):
        code = "OUT_OF_STOCK_CROSSWALK"
        recovery = "correctable"
        status = 409
        everyday = "CONFLICT"

    yield OutOfStock.code
    app._ROWS.pop(OutOfStock.code)


def test_a_users_own_code_is_kept_where_codes_are_open(own_code):
    """S1 and S2 allow any code; the closed vocabularies get the nearest code and the original in `details`."""
    fault = Fault(code=own_code, vocabulary="app")
    assert [transfer(fault, to).code for to in TARGETS] == [
        own_code,
        own_code,
        "INVALID_FIELD_VALUE",
        # AdCP's CONFLICT is transient, and the code is correctable.
        "INVALID_REQUEST",
        "INVALID_REQUEST",
    ]
    assert transfer(fault, "http").details is None
    assert transfer(fault, "http").status == 409
    translated = transfer(fault, "task")
    assert translated.details == {ORIGINAL: {"vocabulary": "app", "code": own_code}}
    assert (transfer(translated, "cli").code, transfer(translated, "cli").details) == (own_code, None)


def test_a_plain_transfer_keeps_the_other_details():
    """Only the note of the original code is left out."""
    fault = Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "Notion"})
    noted, plainly = transfer(fault, "adcp"), transfer_plainly(fault, "adcp")
    assert ORIGINAL in noted.details
    assert plainly.details == {"mcp": "Notion"}
    assert transfer_plainly(Fault(code="MCP_NOT_CONNECTED", vocabulary="task"), "adcp").details is None


@pytest.mark.parametrize(
    ("details", "more", "recovery"),
    [
        ({"expected_version": 3, "current_version": 5}, {}, "transient"),
        ({"expected_version": 3, "current_version": 5, "resource": "order"}, {}, "transient"),
        ({"expected_version": 3}, {}, "correctable"),
        (None, {}, "correctable"),
        ({"expected_version": 3, "current_version": 5}, {"recovery": "terminal"}, "terminal"),
        ({"expected_version": 3, "current_version": 5}, {"origin": Origin("problem")}, "correctable"),
    ],
)
def test_a_conflict_of_versions_is_transient_in_adcp(details, more, recovery):
    """M5: AdCP's own CONFLICT. Any other conflict stays correctable, and both are written."""
    fault = Fault(code="CONFLICT", details=details, **more)
    translated = transfer(fault, "adcp")
    assert (translated.code, translated.recovery, translated.executed) == ("CONFLICT", recovery, "no")
    assert encode(translated, "adcp")["recovery"] == recovery
    assert transfer(fault, "http").recovery == fault.recovery
