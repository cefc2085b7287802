"""A lease: its grants and expiry, checks against it, and narrower leases for delegation (sections 9.3 to 9.5)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from amends.arcp.leases.budget import Budget
from amends.arcp.leases.grammar import covers, is_known, parse_pattern, parse_target
from amends.arcp.leases.targets import Refused
from amends.arcp.wire.times import seconds_of, text_of
from amends.errors.arcp import (
    ARCPError,
    BudgetExhaustedError,
    InvalidRequestError,
    LeaseExpiredError,
    LeaseSubsetViolationError,
    PermissionDeniedError,
)

__all__ = ["MAX_PATTERNS", "Lease", "read"]

MAX_PATTERNS = 256
"""The most patterns of one capability."""
_SHOWN = 256
"""The most characters of a target that an error contains."""


def read(request: object, constraints: object = None, *, now: float) -> Lease:
    """
    Parse a requested lease.

    >>> read({"tool.call": ["search.*"]}, {"expires_at": "2025-01-05T10:30:00Z"}, now=0.0).expires_at
    1736073000.0

    Args:
        request: `lease_request`: capability → patterns.
        constraints: `lease_constraints`: `{"expires_at": …}`.
        now: seconds since the epoch; an expiry in the past is rejected (9.5).

    Raises:
        InvalidRequestError: a part is ambiguous or invalid; `details` contain the capability and the reason.

    """
    return Lease(_grants(request), _expiry(constraints, now))


class Lease(msgspec.Struct, frozen=True):
    """
    What a job may do. Immutable: a lease is never widened or renewed.

    >>> lease = read({"fs.read": ["/reports/**"]}, now=0.0)
    >>> lease.check("fs.read", "/reports/may.csv", now=0.0) is None
    True
    >>> lease.check("fs.read", "/etc/passwd", now=0.0).code
    'PERMISSION_DENIED'
    """

    grants: dict[str, tuple[str, ...]] = {}
    expires_at: float | None = None
    """Seconds since the epoch."""

    @property
    def budget(self) -> Budget:
        """The counters at the start of the lease."""
        return Budget.of(self.grants.get("cost.budget", ()))

    def wire(self) -> dict[str, list[str]]:
        """The value of `lease` on the wire."""
        return {capability: list(patterns) for capability, patterns in self.grants.items()}

    def constraints(self) -> dict[str, str] | None:
        """The value of `lease_constraints` on the wire."""
        return None if self.expires_at is None else {"expires_at": text_of(self.expires_at)}

    def check(
        self, capability: str, target: object, now: float, budget: Budget | None = None
    ) -> ARCPError | None:
        """
        Check an operation: returns None if it is allowed, else the error to raise or to send.

        Args:
            capability: `fs.read`, `tool.call`, …
            target: the path, URL or name that the operation uses.
            now: seconds since the epoch.
            budget: the current counters, if the lease has a budget.

        """
        about = _about(capability, target)
        expired = self.expired(now, about)
        if expired is not None:
            return expired
        reason = self._refusal(capability, target)
        if reason is not None:
            return PermissionDeniedError(
                f"{capability} is not granted for this target", details={**about, "reason": reason}
            )
        return _exhausted(budget, about)

    def expired(self, now: float, about: Mapping[str, object] | None = None) -> LeaseExpiredError | None:
        """Return the error if the lease has expired at `now`, else None. `about` is added to its details."""
        if self.expires_at is None or now < self.expires_at:
            return None
        details = {**(about or {}), "expires_at": text_of(self.expires_at)}
        return LeaseExpiredError("The lease has expired", details=details)

    def _refusal(self, capability: str, target: object) -> str | None:
        patterns = self.grants.get(capability)
        if not patterns:
            return "the lease does not grant this capability"
        try:
            wanted = parse_target(capability, target)
        except Refused as refused:
            return str(refused)
        granted = any(covers(parse_pattern(capability, pattern), wanted) for pattern in patterns)
        return None if granted else "no pattern matches"

    def narrow(
        self, request: Lease, remaining: Budget | None, now: float
    ) -> Lease | LeaseSubsetViolationError:
        """
        The lease of a delegated job, or the violation (9.4, 10.2).

        The delegated job gets only what the request contains, except for two limits: without an expiry it gets the expiry of
        this lease, and a currency without a limit gets what is left of this lease's budget.

        Args:
            request: the requested lease, as `read` returned it.
            remaining: what is left of this lease's budget.
            now: seconds since the epoch.

        """
        for capability, patterns in request.grants.items():
            if capability == "cost.budget":
                continue
            granted = [parse_pattern(capability, mine) for mine in self.grants.get(capability, ())]
            for pattern in patterns:
                if not any(covers(mine, parse_pattern(capability, pattern)) for mine in granted):
                    return _violation(
                        "requests more than is granted", capability=capability, pattern=pattern[:_SHOWN]
                    )
        left = remaining if remaining is not None else self.budget
        grants = dict(request.grants)
        if left.left:
            over = left.first_exceeded(request.budget)
            if over is not None:
                return _violation(
                    "requests more than is left of the budget",
                    capability="cost.budget",
                    currency=over,
                    remaining=left.counters().get(over, "0"),
                )
            grants["cost.budget"] = tuple(Budget({**left.left, **request.budget.left}).amounts())
        expires_at = request.expires_at
        if self.expires_at is not None:
            if expires_at is not None and expires_at > self.expires_at:
                return _violation("expires later", expires_at=text_of(self.expires_at))
            expires_at = self.expires_at if expires_at is None else expires_at
        return Lease(grants, expires_at)


def _about(capability: str, target: object) -> dict[str, object]:
    return {"capability": capability, "target": target[:_SHOWN] if isinstance(target, str) else None}


def _exhausted(budget: Budget | None, about: Mapping[str, object]) -> BudgetExhaustedError | None:
    spent = None if budget is None else budget.exhausted
    if spent is None:
        return None
    return BudgetExhaustedError(
        f"Nothing is left of the budget in {spent}", details={**about, "currency": spent}
    )


def _violation(why: str, **details: object) -> LeaseSubsetViolationError:
    return LeaseSubsetViolationError(f"The delegated lease {why}", details=details)


def _grants(request: object) -> dict[str, tuple[str, ...]]:
    if request is None:
        return {}
    if not isinstance(request, Mapping):
        raise InvalidRequestError("A lease maps capabilities to patterns", details={"field": "lease_request"})
    grants: dict[str, tuple[str, ...]] = {}
    for capability, patterns in request.items():
        if not is_known(capability):
            raise _invalid(str(capability)[:64], "an unknown capability")
        if not isinstance(patterns, list | tuple) or len(patterns) > MAX_PATTERNS:
            raise _invalid(capability, "not a list of patterns, or too many")
        if not all(isinstance(pattern, str) for pattern in patterns):
            raise _invalid(capability, "a pattern is not a string")
        try:
            if capability == "cost.budget":
                Budget.of(patterns)
            else:
                for pattern in patterns:
                    parse_pattern(capability, pattern)
        except Refused as refused:
            raise _invalid(capability, str(refused)) from None
        grants[capability] = tuple(patterns)
    return grants


def _expiry(constraints: object, now: float) -> float | None:
    if constraints is None:
        return None
    text = constraints.get("expires_at") if isinstance(constraints, Mapping) else constraints
    if text is None:
        return None
    seconds = seconds_of(text)
    if seconds is None or seconds <= now:
        raise InvalidRequestError(
            "A lease must expire in the future, at a time in UTC with a Z",
            details={"field": "lease_constraints.expires_at"},
        )
    return seconds


def _invalid(capability: str, reason: str) -> InvalidRequestError:
    details = {"field": "lease_request", "capability": capability, "reason": reason}
    return InvalidRequestError("A part of the requested lease is invalid", details=details)
