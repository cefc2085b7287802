"""The value of an enum member is its spelling on the wire."""

import json

import pytest

from amends.core.enums import Action, Actor, Executed, Recovery


@pytest.mark.parametrize(
    ("word", "spellings"),
    [
        (Recovery, {"transient", "correctable", "terminal", "uncertain"}),
        (Executed, {"no", "maybe", "yes"}),
        (Actor, {"caller", "user", "operator", "provider"}),
        (Action, {"retry", "fix", "verify", "fallback", "escalate", "none", "generic"}),
    ],
)
def test_the_members_are_those_of_the_design(word, spellings):
    """Design 3 and 5, M6: these members and no others."""
    assert {str(member) for member in word} == spellings
    assert all(word(text) == text for text in spellings)


def test_a_member_is_a_string():
    """Other JSON encoders write a member as a string."""
    assert json.dumps([Recovery.TRANSIENT, Action.FIX]) == '["transient", "fix"]'
