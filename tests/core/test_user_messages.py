"""Messages for the user (T6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.crosswalk import transfer
from amends.core.fault import Fault
from amends.core.user_messages import user_message
from amends.core.vocabulary import names, vocabulary


@pytest.mark.parametrize("name", names())
def test_every_code_has_a_complete_message(name):
    """T6: every code has a user message without placeholders."""
    for code in vocabulary(name).rows:
        text = user_message(Fault(code=code, vocabulary=name))
        assert text
        assert "{" not in text


def test_the_missing_thing_is_named():
    """T6: the message contains the name of the missing thing, from the details or the field."""
    missing = Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "Notion", "agent": "other"})
    assert "Notion" in user_message(missing)
    assert "/date" in user_message(Fault(code="MISSING_REQUIRED_FIELD", vocabulary="task", field="/date"))


@pytest.mark.parametrize("details", [None, {"mcp": "notion"}])
@pytest.mark.parametrize("name", names())
def test_every_message_is_a_sentence(name, details):
    """T6: it starts with a capital letter, also where it starts with the name."""
    for code in vocabulary(name).rows:
        text = user_message(Fault(code=code, vocabulary=name, details=details))
        assert text[0].isupper(), text


def test_precedence():
    """The fault's own message is used first, then the catalogue's, then the table's."""
    assert user_message(Fault(code="TIMEOUT", user_message="Gleich.")) == "Gleich."
    assert (
        user_message(Fault(code="NOT_FOUND", details={"name": "Otto"}), {"NOT_FOUND": "Kein {name}."})
        == "Kein Otto."
    )
    assert user_message(Fault(code="NOT_FOUND"), {"TIMEOUT": "x"}) == user_message(Fault(code="NOT_FOUND"))


def test_a_translated_fault_keeps_its_message():
    """The message of a translated fault is that of its original code."""
    raised = Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "Notion"})
    assert user_message(transfer(raised, "http")) == user_message(raised)


@given(st.text())
def test_received_names_are_one_short_line(name):
    """A received name is stripped of control characters and truncated."""
    text = user_message(Fault(code="NOT_FOUND", details={"name": name}))
    assert "\n" not in text
    assert len(text.encode()) < 200


def test_names_are_cut_at_64_bytes():
    """So much of a name from outside is shown."""
    whole = user_message(Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "n" * 64}))
    assert "n" * 64 in whole
    cut = user_message(Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "n" * 65}))
    assert "n" * 65 not in cut
