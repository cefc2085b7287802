"""The closed words are their own wire spelling."""

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
def test_the_words_are_those_of_the_design(word, spellings):
    """Design 3 and 5, M6: these and no others."""
    assert {str(member) for member in word} == spellings
    assert all(word(text) == text for text in spellings)


def test_a_word_needs_no_encoder():
    """A member is a string, also to somebody else's JSON writer."""
    assert json.dumps([Recovery.TRANSIENT, Action.FIX]) == '["transient", "fix"]'
