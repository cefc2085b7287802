"""Scopes keep tenants apart, and a reset leaves no state behind, in simulations of the whole engine."""

from bench.recovery.contenders.library import AMENDS
from bench.recovery.scopes import RESET, SCOPED, reset, tenants


def test_the_other_tenants_are_untouched():
    """With a scope per tenant every operation of the others ends as without the refusals; without scopes some wait."""
    scoped, together = tenants(504, SCOPED), tenants(504, AMENDS)
    assert scoped.operations == scoped.untouched > 1000
    assert together.succeeded == together.operations
    assert together.untouched < together.operations
    assert 0 < scoped.refused < together.refused


def test_a_reset_leaves_nothing_behind():
    """After the repair of a service that asked for an hour, nothing waits; without the reset calls are refused."""
    after, without = reset(503, RESET), reset(503, AMENDS)
    assert after.operations == after.untouched > 900
    assert without.succeeded < without.operations
