"""Looking up codes by (vocabulary, code)."""

import pytest

from amends.core import vocabulary as module
from amends.core.enums import Actor, Recovery
from amends.core.vocabulary import EVERYDAY, Row, Vocabulary, names, register, row_for, vocabulary

BUILT_IN = ("everyday", "http", "cli", "task", "adcp", "arcp", "app")


def row(**changes):
    """Return a row with the required fields only."""
    values = {
        "code": "X",
        "recovery": Recovery.TRANSIENT,
        "everyday": "TIMEOUT",
        "message": "m",
        "suggestion": "s",
        "user_message": "u",
    }
    return Row(**{**values, **changes})


@pytest.fixture
def registered():
    """Register a vocabulary, and remove it after the test."""
    own = Vocabulary(
        name="google.rpc", title="t", rows={"X": row()}, unknown=row(code="?", recovery=Recovery.TERMINAL)
    )
    register(own)
    yield own
    module._LOADED.pop("google.rpc")


def test_the_built_in_vocabularies():
    """Design 2 and 3: five specifications, the everyday set, and users' own codes."""
    assert names()[: len(BUILT_IN)] == BUILT_IN
    assert [vocabulary(name).name for name in BUILT_IN] == list(BUILT_IN)


def test_an_unknown_vocabulary_is_a_lookup_error():
    """The message contains the name."""
    with pytest.raises(LookupError, match="nowhere"):
        vocabulary("nowhere")


def test_a_vocabulary_can_be_registered(registered):
    """Design 9: vocabularies are open."""
    assert "google.rpc" in names()
    assert vocabulary("google.rpc") is registered
    assert row_for("google.rpc", "X").recovery is Recovery.TRANSIENT
    assert row_for("google.rpc", "Y").recovery is Recovery.TERMINAL


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_ones_cannot_be_replaced(name):
    """Importing a package cannot change what RATE_LIMITED means to others."""
    with pytest.raises(ValueError, match=name):
        register(Vocabulary(name=name, title="t", rows={}, unknown=row()))


def test_an_unregistered_vocabulary_uses_the_everyday_rows():
    """A fault from a newer peer still has a row."""
    assert row_for("nowhere", "TIMEOUT") == row_for(EVERYDAY, "TIMEOUT")
    assert row_for("nowhere", "WHATEVER") == row_for(EVERYDAY, "INTERNAL_ERROR")


def test_a_status_counts_only_in_vocabularies_with_statuses():
    """An unknown code takes the row of its status in http; elsewhere the status is ignored."""
    assert row_for("http", "QUOTA", 429).code == "RATE_LIMITED"
    assert row_for("http", "QUOTA", None).code == "INTERNAL_ERROR"
    assert row_for("task", "QUOTA", 429) == vocabulary("task").unknown
    assert row_for("http", "CONFLICT", 429).code == "CONFLICT"


def test_a_registered_vocabulary_may_have_statuses():
    """Other 4xx count as 400, every other unknown status as 500."""
    rows = {status: row(code=f"S{status}") for status in (400, 418, 500)}
    home = Vocabulary(name="teapots", title="t", rows={}, unknown=row(code="?"), by_status=rows)
    found = {status: home.row("X", status).code for status in (418, 400, 404, 499, 500, 503, 200, 999)}
    assert found == {
        418: "S418",
        400: "S400",
        404: "S400",
        499: "S400",
        **dict.fromkeys((500, 503, 200, 999), "S500"),
    }
    assert home.row("X").code == "?"


@pytest.mark.parametrize(
    ("own", "under", "recovery", "expected"),
    [
        (Actor.USER, Recovery.TRANSIENT, Recovery.TRANSIENT, Actor.USER),
        (Actor.CALLER, Recovery.TRANSIENT, Recovery.TERMINAL, Actor.OPERATOR),
        (Actor.USER, Recovery.TRANSIENT, Recovery.TERMINAL, Actor.USER),
        (Actor.OPERATOR, Recovery.TERMINAL, Recovery.TRANSIENT, Actor.CALLER),
        (Actor.OPERATOR, Recovery.TERMINAL, Recovery.CORRECTABLE, Actor.CALLER),
    ],
)
def test_the_actor_depends_on_the_received_recovery(own, under, recovery, expected):
    """Design 3, actor: the caller, or the operator if the received recovery is terminal."""
    assert row(actor=own, recovery=under).actor_under(recovery) is expected
