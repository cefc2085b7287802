"""Ready-made policies, as the specifications ask for them. The default policy is `amends.Policy()`."""

from __future__ import annotations

from collections.abc import Mapping

from amends.core.backoff import Backoff, BackoffKind
from amends.core.hints import finite
from amends.core.policy import DEFAULT, Policy, Rule

__all__ = ["ADCP", "CLI", "DEFAULT", "NONE", "TASK", "TOOL", "from_retry_policy"]

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
"""
The agent error contract's retries by category, without jitter (T7). Uncertain errors get the retries of their category;
input errors and errors that are not recoverable get none.
"""

ADCP = Policy(attempts=3, max_wait=300.0, rules={})
"""AdCP: three attempts and at most 300 s of waiting, then the failure is escalated (A11)."""

CLI = Policy(attempts=3, uncertain=1, rules={})
"""
The CLI agent spec: three runs (C12). An uncertain failure gets one retry, and none if the command may have had its
effect.
"""

TOOL = Policy(attempts=3, max_wait=20.0, ends_within=55.0)
"""
Calls inside the tool call of an agent, whose host waits for about a minute: three calls, 20 s of waiting, and no repeat
that would end after 55 s. A call that is under way is not cut. It replaces the default policy there; a policy that you
give wins.
"""

NONE = Policy(attempts=1, max_wait=0.0, rules={})
"""One call and no retry. A failure is still raised as FaultError with its decision."""

# The largest `maxAttempts` that is taken from a document.
_MOST_ATTEMPTS = 100


def from_retry_policy(document: object, base: Policy = TASK) -> Policy:
    """
    Return the policy of a task request's `retryPolicy` (T8). It overrides the attempts and backoff of every category.

    Args:
        document: `{"maxAttempts", "backoffType", "initialDelay"}`, the delay in milliseconds; all optional.
        base: gives the values of missing members. A member of the wrong type counts as missing.

    Input errors are not repeated, whatever the document contains: the same payload would fail again.

    >>> from_retry_policy({"maxAttempts": 5, "initialDelay": 500}).backoff.wait(2)
    1.0

    """
    if not isinstance(document, Mapping):
        return base
    given = document.get("maxAttempts")
    if isinstance(given, float) and given.is_integer():
        # JavaScript and protobuf write whole numbers so.
        given = int(given)
    known = isinstance(given, int) and not isinstance(given, bool) and given >= 1
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
    calls = min(int(given or 1), _MOST_ATTEMPTS) if known else base.attempts
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
