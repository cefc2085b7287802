"""Budgets (9.6): exact arithmetic, and costs as agents and peers write them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from amends.arcp.leases import Budget, amount_of
from amends.errors.arcp import (
    BudgetExhaustedError,
    LeaseSubsetViolationError,
    PermissionDeniedError,
)
from tests.arcp.test_lease import NOW, lease


def test_budget_arithmetic_is_decimal():
    """9.6: ten times a tenth is one; a float has the value that it prints."""
    budget = Budget.of(["USD:1.00", "credits:1000"])
    for _ in range(10):
        assert budget.exhausted is None
        budget = budget.spend("USD", 0.1)
    assert budget.left["USD"] == 0
    assert budget.exhausted == "USD"
    assert budget.counters() == {"USD": "0.00", "credits": "1000"}
    assert budget.spend("USD", "0.50").counters()["USD"] == "-0.50"
    assert budget.spend("USD", 1).amounts() == ["USD:0", "credits:1000"]


@pytest.mark.parametrize(
    "cost",
    [
        -1,
        -0.1,
        True,
        None,
        "x",
        float("nan"),
        "1e9999",
        "-5",
        [],
        Decimal("NaN"),
        "USD:-1",
    ],
)
def test_invalid_costs_change_nothing(cost):
    """9.6: negative values are rejected and produce no decrement."""
    budget = Budget.of(["USD:1.00"])
    assert budget.spend("USD", cost) is budget
    assert budget.spend("EUR", 1) is budget
    assert budget.spend(None, 1) is budget


def test_the_smallest_cost_is_counted():
    """Rounding never increases the budget."""
    budget = Budget.of(["USD:1"]).spend("USD", 1e-300)
    assert budget.left["USD"] < 1


@pytest.mark.parametrize(
    ("received", "amount"),
    [(5.0, "5.0"), (5, "5"), ("5.00", "5.00"), ("USD:5.00", "5.00"), (0, "0"), ("0.1e-3", "0.0001")],
)
def test_amounts_as_peers_write_them(received, amount):
    """A number, a string, or a string with its currency."""
    assert amount_of(received) == Decimal(amount)
    assert Budget.read({"USD": received}).left == {"USD": Decimal(amount)}
    assert Budget.read({"USD": "x"}).left == {} == Budget.read(None).left


def test_an_exhausted_budget_stops_every_operation():
    """9.6: checked before any operation, after the permission, so that a denied target is reported as such."""
    paid = lease({"tool.call": ["*"], "cost.budget": ["USD:0"]})
    error = paid.check("tool.call", "shell", NOW, paid.budget)
    assert isinstance(error, BudgetExhaustedError)
    assert error.details == {"capability": "tool.call", "target": "shell", "currency": "USD"}
    assert not error.retryable
    assert isinstance(paid.check("fs.read", "/a", NOW, paid.budget), PermissionDeniedError)
    assert paid.check("tool.call", "shell", NOW, Budget.of(["USD:0.01"])) is None
    assert paid.check("tool.call", "shell", NOW) is None


def test_a_delegated_budget():
    """9.4: at most the rest of the parent's, in every currency; currencies it does not name are the parent's."""
    parent = lease({"cost.budget": ["USD:5.00", "EUR:1"]})
    left = parent.budget.spend("USD", 3)
    granted = parent.narrow(lease({"cost.budget": ["USD:2.00"]}), left, NOW)
    assert granted.grants["cost.budget"] == ("USD:2.00", "EUR:1")
    error = parent.narrow(lease({"cost.budget": ["USD:2.01"]}), left, NOW)
    assert isinstance(error, LeaseSubsetViolationError)
    assert error.details == {"capability": "cost.budget", "currency": "USD", "remaining": "2.00"}
    assert isinstance(parent.narrow(lease({"cost.budget": ["YEN:1"]}), left, NOW), LeaseSubsetViolationError)
    assert parent.narrow(lease({}), left, NOW).grants["cost.budget"] == ("USD:2.00", "EUR:1")
    assert parent.narrow(lease({}), None, NOW).budget == parent.budget
    # A budget only limits: a parent without one may give its child one.
    assert lease({}).narrow(lease({"cost.budget": ["USD:1"]}), None, NOW).budget.left == {"USD": 1}
    overdrawn = parent.budget.spend("USD", 9)
    assert parent.narrow(lease({}), overdrawn, NOW).budget.exhausted == "USD"
