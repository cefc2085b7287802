"""The enums: their members and wire spellings."""

import json

import pytest

from amends.core.enums import Action, Actor, Executed, Recovery


@pytest.mark.parametrize(
    ("enum", "spellings"),
    [
        (Recovery, {"transient", "correctable", "terminal", "uncertain"}),
        (Executed, {"no", "maybe", "yes"}),
        (Actor, {"caller", "user", "operator", "provider"}),
        (Action, {"retry", "fix", "verify", "fallback", "escalate", "none", "generic"}),
    ],
)
def test_the_members_are_those_of_the_design(enum, spellings):
    """Design 3 and 5, M6: each enum has exactly these members."""
    assert {str(member) for member in enum} == spellings
    assert all(enum(text) == text for text in spellings)


def test_a_member_is_a_string():
    """The standard library's `json` encodes members as strings."""
    assert json.dumps([Recovery.TRANSIENT, Action.FIX]) == '["transient", "fix"]'
