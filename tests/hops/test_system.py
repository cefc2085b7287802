"""The secret of a system: programs that have it believe one another, and tell others only what they may believe."""

import pytest

from amends.foreign.trust import SYSTEM
from tests.hops.chains import Case, run

SECRET = "a secret of this system"


@pytest.mark.parametrize("name", ["http", "gateway", "mcp", "a2a", "jsonrpc"])
async def test_a_signed_failure_arrives_as_it_was_raised(name, monkeypatch):
    """Without `own=True`: the code, all suggestions and the parts."""
    monkeypatch.setenv(SYSTEM, SECRET)
    fault = (await run(Case(f"{name}:both", "not-found", "system"))).fault
    assert (fault.code, fault.suggestions) == ("NOT_FOUND", ("List the orders", "Use another"))
    assert fault.origin.own


@pytest.mark.parametrize("name", ["mcp", "a2a", "jsonrpc"])
async def test_a_stranger_gets_a_brief_record(name, monkeypatch):
    """A client without the secret: no code and no text of the own system."""
    monkeypatch.setenv(SYSTEM, SECRET)
    outcome = await run(Case(f"{name}:server", "not-found", "system"))
    record = outcome.fault.origin.record
    assert set(record) <= {"v", "executed", "tries", "trace_id"}
