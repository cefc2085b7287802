"""
The rules for a server that returns an upstream's failure to its own caller (AdCP's rules for chains, A18).

What was read decides first: a rate limit that is terminal (an exhausted quota) is a refusal. The first rule that fits
decides. Put your own rules before the defaults: `(mine, *RULES)`. The last default rule fits
every failure.
"""

from __future__ import annotations

import msgspec

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.named_options import NamedOptions
from amends.core.vocabularies.adcp import check_code

__all__ = ["RULES", "WAIT", "Rule"]

WAIT = 10.0
"""Seconds to wait if an upstream's rate limit names no wait (A18)."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True, metaclass=NamedOptions):
    """
    One row of the table: which failures it applies to, and the code our caller gets for them.

    A rule without conditions fits every failure. `codes`, `everyday` and `statuses` are alternatives, of which one has
    to match; all other conditions have to hold as well.

    >>> Rule(code="CREATIVE_REJECTED", codes=frozenset({"AD_REFUSED"}), fixable=True).code
    'CREATIVE_REJECTED'
    """

    code: str = "SERVICE_UNAVAILABLE"
    """The code for our caller: one of AdCP's, or a vendor's."""
    codes: frozenset[str] = frozenset()
    """The upstream's own codes."""
    everyday: frozenset[str] = frozenset()
    """The everyday codes that the upstream's code corresponds to."""
    statuses: frozenset[int] = frozenset()
    """HTTP statuses."""
    vocabulary: str | None = None
    """The vocabulary of `codes`; without it, any."""
    recoveries: frozenset[Recovery] = frozenset()
    """The upstream's recovery classes; without it, any."""
    unless: frozenset[str] = frozenset()
    """Everyday codes that the rule does not apply to."""
    fixable: bool = False
    """Applies only if our caller wrote what was refused; it gets the fields at fault and redacted suggestions."""
    recovery: Recovery | None = None
    """The recovery for our caller, if it is not the code's own."""
    wait: float | None = None
    """Seconds to wait, if the upstream named none."""
    message: str | None = None
    """The message for our caller, if it is not the code's own."""
    executed: Executed | None = None
    """Whether the call may have had its effect, if it is not as read."""
    own: bool = False
    """The failing service is part of our system: the failure is passed on as it was read, without the other results."""

    def __post_init__(self) -> None:
        # A15: a producer writes a standard code or a vendor's.
        check_code(self.code)

    def fits(self, fault: Fault, everyday: str, *, caller_can_fix: bool) -> bool:
        """Return whether the rule applies to this failure."""
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


_LASTING = frozenset({Recovery.TERMINAL, Recovery.CORRECTABLE})


class _Defaults(tuple[Rule, ...]):
    """The default rules. In signatures and in `help` they are written by their name."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "RULES"


RULES = _Defaults(
    (
        Rule(
            code="RATE_LIMITED",
            everyday=frozenset({"RATE_LIMITED"}),
            statuses=frozenset({429}),
            recoveries=frozenset({Recovery.TRANSIENT, Recovery.UNCERTAIN}),
            wait=WAIT,
        ),
        # Refused credentials are our own, so our caller cannot correct them.
        Rule(
            code="VALIDATION_ERROR",
            recoveries=frozenset({Recovery.CORRECTABLE}),
            unless=frozenset({"UNAUTHENTICATED"}),
            fixable=True,
        ),
        # Waiting does not change a refusal, and our caller cannot change the request that was refused (M9).
        Rule(
            statuses=frozenset({501, 505, 508, 510, 511, 526}),
            recovery=Recovery.TERMINAL,
            executed=Executed.NO,
        ),
        Rule(recoveries=_LASTING, recovery=Recovery.TERMINAL, executed=Executed.NO),
        Rule(),
    )
)
"""AdCP's rules: a rate limit, a request that our caller can correct, a refusal, and else an unavailable service."""
