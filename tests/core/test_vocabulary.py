"""Looking codes up, by (vocabulary, code) and never by code alone."""

import pytest

from amends.core import vocabulary as module
from amends.core.enums import Actor, Recovery
from amends.core.vocabulary import EVERYDAY, Row, Vocabulary, names, register, row_for, vocabulary

BUILT_IN = ("everyday", "http", "cli", "task", "adcp", "arcp", "app")


def row(**changes):
    """A row with as little in it as there can be."""
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
    """A vocabulary of somebody's own, forgotten again afterwards."""
    own = Vocabulary(
        name="google.rpc", title="t", rows={"X": row()}, unknown=row(code="?", recovery=Recovery.TERMINAL)
    )
    register(own)
    yield own
    module._LOADED.pop("google.rpc")


def test_the_built_in_ones_are_there():
    """Design 2 and 3: five publications, the everyday set, and users' own."""
    assert names()[: len(BUILT_IN)] == BUILT_IN
    assert [vocabulary(name).name for name in BUILT_IN] == list(BUILT_IN)


def test_an_unknown_vocabulary_is_a_lookup_error():
    """Asking for one that is not there is a mistake of ours; the error names it."""
    with pytest.raises(LookupError, match="nowhere"):
        vocabulary("nowhere")


def test_a_further_vocabulary_is_one_table(registered):
    """Design 9: vocabularies are open."""
    assert "google.rpc" in names()
    assert vocabulary("google.rpc") is registered
    assert row_for("google.rpc", "X").recovery is Recovery.TRANSIENT
    assert row_for("google.rpc", "Y").recovery is Recovery.TERMINAL


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_ones_cannot_be_replaced(name):
    """Nobody's import changes what RATE_LIMITED means to others."""
    with pytest.raises(ValueError, match=name):
        register(Vocabulary(name=name, title="t", rows={}, unknown=row()))


def test_a_vocabulary_nobody_registered_reads_as_everyday():
    """A fault from a newer peer still has a row."""
    assert row_for("nowhere", "TIMEOUT") == row_for(EVERYDAY, "TIMEOUT")
    assert row_for("nowhere", "WHATEVER") == row_for(EVERYDAY, "INTERNAL_ERROR")


def test_a_status_counts_only_where_statuses_are_words():
    """An unknown code takes its status's row in http; elsewhere the status says nothing about the code."""
    assert row_for("http", "QUOTA", 429).code == "RATE_LIMITED"
    assert row_for("http", "QUOTA", None).code == "INTERNAL_ERROR"
    assert row_for("task", "QUOTA", 429) == vocabulary("task").unknown
    assert row_for("http", "CONFLICT", 429).code == "CONFLICT"


def test_a_further_vocabulary_may_speak_in_statuses():
    """Other 4xx count as 400, everything else unknown as 500, in any table that has statuses."""
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
def test_who_acts_follows_what_the_sender_said(own, under, recovery, expected):
    """Design 3, actor: what a program can change is the caller's; what it cannot is nobody's who only calls."""
    assert row(actor=own, recovery=under).actor_under(recovery) is expected
