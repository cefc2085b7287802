"""Messages for end users (T6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.crosswalk import transfer
from amends.core.fault import Fault
from amends.core.user_messages import user_message
from amends.core.vocabulary import names, vocabulary


@pytest.mark.parametrize("name", names())
def test_every_code_has_a_message_without_placeholders(name):
    """T6: every code has a user message, and no placeholder is left in it."""
    for code in vocabulary(name).rows:
        text = user_message(Fault(code=code, vocabulary=name))
        assert text
        assert "{" not in text


def test_the_missing_thing_is_named():
    """T6: the name comes from the details or the field."""
    missing = Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "Notion", "agent": "other"})
    assert "Notion" in user_message(missing)
    assert "/date" in user_message(Fault(code="MISSING_REQUIRED_FIELD", vocabulary="task", field="/date"))


def test_own_texts_come_first():
    """The fault's message, then the catalogue's, then the table's."""
    assert user_message(Fault(code="TIMEOUT", user_message="Gleich.")) == "Gleich."
    assert (
        user_message(Fault(code="NOT_FOUND", details={"name": "Otto"}), {"NOT_FOUND": "Kein {name}."})
        == "Kein Otto."
    )
    assert user_message(Fault(code="NOT_FOUND"), {"TIMEOUT": "x"}) == user_message(Fault(code="NOT_FOUND"))


def test_a_translated_fault_has_the_message_of_its_original():
    """A coarser code does not make the message coarser."""
    raised = Fault(code="MCP_NOT_CONNECTED", vocabulary="task", details={"mcp": "Notion"})
    assert user_message(transfer(raised, "http")) == user_message(raised)


@given(st.text())
def test_names_from_outside_are_one_short_line(name):
    """A name may come from outside: no control characters, bounded, and not itself a placeholder."""
    text = user_message(Fault(code="NOT_FOUND", details={"name": name}))
    assert "\n" not in text
    assert len(text.encode()) < 200
