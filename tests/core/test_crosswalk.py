"""Translating codes between vocabularies: M5's table, the note of the original code, and translating back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from amends.core.crosswalk import ORIGINAL, TARGETS, code_in, original, source_row, transfer
from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies import app
from amends.core.vocabulary import EVERYDAY, row_for, vocabulary
from amends.errors import FaultError
from tests.strategies import often

# mappings.md M5, as it is written there: (code, recovery where M5 says one besides the everyday's own).
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
}
EVERY_CODE = [(name, code) for name in TARGETS for code in vocabulary(name).rows]


@pytest.mark.parametrize("code", M5)
def test_the_everyday_set_in_every_vocabulary(code):
    """M5, row by row."""
    status, *words = M5[code]
    fault = Fault(code=code)
    told = transfer(fault, "http")
    assert (told.code, told.status, told.vocabulary) == (code, status, "http")
    assert [transfer(fault, to).code for to in TARGETS[1:]] == words


def test_the_table_is_the_whole_everyday_set():
    """Every everyday code has a row in M5."""
    assert set(M5) == set(vocabulary(EVERYDAY).rows)


def test_terminal_unauthenticated_is_auth_invalid_in_adcp():
    """M5: AUTH_INVALID if terminal, else AUTH_MISSING."""
    assert code_in("adcp", "UNAUTHENTICATED", Recovery.TERMINAL) == "AUTH_INVALID"
    assert code_in("adcp", "UNAUTHENTICATED") == "AUTH_MISSING"
    assert transfer(Fault(code="UNAUTHENTICATED", recovery="terminal"), "adcp").code == "AUTH_INVALID"


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("code", M5)
def test_recovery_is_carried(code, to):
    """M2: translating never changes the recovery. M5's only exception is a cancellation raised without one."""
    fault = Fault(code=code)
    expected = fault.recovery if (code, to) != ("CANCELLED", "http") else Recovery.TRANSIENT
    assert transfer(fault, to).recovery is expected


@pytest.mark.parametrize("to", TARGETS[1:])
def test_a_cancellation_raised_for_http_is_terminal_elsewhere(to):
    """M5: transient in http (S1), terminal elsewhere (S5)."""
    fault = Fault(code="CANCELLED", vocabulary="http")
    assert fault.recovery is Recovery.TRANSIENT
    assert transfer(fault, to).recovery is Recovery.TERMINAL


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("recovery", Recovery)
def test_a_cancellation_that_came_from_outside_keeps_its_recovery(to, recovery):
    """M2: a received recovery does not change."""
    for name in ("http", "arcp"):
        fault = Fault(code="CANCELLED", vocabulary=name, recovery=recovery, origin=Origin(name))
        assert transfer(fault, to).recovery is recovery


@pytest.mark.parametrize("to", TARGETS)
def test_there_and_back_restores_every_code(to):
    """M5: `details` keeps the original code, whatever the recovery; translating back removes the note."""
    for name, code in EVERY_CODE:
        for recovery in Recovery:
            fault = Fault(code=code, vocabulary=name, recovery=recovery, details={"a": 1}, origin=Origin("x"))
            told = transfer(fault, to)
            assert told.vocabulary == to
            assert told.recovery is recovery
            back = transfer(told, name)
            assert (back.code, back.recovery, back.details) == (code, recovery, {"a": 1}), (name, told)


@pytest.mark.parametrize("via", TARGETS)
@pytest.mark.parametrize("to", TARGETS)
def test_a_detour_changes_nothing(via, to):
    """The result depends on the original code, not on translations in between."""
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
    """A15: a vendor's code is restored too, and its recovery does not change."""
    fault = Fault(code=code, vocabulary=name, recovery=recovery, status=status, origin=Origin("x"))
    told = transfer(fault, to)
    back = transfer(told, name)
    assert told.recovery is recovery
    # The status that http added stays: it is correct, and other vocabularies ignore it.
    assert replace(back, status=status) == fault


def test_the_same_code_needs_no_note():
    """If both vocabularies have the same code for each other, `details` do not change."""
    assert transfer(Fault(code="RATE_LIMITED", vocabulary="cli"), "adcp").details is None


def test_the_same_code_with_another_meaning_gets_a_note():
    """A task error with the name of an AdCP code is not that AdCP code."""
    fault = Fault(code="SERVICE_UNAVAILABLE", vocabulary="task", origin=Origin("task"))
    told = transfer(fault, "adcp")
    assert told.details == {ORIGINAL: {"vocabulary": "task", "code": "SERVICE_UNAVAILABLE"}}
    assert transfer(told, "task").code == "SERVICE_UNAVAILABLE"


@pytest.mark.parametrize("code", ["INVALID_REQUEST", "BUDGET_EXHAUSTED"])
def test_codes_that_two_vocabularies_share_are_not_translated(code):
    """AdCP and ARCP share these codes, which are more specific than the everyday ones."""
    assert transfer(Fault(code=code, vocabulary="adcp"), "arcp").code == code
    assert transfer(Fault(code=code, vocabulary="arcp"), "adcp").code == code


@pytest.mark.parametrize("to", ["everyday", "app", "problem", "nowhere", ""])
def test_there_are_five_targets(to):
    """Design 9: translate takes http, cli, task, adcp, arcp."""
    with pytest.raises(LookupError):
        transfer(Fault(code="TIMEOUT"), to)


def test_a_status_is_given_only_where_there_is_none():
    """Translating to http adds the row's status if the fault has none."""
    assert transfer(Fault(code="TIMEOUT"), "http").status == 504
    assert transfer(Fault(code="TIMEOUT", status=408), "http").status == 408
    assert transfer(Fault(code="X_ACME_ODD", vocabulary="adcp"), "http").status == 500
    assert transfer(Fault(code="TIMEOUT"), "cli").status is None


def test_parts_are_translated_too():
    """A18: each part of an aggregate is translated, with its own note."""
    part = Fault(code="NOT_FOUND", errors=(Fault(code="TIMEOUT"),))
    told = transfer(Fault(code="CONFLICT", errors=(part,)), "adcp")
    assert [child.code for child in told.errors] == ["REFERENCE_NOT_FOUND"]
    assert [child.code for child in told.errors[0].errors] == ["SERVICE_UNAVAILABLE"]
    mixed = Fault(code="CONFLICT", vocabulary="adcp", errors=(part,))
    assert transfer(mixed, "adcp").errors == told.errors
    done = replace(told, details=None)
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
def test_a_note_from_outside_is_checked(note):
    """A20: `details` come from the sender. A note can make a code more specific, but not turn it into another one."""
    fault = Fault(code="REFERENCE_NOT_FOUND", vocabulary="adcp", details={ORIGINAL: note})
    assert original(fault) is None
    assert source_row(fault) == row_for("adcp", "REFERENCE_NOT_FOUND")
    assert transfer(fault, "task").recovery is fault.recovery


def test_a_note_that_translating_made_is_used():
    """The row is that of the original code."""
    told = transfer(Fault(code="NOT_FOUND"), "adcp")
    assert original(told) == ("everyday", "NOT_FOUND")
    assert source_row(told) == row_for(EVERYDAY, "NOT_FOUND")
    assert original(Fault(code="X")) is None


@pytest.fixture
def own_code():
    """Define a user's own code, and remove it after the test."""

    class OutOfStock(FaultError):
        code = "OUT_OF_STOCK_CROSSWALK"
        recovery = "correctable"
        status = 409
        everyday = "CONFLICT"

    yield OutOfStock.code
    app._ROWS.pop(OutOfStock.code)


def test_a_users_own_code_is_kept_where_any_code_is_allowed(own_code):
    """S1 and S2 allow any code; other vocabularies get the nearest everyday code and the note."""
    fault = Fault(code=own_code, vocabulary="app")
    assert [transfer(fault, to).code for to in TARGETS] == [
        own_code,
        own_code,
        "INVALID_FIELD_VALUE",
        "CONFLICT",
        "INVALID_REQUEST",
    ]
    assert transfer(fault, "http").details is None
    assert transfer(fault, "http").status == 409
    told = transfer(fault, "task")
    assert told.details == {ORIGINAL: {"vocabulary": "app", "code": own_code}}
    assert (transfer(told, "cli").code, transfer(told, "cli").details) == (own_code, None)
