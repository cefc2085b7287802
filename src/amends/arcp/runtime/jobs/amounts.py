"""Amounts and measurements: exact decimals inside, JSON numbers on the wire."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import msgspec

from amends.arcp.leases import Budget, Lease
from amends.arcp.runtime.entries import JobEntry, JobSpec
from amends.arcp.runtime.ledger import Ledger
from amends.errors.arcp import InvalidRequestError

__all__ = ["counters_on_wire", "is_cost", "number_on_wire", "remaining_budget", "spend"]

_NUMBER = re.compile(r"-?[0-9]{1,60}(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_LARGEST = 2**53
_LONGEST = 100

_read_event = msgspec.json.Decoder(float_hook=Decimal).decode
"""Decodes an event with its numbers exact."""


def number_on_wire(value: object, field: str = "value") -> Any:
    """
    Return a measured value as it is encoded: a number, with every digit of a Decimal.

    >>> bytes(number_on_wire(Decimal("0.10"))), bytes(number_on_wire("0.10")), number_on_wire(3)
    (b'0.10', b'0.10', 3)

    Raises:
        InvalidRequestError: the value is not a number that JSON can carry (text, NaN or infinite); its details name the field.

    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = Decimal(value)
    finite = (
        isinstance(value, int)
        or (isinstance(value, float) and math.isfinite(value))
        # Not math.isfinite, which raises for a signalling NaN.
        or (isinstance(value, Decimal) and value.is_finite())
    )
    if isinstance(value, bool) or not finite:
        raise InvalidRequestError(f"The {field} must be a finite number", details={"field": field})
    if isinstance(value, int) and abs(value) > _LARGEST:
        value = Decimal(value)
    if isinstance(value, Decimal):
        plain = -_LONGEST < value.adjusted() < _LONGEST
        return msgspec.Raw(f"{value:f}".encode() if plain else f"{value:E}".encode())
    return value


def counters_on_wire(budget: Budget, *, as_text: bool = False) -> dict[str, object] | None:
    """Return the rest of a budget as numbers (7.1), or as text; None if there is no budget."""
    if as_text:
        return dict(budget.counters()) or None
    return {name: number_on_wire(amount) for name, amount in budget.left.items()} or None


def is_cost(name: object) -> bool:
    """Whether a metric of this name reduces the budget (9.6)."""
    return isinstance(name, str) and name.startswith("cost.") and name != "cost.budget.remaining"


def spend(budget: Budget, entry: JobEntry) -> Budget:
    """Return the budget after the cost that an entry of a job's log reports, if it reports one."""
    if entry.label != "metric" or not budget.left:
        return budget
    body = _read_event(entry.payload).get("body") or {}
    return budget.spend(body.get("unit"), body.get("value")) if is_cost(body.get("name")) else budget


async def remaining_budget(ledger: Ledger, spec: JobSpec) -> Budget:
    """Return a job's budget less the costs that its runs so far have reported."""
    budget = Lease(spec.grants).budget
    if budget.left:
        async for _, entry in ledger.history(spec.job_id):
            budget = spend(budget, entry)
    return budget
