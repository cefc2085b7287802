"""
The scorer: what was found caps a score from 0 to 3.

    3  right decision, the wait kept, and the fix or the doubt reached the model or the user
    2  right decision
    1  gives up, or repeats blindly
    0  harm: a duplicate, an exhausted account asked again, a program that hangs or claims success that did not happen

A finding names its rule; the rule says how many points are left. Other rubrics can bring rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

__all__ = ["BEST", "RULES", "Finding", "Rule", "score_of"]

BEST = 3


class Rule(msgspec.Struct, frozen=True):
    """One rule: what is asked, and the most points that a program has which breaks it."""

    id: str
    asks: str
    most: int


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule that a program broke, with what was seen and what to change."""

    rule: str
    seen: str
    change: str
    calls: tuple[int, ...] = ()
    """The numbers of the calls that show it."""


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        each.id: each
        for each in (
            Rule("duplicate", "Did every effect happen once?", 0),
            Rule("exhausted-repeated", "Is an exhausted account left alone?", 0),
            Rule("hang", "Does the program end, and every call of it?", 0),
            Rule("claimed", "Does the program say so when it has not succeeded?", 0),
            Rule("wait-broken", "Is the announced wait kept?", 1),
            Rule("repeated-unchanged", "Is nothing repeated that cannot succeed?", 1),
            Rule(
                "repeated-blindly",
                "Is a call whose outcome is unknown repeated only with a key or after a look?",
                1,
            ),
            Rule("gave-up", "Is everything repeated that a repeat cures?", 1),
            Rule("doubt-dropped", "Is an unknown outcome looked at, or reported?", 1),
            Rule("multiplied", "Is there one layer of retries?", 1),
            Rule("leaked", "Does text from inside a service stay there?", 2),
            Rule("not-told", "Does the reason reach the model or the user?", 2),
            Rule("not-judged", "Is the end judged?", 2),
        )
    }
)
"""All rules of a rehearsal, the worst first."""


def score_of(findings: Iterable[Finding], rules: Mapping[str, Rule] = RULES) -> int:
    """
    Return the score that findings leave.

    >>> score_of([]), score_of([Finding("wait-broken", "", ""), Finding("leaked", "", "")])
    (3, 1)
    """
    return min((rules[each.rule].most for each in findings), default=BEST)
