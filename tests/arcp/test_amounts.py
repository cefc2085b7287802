"""Numbers on the wire are JSON numbers; everything else is refused with the field named."""

from decimal import Decimal

import msgspec
import pytest

from amends.arcp.leases import Budget
from amends.arcp.runtime.jobs.amounts import counters_on_wire, is_cost, number_on_wire
from amends.errors.arcp import InvalidRequestError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, b"3"),
        (0.25, b"0.25"),
        ("0.10", b"0.10"),
        (Decimal("1.500"), b"1.500"),
        (2**53 + 1, b"9007199254740993"),
        (10**400, b"1E+400"),
        ("1e3", b"1000"),
    ],
)
def test_numbers(value, text):
    written = msgspec.json.encode(number_on_wire(value))
    assert Decimal(written.decode()) == Decimal(text.decode())


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), Decimal("nan"), Decimal("snan"), True, None, "ten", [1], "1" * 100]
)
def test_everything_else_is_refused(value):
    with pytest.raises(InvalidRequestError) as caught:
        number_on_wire(value, "total")
    assert caught.value.details == {"field": "total"}


def test_counters():
    """Numbers (7.1), text for the published Python SDK, and nothing without a budget."""
    budget = Budget.read({"USD": "5.00"})
    assert msgspec.json.encode(counters_on_wire(budget)) == b'{"USD":5.00}'
    assert counters_on_wire(budget, as_text=True) == {"USD": "5.00"}
    assert counters_on_wire(Budget.read({})) is None


def test_costs():
    """9.6: names that begin with `cost.`, but not our own report of what is left."""
    assert is_cost("cost.search")
    assert not any(map(is_cost, ["cost.budget.remaining", "costs", "rows", None, 5]))
