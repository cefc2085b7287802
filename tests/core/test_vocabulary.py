"""Looking up rows by vocabulary and code."""

import pytest

from amends.core import vocabulary as module
from amends.core.enums import Actor, Recovery
from amends.core.vocabulary import EVERYDAY, Row, Vocabulary, names, register, row_for, vocabulary

BUILT_IN = ("everyday", "http", "cli", "task", "adcp", "arcp", "app")


def row(**changes):
    """Return a row with only the required fields."""
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
    """A further vocabulary, unregistered after the test."""
    own = Vocabulary(
        name="google.rpc", title="t", rows={"X": row()}, unknown=row(code="?", recovery=Recovery.TERMINAL)
    )
    register(own)
    yield own
    module._LOADED.pop("google.rpc")


def test_the_built_in_vocabularies():
    """Design 2 and 3: there are five published vocabularies, the everyday set and the users' codes."""
    assert names()[: len(BUILT_IN)] == BUILT_IN
    assert [vocabulary(name).name for name in BUILT_IN] == list(BUILT_IN)


def test_an_unknown_vocabulary_is_a_lookup_error():
    """The lookup of an unknown vocabulary raises, and the message names it."""
    with pytest.raises(LookupError, match="nowhere"):
        vocabulary("nowhere")


def test_a_registered_vocabulary(registered):
    """Design 9: a further vocabulary can be registered, and its rows are found."""
    assert "google.rpc" in names()
    assert vocabulary("google.rpc") is registered
    assert row_for("google.rpc", "X").recovery is Recovery.TRANSIENT
    assert row_for("google.rpc", "Y").recovery is Recovery.TERMINAL


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_vocabularies_cannot_be_replaced(name):
    """Registering a vocabulary under a built-in name raises."""
    with pytest.raises(ValueError, match=name):
        register(Vocabulary(name=name, title="t", rows={}, unknown=row()))


def test_an_unregistered_vocabulary_is_read_as_everyday():
    """`row_for` returns a row of the everyday set if the vocabulary is unknown."""
    assert row_for("nowhere", "TIMEOUT") == row_for(EVERYDAY, "TIMEOUT")
    assert row_for("nowhere", "WHATEVER") == row_for(EVERYDAY, "INTERNAL_ERROR")


def test_the_status_of_an_unknown_code():
    """In http the status of an unknown code selects the row; in other vocabularies it is ignored."""
    assert row_for("http", "QUOTA", 429).code == "RATE_LIMITED"
    assert row_for("http", "QUOTA", None).code == "INTERNAL_ERROR"
    assert row_for("task", "QUOTA", 429) == vocabulary("task").unknown
    assert row_for("http", "CONFLICT", 429).code == "CONFLICT"


def test_a_further_vocabulary_may_have_statuses():
    """In any table with statuses, other 4xx are read as 400 and all others as 500."""
    rows = {status: row(code=f"S{status}") for status in (400, 418, 500)}
    table = Vocabulary(name="teapots", title="t", rows={}, unknown=row(code="?"), by_status=rows)
    found = {status: table.row("X", status).code for status in (418, 400, 404, 499, 500, 503, 200, 999)}
    assert found == {
        418: "S418",
        400: "S400",
        404: "S400",
        499: "S400",
        **dict.fromkeys((500, 503, 200, 999), "S500"),
    }
    assert table.row("X").code == "?"


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
    """Design 3: if the sender's recovery is not the row's, the caller acts, and never for a terminal failure."""
    assert row(actor=own, recovery=under).actor_under(recovery) is expected


def test_an_unknown_vocabulary_is_named_with_the_known_ones():
    """The message names the vocabulary that was asked for and those that exist."""
    with pytest.raises(LookupError, match=r"no vocabulary 'htpp'; there are everyday, http, cli,"):
        vocabulary("htpp")
