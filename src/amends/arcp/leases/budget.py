"""
Budgets (section 9.6): a counter per currency, in decimals, never in floats.

Amounts are `USD:5.00` in a lease, and numbers or strings elsewhere. A float counts as it prints: 0.1 is a tenth.
Amounts are never rounded in favour of the spender.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from typing import Any

import msgspec

from amends.arcp.leases.targets import Refused
from amends.core.named_options import NamedOptions
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["Budget", "amount_of", "parse_amount"]

_AMOUNT = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,31}):([0-9]{1,30}(?:\.[0-9]{1,30})?)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_LIMIT = Decimal(10) ** 30
_FINEST = Decimal(1).scaleb(-30)
_EXACT = Context(prec=80, rounding=ROUND_CEILING)


def parse_amount(text: object) -> tuple[str, Decimal]:
    """
    Currency and amount of a `cost.budget` pattern.

    Raises:
        Refused: `text` is not such a pattern.

    """
    found = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise Refused("not an amount like USD:5.00")
    return found[1], Decimal(found[2])


@explains_wrong_calls
def amount_of(value: object) -> Decimal | None:
    """
    A reported or received amount: a number, `"5.00"` or `"USD:5.00"`. None if it is invalid or negative.

    >>> amount_of(0.1), amount_of("USD:5.00"), amount_of(-1), amount_of(True)
    (Decimal('0.1'), Decimal('5.00'), None, None)
    """
    amount = _decimal(value)
    if amount is None or not 0 <= amount < _LIMIT:
        return None
    exponent = amount.as_tuple().exponent
    fine = isinstance(exponent, int) and exponent >= -30
    return amount if fine else amount.quantize(_FINEST, context=_EXACT)


def _decimal(value: object) -> Decimal | None:
    """A number of any size, or text that contains one; None if it is neither."""
    if isinstance(value, str):
        value = value.rpartition(":")[2]
        if not _NUMBER.fullmatch(value):
            return None
    elif isinstance(value, float):
        value = repr(value)
    elif isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    try:
        amount = Decimal(value)
    except (InvalidOperation, ValueError):
        return None
    return None if amount.is_nan() else amount


class Budget(msgspec.Struct, frozen=True, metaclass=NamedOptions):
    """
    The remaining amount per currency. Immutable: `spend` returns a new budget.

    >>> budget = Budget.of(["USD:1.00"]).spend("USD", 0.7).spend("USD", 0.1).spend("USD", 0.2)
    >>> budget.left["USD"], budget.exhausted
    (Decimal('0.00'), 'USD')
    """

    left: dict[str, Decimal] = {}

    @classmethod
    def of(cls, amounts: Iterable[Any]) -> Budget:
        """
        The counters at the start of a lease.

        Raises:
            Refused: an amount is invalid, or a currency occurs twice, which leaves its limit unclear.

        """
        left: dict[str, Decimal] = {}
        for text in amounts:
            currency, amount = parse_amount(text)
            if currency in left:
                raise Refused("a currency occurs twice")
            left[currency] = amount
        return cls(left)

    @classmethod
    def read(cls, counters: Mapping[str, object] | None) -> Budget:
        """Counters from a peer or a store; invalid amounts are ignored."""
        amounts = {name: amount_of(value) for name, value in (counters or {}).items()}
        return cls({name: amount for name, amount in amounts.items() if amount is not None})

    def spend(self, currency: object, amount: object) -> Budget:
        """
        The budget after a cost. A currency without a counter, or an invalid cost, changes nothing.

        A cost that is too large to be counted, also an infinite one, uses up the whole budget.

        >>> Budget.of(["USD:1.00"]).spend("USD", 10**40).exhausted
        'USD'
        """
        if not isinstance(currency, str) or currency not in self.left:
            return self
        cost = amount_of(amount)
        if cost is None and (_decimal(amount) or 0) >= _LIMIT:
            cost = max(self.left[currency], Decimal(0))
        if not cost:
            return self
        return Budget({**self.left, currency: _EXACT.subtract(self.left[currency], cost)})

    @property
    def exhausted(self) -> str | None:
        """The first currency with nothing left, or None (9.6: zero counts as nothing)."""
        return next((name for name, amount in self.left.items() if amount <= 0), None)

    def first_exceeded(self, wanted: Budget) -> str | None:
        """The first currency in which `wanted` is more than what is left, or None."""
        return next((name for name, amount in wanted.left.items() if amount > self.left.get(name, 0)), None)

    def counters(self) -> dict[str, str]:
        """The counters for the wire: exact decimals as strings, which every peer can read."""
        return {name: f"{amount:f}" for name, amount in self.left.items()}

    def amounts(self) -> list[str]:
        """The counters as patterns of a lease: `USD:5.00`."""
        return [f"{name}:{max(amount, Decimal(0)):f}" for name, amount in self.left.items()]
