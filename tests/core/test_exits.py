"""The two published exit code tables, read and written (M4, C7)."""

import pytest

from amends.core.crosswalk import transfer
from amends.core.enums import Recovery
from amends.core.exits import DEFAULT_PROFILE, PROFILES, exit_code
from amends.core.fault import Fault
from amends.core.vocabularies import app
from amends.core.vocabulary import names, row_for, vocabulary
from amends.errors import FaultError

CLI = vocabulary("cli")

S2 = {
    1: ("INTERNAL_ERROR", "maybe"),
    2: ("VALIDATION_ERROR", "no"),
    3: ("USAGE_ERROR", "no"),
    4: ("NOT_FOUND", "no"),
    6: ("CONFLICT", "maybe"),
    7: ("TIMEOUT", "maybe"),
    8: ("PERMISSION_DENIED", "no"),
    9: ("RATE_LIMITED", "no"),
    12: ("SERVICE_UNAVAILABLE", "maybe"),
    130: ("INTERNAL_ERROR", "maybe"),
    143: ("INTERNAL_ERROR", "maybe"),
}
V2 = {
    1: ("INTERNAL_ERROR", "maybe"),
    2: ("VALIDATION_ERROR", "no"),
    3: ("PARTIAL_FAILURE", "yes"),
    4: ("PRECONDITION_FAILED", "no"),
    5: ("NOT_FOUND", "no"),
    6: ("CONFLICT", "no"),
    7: ("PERMISSION_DENIED", "no"),
    8: ("AUTH_REQUIRED", "no"),
    9: ("PAYMENT_REQUIRED", "no"),
    10: ("TIMEOUT", "maybe"),
    11: ("RATE_LIMITED", "no"),
    12: ("SERVICE_UNAVAILABLE", "no"),
    13: ("REDIRECTED", "no"),
    130: ("INTERNAL_ERROR", "maybe"),
    143: ("INTERNAL_ERROR", "maybe"),
}


@pytest.mark.parametrize(("profile", "expected"), [("v1", S2), ("v2", V2)])
def test_the_code_of_each_exit(profile, expected):
    """M4, C7, M3: each number has a code and states whether the command may have had its effect."""
    assert {number: (row.code, row.executed) for number, row in PROFILES[profile].items()} == expected


def test_s2_is_the_default():
    """Design 8: v1 is the default profile; v2 can be selected."""
    assert (DEFAULT_PROFILE, set(PROFILES)) == ("v1", {"v1", "v2"})


@pytest.mark.parametrize(
    ("number", "retried"), [(7, True), (9, True), (2, False), (3, False), (4, False), (8, False)]
)
def test_a_conformant_exit_decides_whether_to_retry(number, retried):
    """C7: without an envelope, exits 7 and 9 of a conformant tool are retried; 2, 3, 4 and 8 are permanent."""
    recovery = CLI.rows[PROFILES["v1"][number].code].recovery
    assert (recovery is Recovery.TRANSIENT) is retried


@pytest.mark.parametrize("profile", PROFILES)
def test_every_code_has_an_exit_and_none_is_success(profile):
    """C7: every code of every vocabulary has an exit from 1 to 255; 0 would mean success."""
    for name in names():
        for code in (*vocabulary(name).rows, "NO_SUCH_CODE"):
            assert 0 < exit_code(Fault(code=code, vocabulary=name), profile) < 256


@pytest.mark.parametrize(
    ("code", "v1", "v2"),
    [
        ("VALIDATION_ERROR", 2, 2),
        ("USAGE_ERROR", 3, 2),
        ("NOT_FOUND", 4, 5),
        ("CONFLICT", 6, 6),
        ("TIMEOUT", 7, 10),
        ("PERMISSION_DENIED", 8, 7),
        ("AUTH_REQUIRED", 8, 8),
        ("PAYMENT_REQUIRED", 8, 9),
        ("RATE_LIMITED", 9, 11),
        ("SERVICE_UNAVAILABLE", 12, 12),
        ("NETWORK_ERROR", 12, 12),
        ("INTERNAL_ERROR", 1, 1),
        ("PARTIAL_FAILURE", 1, 3),
        ("PRECONDITION_FAILED", 6, 4),
        ("REDIRECTED", 3, 13),
    ],
)
def test_exits_of_cli_codes(code, v1, v2):
    """M4: each code of the cli vocabulary has its number in both tables."""
    fault = Fault(code=code, vocabulary="cli")
    assert (exit_code(fault), exit_code(fault, "v2")) == (v1, v2)


@pytest.mark.parametrize(
    ("code", "v1", "v2"),
    [("UNAUTHENTICATED", 8, 7), ("CANCELLED", 130, 130), ("TIMEOUT", 7, 10), ("INTERNAL_ERROR", 1, 1)],
)
def test_exits_of_everyday_codes(code, v1, v2):
    """M4, M5: UNAUTHENTICATED exits 8 in v1; a cancellation exits 130 in both tables."""
    assert (exit_code(Fault(code=code)), exit_code(Fault(code=code), "v2")) == (v1, v2)


def test_a_translated_fault_has_the_exit_of_its_original():
    """M5: CANCELLED becomes INTERNAL_ERROR on a command line and exits 130."""
    translated = transfer(Fault(code="CANCELLED"), "cli")
    assert (translated.code, exit_code(translated)) == ("INTERNAL_ERROR", 130)


def test_a_written_exit_is_read_as_its_code():
    """The exit of a code that has its own number in a table is read as that code."""
    for profile, table in PROFILES.items():
        for row in table.values():
            number = exit_code(Fault(code=row.code, vocabulary="cli"), profile)
            assert table[number].code == row.code


def test_other_vocabularies_exit_by_their_everyday_code():
    """C7: a code without its own exit has that of its everyday code."""
    for name in ("adcp", "arcp", "task", "http"):
        for code, row in vocabulary(name).rows.items():
            assert exit_code(Fault(code=code, vocabulary=name)) == (
                row.exit or row_for("everyday", row.everyday).exit
            )


def test_the_exit_of_a_users_class():
    """Design 3: `exit` of a user's class is used; 0 becomes 1."""

    class Broken(FaultError):
        code = "BROKEN_EXITS"
        exit = 42

    class Zero(FaultError):
        code = "ZERO_EXITS"
        exit = 0

    try:
        assert exit_code(Broken().fault) == 42
        assert exit_code(Zero().fault) == 1
    finally:
        app._ROWS.pop("BROKEN_EXITS")
        app._ROWS.pop("ZERO_EXITS")


def test_an_unknown_profile_is_a_lookup_error():
    """A profile other than v1 and v2 raises LookupError."""
    with pytest.raises(LookupError):
        exit_code(Fault(code="TIMEOUT"), "v3")


def test_v2_is_the_published_table():
    """M4: the v2 profile has the published numbers and the two signals."""
    assert set(PROFILES["v2"]) == {*range(1, 14), 130, 143}
