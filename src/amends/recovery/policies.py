"""Ready policies: what the sources themselves ask for. The default policy is `amends.Policy()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amends.core.backoff import Backoff, BackoffKind
from amends.core.hints import finite
from amends.core.policy import DEFAULT, Policy, Rule

__all__ = ["ADCP", "CLI", "DEFAULT", "NONE", "TASK", "from_retry_policy"]

_PLAIN = Backoff(spread=0.0)

TASK = Policy(
    attempts=3,
    backoff=_PLAIN,
    uncertain=2,
    rules={
        "task/input": Rule(attempts=1),
        "task/coordination": Rule(attempts=2, backoff=Backoff(kind=BackoffKind.LINEAR, spread=0.0)),
    },
)
"""T7: by category, unjittered. A "maybe" gets the tries of its category; input errors and a "no" get none."""

ADCP = Policy(attempts=3, max_wait=300.0, rules={})
"""A11: three attempts and 300 s of waiting for an operation, then it is for a human."""

CLI = Policy(attempts=3, rules={})
"""C12: three runs as in S2's runner; one retry where nobody knows, none where the effect is unknown."""

NONE = Policy(attempts=1, max_wait=0.0, rules={})
"""One call. Failures still come out as FaultError with their decision."""

# More calls than this are a mistake in a document, not a wish.
_MOST = 100


def from_retry_policy(document: Any, base: Policy = TASK) -> Policy:
    """
    A task request's `retryPolicy` (T8) as a policy: it overrides every category's attempts and backoff.

    Args:
        document: `{"maxAttempts", "backoffType", "initialDelay"}`, the delay in milliseconds; all optional.
        base: what holds where the document says nothing. Members of the wrong type say nothing.

    An input error stays unrepeated, whatever the document says: the same payload fails again.

    >>> from_retry_policy({"maxAttempts": 5, "initialDelay": 500}).backoff.wait(2)
    1.0

    """
    if not isinstance(document, Mapping):
        return base
    given = document.get("maxAttempts")
    known = given.__class__ is int and given >= 1
    kind = document.get("backoffType")
    delay = finite(document.get("initialDelay"))
    shaped = kind in list(BackoffKind) or (delay is not None and delay >= 0)
    if not known and not shaped:
        return base
    backoff = base.backoff
    if shaped:
        backoff = Backoff(
            kind=kind if kind in list(BackoffKind) else backoff.kind,
            first=delay / 1000 if delay is not None and delay >= 0 else backoff.first,
            spread=0.0,
        )
    calls = min(int(given or 1), _MOST) if known else base.attempts
    rules = {
        name: Rule(
            attempts=None if known else rule.attempts,
            backoff=None if shaped else rule.backoff,
            uncertain=None if known else rule.uncertain,
        )
        for name, rule in base.rules.items()
        if name != "task/input"
    }
    return Policy(
        attempts=calls,
        max_wait=base.max_wait,
        deadline=base.deadline,
        uncertain=max(base.uncertain, calls - 1) if known and calls is not None else base.uncertain,
        backoff=backoff,
        rules={**rules, "task/input": Rule(attempts=1)},
        fallback=base.fallback,
    )
