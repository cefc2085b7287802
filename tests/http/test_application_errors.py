"""Exceptions raised inside an application, as faults."""

from amends import FaultError, extract
from amends.core.vocabulary import vocabulary
from amends.http.application_errors import fault_for, fault_from_validation


def test_many_mistakes_are_bounded():
    """At most 100 of a thousand wrong fields are listed, each with every suggestion once."""
    found = fault_from_validation((("body", place), "missing") for place in [*range(1000), 0])
    assert 1 < len(found.errors) <= 100
    assert len(found.errors[0].suggestions) == 1


def test_an_upstreams_adcp_code_is_kept():
    """A code that HTTP's vocabulary does not have keeps its own vocabulary."""
    error = {"adcp_error": {"code": "BUDGET_TOO_LOW", "message": "At least 500", "recovery": "correctable"}}
    received = extract({"isError": True, "structuredContent": error}, "mcp")
    fault = fault_for(FaultError.from_fault(received))
    assert (fault.code, fault.vocabulary) == ("BUDGET_TOO_LOW", "adcp")
    assert "BUDGET_TOO_LOW" not in vocabulary("http").rows
