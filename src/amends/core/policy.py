"""Limits of recovery: attempts, waiting, time, and exceptions by vocabulary, category or code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from amends.core.backoff import Backoff
from amends.core.fault import Fault
from amends.core.named_options import NamedOptions
from amends.core.validate import check_count, check_kind, check_seconds
from amends.core.vocabulary import row_for

__all__ = ["DEFAULT", "UNBOUNDED", "Policy", "Rule", "meaning"]


class _Default(int):
    """A number of attempts that the user did not give. A number that the user gives wins over it."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True, metaclass=NamedOptions):
    """Limits that differ for some faults. Fields that are None keep the policy's value."""

    attempts: int | None = None
    backoff: Backoff | None = None
    uncertain: int | None = None

    def __post_init__(self) -> None:
        _check(self.attempts, self.uncertain, self.backoff)


def _check(attempts: int | None, uncertain: int | None, backoff: Backoff | None) -> None:
    """Raise for values that a rule or a policy cannot have."""
    if attempts is not None:
        check_count("attempts", attempts)
        if attempts < 1:
            raise ValueError("attempts counts calls, the first included: it is at least 1")
    if uncertain is not None:
        check_count("uncertain", uncertain)
        if uncertain < 0:
            raise ValueError("uncertain counts retries: it is not negative")
    if backoff is not None:
        check_kind("backoff", backoff, Backoff, "Backoff(first=2.0)")


_UNJITTERED = Backoff(spread=0.0)

# T7: attempts count calls. Input errors are never repeated; agent errors are treated like system errors.
_TASK_RULES = {
    "task/input": Rule(attempts=1),
    "task/agent": Rule(attempts=_Default(3), backoff=_UNJITTERED),
    "task/mcp": Rule(attempts=_Default(3), backoff=_UNJITTERED),
    "task/coordination": Rule(attempts=_Default(2), backoff=Backoff(kind="linear", spread=0.0)),
    "task/system": Rule(attempts=_Default(3), backoff=_UNJITTERED),
}


def meaning(fault: Fault) -> str:
    """
    Return the everyday code of a fault, whatever vocabulary its own code is from.

    A task or ARCP error that was translated from another code says so in its details; that code counts then.

    >>> meaning(Fault(code="MCP_RATE_LIMITED", vocabulary="task")), meaning(Fault(code="X", status=503, vocabulary="http"))
    ('RATE_LIMITED', 'SERVICE_UNAVAILABLE')
    """
    details = fault.details
    source = details.get("translated_from") if isinstance(details, Mapping) else None
    if isinstance(source, Mapping):
        vocabulary, code = source.get("vocabulary"), source.get("code")
        if isinstance(vocabulary, str) and isinstance(code, str):
            return row_for(vocabulary, code).everyday
    return row_for(fault.vocabulary, fault.code, fault.status).everyday


class Policy(msgspec.Struct, metaclass=NamedOptions, frozen=True, kw_only=True, repr_omit_defaults=True):
    """
    Limits of recovery. By default, five calls and five minutes of waiting in all.

    `rules` are looked up by "vocabulary:CODE", then "CODE", then "vocabulary/category" (the categories of task errors),
    then "vocabulary", then the recovery class; the first rule found applies. A bare "CODE" matches by meaning: a rule for
    RATE_LIMITED also applies to HTTP 429 and to MCP_RATE_LIMITED of a task.

    >>> Policy(attempts=3, rules={"RATE_LIMITED": Rule(attempts=10)})
    Policy(attempts=3, rules={'RATE_LIMITED': Rule(attempts=10)})
    """

    attempts: int | None = _Default(5)
    """
    Calls in all, including the first. None: no limit (the other limits still apply). A value that is given also replaces
    the defaults of AdCP and task errors; a rule that is given replaces this value.
    """
    max_wait: float | None = 300.0
    """Seconds of waiting in all. None: no limit."""
    deadline: float | None = None
    """Seconds from the first call after which no further call starts. None: no limit."""
    ends_within: float | None = None
    """
    Seconds from the first call within which the last one has to end: no repeat starts that would end later if it took as
    long as the call before it. Unlike `deadline`, it never cuts a call that is under way. None: no limit.
    """
    uncertain: int = 2
    """Retries in all after uncertain failures. A sender's `max_retries` can lower it."""
    backoff: Backoff = Backoff()
    rules: Mapping[str, Rule] = MappingProxyType({"adcp": Rule(attempts=_Default(3)), **_TASK_RULES})
    fallback: bool = False
    """Whether the operation has a fallback for failures that a retry cannot solve."""

    def __post_init__(self) -> None:
        _check(self.attempts, self.uncertain, self.backoff)
        if self.max_wait is not None:
            check_seconds("max_wait", self.max_wait)
            if not self.max_wait >= 0:
                raise ValueError("max_wait is in seconds and not negative")
        if self.deadline is not None:
            check_seconds("deadline", self.deadline)
            if not self.deadline > 0:
                raise ValueError("deadline is in seconds from the first call, more than 0")
        if self.ends_within is not None:
            check_seconds("ends_within", self.ends_within)
            if not self.ends_within > 0:
                raise ValueError("ends_within is in seconds from the first call, more than 0")
        check_kind("rules", self.rules, Mapping, '{"adcp": Rule(attempts=3)}')
        for key, rule in self.rules.items():
            check_kind(f"rules[{key!r}]", rule, Rule, "Rule(attempts=3)")

    def __reduce__(self) -> tuple[Any, ...]:
        # A MappingProxyType cannot be pickled or copied.
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return _from_values, ({**values, "rules": dict(self.rules)},)

    def limits(self, fault: Fault) -> tuple[int | None, Backoff, int]:
        """Return the limits for a fault: calls in all, the backoff, and retries after uncertain failures."""
        if not self.rules or (rule := self._rule(fault)) is None:
            return self.attempts, self.backoff, self.uncertain
        attempts = self.attempts
        if rule.attempts is not None and (
            isinstance(attempts, _Default) or not isinstance(rule.attempts, _Default)
        ):
            attempts = rule.attempts
        uncertain = self.uncertain if rule.uncertain is None else rule.uncertain
        return attempts, rule.backoff or self.backoff, uncertain

    def _rule(self, fault: Fault) -> Rule | None:
        rules = self.rules
        vocabulary = fault.vocabulary
        found = rules.get(f"{vocabulary}:{fault.code}") or rules.get(fault.code)
        if found is None:
            found = rules.get(meaning(fault))
        if found is None and vocabulary == "task":
            found = rules.get(f"task/{row_for('task', fault.code).category}")
        return found or rules.get(vocabulary) or rules.get(fault.recovery)


def _from_values(values: dict[str, Any]) -> Policy:
    return Policy(**values)


DEFAULT = Policy()
UNBOUNDED = Policy(attempts=None, max_wait=None, rules={})
"""No limits: for deciding about one failure by itself (mappings M6)."""
