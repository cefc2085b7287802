"""The AdCP table: the published codes (A13), the columns we added, and vendor codes (A15)."""

import json
import re
import string
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amends.core.enums import Actor, Executed, Recovery
from amends.core.vocabularies import adcp
from amends.core.vocabularies.adcp import ROWS, VOCABULARY, check_code, is_standard_code, is_vendor_code
from amends.core.vocabularies.everyday import VOCABULARY as EVERYDAY
from amends.core.vocabulary import Row, row_for, vocabulary
from tests.each import each

FACTS = json.loads((Path(__file__).parents[1] / "data" / "adcp-codes.json").read_text())
ALL = (*ROWS, VOCABULARY.unknown)


def test_the_codes_are_the_published_ones_in_their_order():
    """A13: the table has the 120 published codes with their published recovery, in order."""
    assert [(row.code, row.recovery.value) for row in ROWS] == list(FACTS["recovery"].items())
    assert len(VOCABULARY.rows) == len(ROWS) == 120


def test_aliases_are_kept_verbatim():
    """A13: a deprecated code is not rewritten; its row names the current code, which is also published."""
    assert {row.code: row.alias for row in ROWS if row.alias} == FACTS["aliases"]
    assert VOCABULARY.row("AUTH_REQUIRED").code == "AUTH_REQUIRED"
    assert {row.alias for row in ROWS if row.alias} <= VOCABULARY.rows.keys()


def test_lookup_by_name():
    """`vocabulary("adcp")` returns this table, and `row_for` finds every row."""
    assert vocabulary("adcp") is VOCABULARY
    assert VOCABULARY.name == "adcp"
    assert [row_for("adcp", row.code) for row in ROWS] == list(ROWS)


def test_an_unknown_code_is_terminal():
    """A12: an unknown code without a recovery is terminal."""
    row = VOCABULARY.row("NO_SUCH_CODE", 429)
    assert row is VOCABULARY.unknown
    assert (row.code, row.recovery, row.everyday) == ("UNKNOWN", Recovery.TERMINAL, "INTERNAL_ERROR")
    assert (row.executed, row.actor) == (Executed.MAYBE, Actor.OPERATOR)
    assert row.code not in VOCABULARY.rows


@each("row", ALL, ids=lambda row: row.code)
def test_executed(row: Row):
    """M3: correctable codes, CONFLICT and RATE_LIMITED had no effect; for all others it is unknown."""
    harmless = row.recovery is Recovery.CORRECTABLE or row.code in {"CONFLICT", "RATE_LIMITED"}
    assert row.executed is (Executed.NO if harmless else Executed.MAYBE)


@each("row", ALL, ids=lambda row: row.code)
def test_every_row_has_an_everyday_code(row: Row):
    """Each row names an everyday code, and has a status only if it differs from that code's status."""
    assert row.everyday in EVERYDAY.rows
    assert row.status is None or (
        400 <= row.status < 600 and row.status != EVERYDAY.rows[row.everyday].status
    )


@each("row", ROWS, ids=lambda row: row.code)
def test_the_everyday_code_matches_the_name(row: Row):
    """Codes with a common prefix or suffix have the same everyday code."""
    if row.code.endswith("_NOT_FOUND"):
        assert row.everyday == "NOT_FOUND"
    if row.code.startswith("AUTH_"):
        assert row.everyday == "UNAUTHENTICATED"
    if row.code.startswith("IDEMPOTENCY_"):
        assert row.everyday == "CONFLICT"
    if row.code.endswith(("_SUSPENDED", "_BLOCKED", "_SCOPE", "_PERMITTED")):
        assert row.everyday == "PERMISSION_DENIED"
    if row.code in EVERYDAY.rows:
        assert row.everyday == row.code


def test_rows_with_their_own_status():
    """Payment is 402, malformed is 400, expired is 410; all others have the status of their everyday code."""
    own: dict[int, set[str]] = {}
    for row in ROWS:
        if row.status is not None:
            own.setdefault(row.status, set()).add(row.code)
    assert own == {
        400: {"INVALID_REQUEST", "VERSION_UNSUPPORTED", "CREDENTIAL_IN_ARGS"},
        402: {"ACCOUNT_PAYMENT_REQUIRED", "BUDGET_EXHAUSTED"},
        410: {"PROPOSAL_EXPIRED", "PRODUCT_EXPIRED", "CURSOR_EXPIRED", "SESSION_TERMINATED", "ACCOUNT_MOVED"},
    }


def test_reserved_jsonrpc_codes():
    """S4 reserves three JSON-RPC numbers for rejections before dispatch; all other codes are sent in a result."""
    assert {row.code: row.jsonrpc for row in ROWS if row.jsonrpc is not None} == {
        "RATE_LIMITED": -32029,
        "AUTH_MISSING": -32028,
        "SERVICE_UNAVAILABLE": -32027,
    }


def test_terminal_codes_need_a_person():
    """The actor of a terminal code is never the calling program."""
    assert {
        row.code for row in ALL if row.recovery is Recovery.TERMINAL and row.actor is Actor.CALLER
    } == set()


def test_all_four_actors_occur():
    """Each actor (caller, user, operator, provider) has at least one code."""
    assert {row.actor for row in ROWS} == set(Actor)
    assert VOCABULARY.row("CONFIGURATION_ERROR").actor is Actor.OPERATOR
    assert VOCABULARY.row("IO_REQUIRED").actor is Actor.USER
    assert VOCABULARY.row("GOVERNANCE_UNAVAILABLE").actor is Actor.PROVIDER


@each("row", ALL, ids=lambda row: row.code)
def test_texts_have_the_same_form(row: Row):
    """Ours: texts are short, begin with a capital letter and are ASCII; only user messages end with punctuation."""
    assert 0 < len(row.message) <= 80
    assert 0 < len(row.suggestion) <= 120
    assert 0 < len(row.user_message) <= 120
    for text in (row.message, row.suggestion):
        assert text[0].isupper()
        assert text[-1].isalnum()
    assert row.user_message[0].isupper()
    assert row.user_message[-1] in ".?"
    assert (row.message + row.suggestion + row.user_message).isascii()


@each("row", ALL, ids=lambda row: row.code)
def test_suggestions_reveal_nothing(row: Row):
    """A19: texts contain no number, address, identifier or field path."""
    for text in (row.message, row.suggestion, row.user_message):
        assert not set(text) & set(string.digits + "/_`@[]<>")


@each("row", ALL, ids=lambda row: row.code)
def test_the_only_placeholder_is_name(row: Row):
    """`{name}` is the name of a missing thing; only user messages contain it."""
    fields = [field for _, field, _, _ in string.Formatter().parse(row.user_message) if field is not None]
    assert fields in ([], ["name"])
    assert not fields or row.everyday == "NOT_FOUND"
    assert "{" not in row.message + row.suggestion


def test_texts_are_unique():
    """Every code has its own texts; only a deprecated code shares the user message of its successor."""
    for column in ("message", "suggestion", "user_message"):
        seen = Counter(getattr(row, column) for row in ALL if row.alias is None)
        assert [text for text, times in seen.items() if times > 1] == []
    assert VOCABULARY.row("AUTH_REQUIRED").user_message == VOCABULARY.row("AUTH_MISSING").user_message


def test_the_patterns_of_vendor_codes():
    """A15: the two patterns are those of S4, and importing compiles no pattern."""
    assert (adcp.VENDOR, adcp.CODE) == ("^[A-Z][A-Z0-9]{1,19}$", "^[A-Z][A-Z0-9_]{1,39}$")
    assert not [name for name, value in vars(adcp).items() if isinstance(value, re.Pattern)]


@pytest.mark.parametrize(
    "code",
    [
        "X_STREAMHAUS_FLOOR_NOT_MET",
        "X_AB_CD",
        "X_A1_B_",
        "X_A1_B__2",
        f"X_{'V' * 20}_{'C' * 40}",
    ],
)
def test_vendor_codes(code: str):
    """A15: both parts may have from two characters up to their maximum length."""
    assert is_vendor_code(code)
    assert not is_standard_code(code)
    check_code(code)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "X_",
        "X__FLOOR",
        "X_STREAMHAUS",
        "X_STREAMHAUS_",
        "X_STREAMHAUS_F",
        "X_S_FLOOR",
        "X_1STREAM_FLOOR",
        "X_STREAMHAUS_1FLOOR",
        "X_STREAMHAUS__FLOOR",
        "X_Streamhaus_FLOOR",
        "X_STREAMHAUS_floor",
        "X_STREAMHAUS_FLOOR\n",
        " X_STREAMHAUS_FLOOR",
        "x_STREAMHAUS_FLOOR",
        "Y_STREAMHAUS_FLOOR",
        "X_STREAMHÄUSER_FLOOR",
        "X_STREAMHAUS_FLOOR٣",
        f"X_{'V' * 21}_CODE",
        f"X_VENDOR_{'C' * 41}",
        "FLOOR_NOT_MET",
        "rate_limited",
        "UNKNOWN",
    ],
)
def test_codes_a_producer_may_not_send(code: str):
    """A15: a code that is neither published nor a vendor code raises; the message describes the form."""
    assert not is_vendor_code(code)
    with pytest.raises(ValueError, match="X_VENDOR_CODE"):
        check_code(code)


def test_the_error_message_is_bounded():
    """The error message stays short for a code of any length."""
    with pytest.raises(ValueError) as caught:
        check_code("A" * 1_000_000)
    assert len(str(caught.value)) < 400


@each("row", ROWS, ids=lambda row: row.code)
def test_published_codes_may_be_sent(row: Row):
    """Every published code passes the check, including the deprecated one, and none is a vendor code."""
    assert is_standard_code(row.code)
    assert not is_vendor_code(row.code)
    check_code(row.code)


@given(
    st.from_regex(adcp.VENDOR.strip("^$"), fullmatch=True),
    st.from_regex(adcp.CODE.strip("^$"), fullmatch=True),
)
def test_any_two_parts_make_a_vendor_code(vendor: str, code: str):
    """A15: any two parts that match the patterns are a vendor code of at most 64 characters (A7)."""
    whole = f"X_{vendor}_{code}"
    assert is_vendor_code(whole)
    assert len(whole) <= 64


@given(
    st.one_of(st.text(), st.text("XAZ09_\n", max_size=70), st.text("XAZ09_", max_size=70).map("X_".__add__))
)
@example("X_A_B_C")
def test_is_vendor_code_agrees_with_the_patterns(code: str):
    """A15: for any text, the result equals that of S4's two patterns applied to the parts."""
    prefix, _, rest = code.partition("_")
    vendor, _, own = rest.partition("_")
    parts = re.fullmatch(adcp.VENDOR, vendor), re.fullmatch(adcp.CODE, own)
    assert is_vendor_code(code) is (prefix == "X" and all(parts))


def test_a_long_code_is_shortened_in_the_message():
    """To its first 64 characters, so that a message stays readable."""
    with pytest.raises(
        ValueError, match=rf"^'{'A' * 64}' is not a published AdCP code: .*X_ACME_FLOOR_NOT_MET"
    ):
        check_code("A" * 65)
