"""
How an upstream's failure is told to our own caller, as a table (S4's rules for chains, A18).

The first rule that fits decides. Yours go in front: `(mine, *RULES)`. The last one fits everything, so there is always
an answer.
"""

from __future__ import annotations

import msgspec

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import check_code

__all__ = ["RULES", "WAIT", "Rule"]

WAIT = 10.0
"""Seconds to wait for an upstream that said "too many" and not for how long (A18)."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """
    One row: which failures it is about, and what is said of them.

    A rule that names nothing fits everything. `codes`, `everyday` and `statuses` are ways to name the same thing, so one
    of them is enough; everything else has to hold as well.

    >>> Rule(code="CREATIVE_REJECTED", codes=frozenset({"AD_REFUSED"}), fixable=True).code
    'CREATIVE_REJECTED'
    """

    code: str
    """What is said: a code of AdCP's, or a vendor's."""
    codes: frozenset[str] = frozenset()
    """The upstream's own words."""
    everyday: frozenset[str] = frozenset()
    """The everyday words for what happened."""
    statuses: frozenset[int] = frozenset()
    """HTTP statuses."""
    vocabulary: str | None = None
    """Whose words `codes` are; anybody's without it."""
    recoveries: frozenset[Recovery] = frozenset()
    """The upstream's recovery classes; any of them without it."""
    unless: frozenset[str] = frozenset()
    """Everyday words it is not about."""
    fixable: bool = False
    """Only where our own caller wrote what was refused; the fields at fault and redacted suggestions go along."""
    recovery: Recovery | None = None
    """From our caller's side, where it is not the code's own."""
    wait: float | None = None
    """Seconds, where the upstream named none."""
    message: str | None = None
    """Our own words, where they are not the code's."""

    def __post_init__(self) -> None:
        # A15: what a producer says is a standard code or a vendor's.
        check_code(self.code)

    def fits(self, fault: Fault, everyday: str, *, caller_can_fix: bool) -> bool:
        """Whether it is about this failure."""
        if self.fixable and not caller_can_fix:
            return False
        if self.vocabulary is not None and self.vocabulary != fault.vocabulary:
            return False
        if self.recoveries and fault.recovery not in self.recoveries:
            return False
        if everyday in self.unless:
            return False
        if not (self.codes or self.everyday or self.statuses):
            return True
        return fault.code in self.codes or everyday in self.everyday or fault.status in self.statuses


RULES = (
    Rule(code="RATE_LIMITED", everyday=frozenset({"RATE_LIMITED"}), statuses=frozenset({429}), wait=WAIT),
    # Refused credentials are ours, and never the caller's to mend.
    Rule(
        code="VALIDATION_ERROR",
        recoveries=frozenset({Recovery.CORRECTABLE}),
        unless=frozenset({"UNAUTHENTICATED"}),
        fixable=True,
    ),
    Rule(code="SERVICE_UNAVAILABLE"),
)
"""S4's own: a rate limit, what our caller can mend, and a service that is not available."""
