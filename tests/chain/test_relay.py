"""Tests of `relay`, `gather` and `relaying` (A18)."""

import pytest

from amends import Fault, FaultError, encode, extract
from amends.chain import RULES, Rule, gather, relay, relaying
from amends.core.enums import Executed, Recovery
from amends.errors import NotFoundError
from amends.errors.adcp import RateLimitedError
from amends.foreign.bugs import bug_fault

SELLER = {
    "code": "X_ACME_FLOOR",
    "message": "Below the floor",
    "recovery": "correctable",
    "field": "packages[0].bid",
    "suggestion": "Raise it",
    "retry_after": 90,
    "details": {"floor": 5, "nested": {"deep": [1, None, True]}},
    "buyer_reason": "floor",
    "sdk_id": "seller/3",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
}


def result(error):
    return {"isError": True, "structuredContent": {"adcp_error": error}, "content": []}


def problem(code, **more):
    return {"status": 422, "headers": {}, "body": {"code": code, "title": "acme", **more}}


@pytest.mark.parametrize("recovery", ["correctable", "transient", "terminal"])
def test_a_conformant_error_passes_unchanged(recovery):
    """Recovery, wait, details and unknown members are kept, and nothing is added."""
    document = {**SELLER, "recovery": recovery}
    error = relay(extract(result(document)))
    assert encode(error.fault, "adcp") == document
    again = relay(error)
    assert encode(again.fault, "adcp") == document


def test_own_rules_come_before_the_defaults():
    """A creative that an upstream's review refused can be corrected by our caller, with `caller_can_fix`."""
    mine = Rule(
        code="CREATIVE_REJECTED",
        codes=frozenset({"AD_REFUSED"}),
        vocabulary="http",
        fixable=True,
        message="The creative was not accepted",
    )
    refused = problem("AD_REFUSED", suggestions=["Use another picture"])
    fault = relay(refused, rules=(mine, *RULES), caller_can_fix=True).fault
    assert (fault.code, fault.recovery, fault.message) == (
        "CREATIVE_REJECTED",
        Recovery.CORRECTABLE,
        "The creative was not accepted",
    )
    assert fault.suggestions == ("Use another picture",)
    # Without `caller_can_fix`, and for other codes, AdCP's rules apply.
    assert relay(refused, rules=(mine, *RULES)).code == "SERVICE_UNAVAILABLE"
    other = Fault(code="AD_REFUSED", vocabulary="cli", recovery="correctable")
    assert relay(other, rules=(mine, *RULES), caller_can_fix=True).code == "VALIDATION_ERROR"
    assert relay(problem("OTHER"), rules=(mine, *RULES), caller_can_fix=True).code == "VALIDATION_ERROR"
    assert relay({"status": 429, "headers": {}}, rules=(mine, *RULES)).fault.retry_after == 10


def test_conditions_and_results_of_a_rule():
    """Statuses, everyday codes and recovery classes; another recovery, another wait."""
    closed = Rule(code="SERVICE_UNAVAILABLE", statuses=frozenset({410}), recovery=Recovery.TERMINAL)
    slow = Rule(code="SERVICE_UNAVAILABLE", everyday=frozenset({"TIMEOUT"}), wait=60)
    nothing = Rule(
        code="CONFLICT", recoveries=frozenset({Recovery.TERMINAL}), unless=frozenset({"NOT_FOUND"})
    )
    rules = (closed, slow, nothing)
    gone = relay({"status": 410, "headers": {}}, rules=rules).fault
    assert (gone.recovery, gone.actor.value) == (Recovery.TERMINAL, "operator")
    assert relay(TimeoutError(), rules=rules).fault.retry_after == 60
    assert relay(Fault(code="PERMISSION_DENIED"), rules=rules).code == "CONFLICT"
    # A failure that no rule fits is SERVICE_UNAVAILABLE.
    assert relay(ValueError(), rules=rules).code == "SERVICE_UNAVAILABLE"
    with pytest.raises(ValueError, match="NOT_A_CODE"):
        Rule(code="NOT_A_CODE")


def test_a_valid_trace_id_is_kept():
    """An invalid one is left out of a translated error."""
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert relay({"status": 503, "headers": {}, "body": {"trace_id": trace}}).fault.trace_id == trace
    for odd in ("acme", "0" * 32, 7, trace + "\n"):
        assert relay({"status": 503, "headers": {}, "body": {"trace_id": odd}}).fault.trace_id is None


def test_gather_combines_several_failures():
    """Each part has its own code and recovery."""
    fault = gather([TimeoutError("acme"), result(SELLER), {"status": 429, "headers": {}}]).fault
    assert [part.code for part in fault.errors] == ["SERVICE_UNAVAILABLE", "X_ACME_FLOOR", "RATE_LIMITED"]
    assert encode(fault.errors[1], "adcp") == SELLER
    assert fault.executed is Executed.MAYBE
    assert gather([{"status": 429, "headers": {}}]).fault.errors == ()
    with pytest.raises(ValueError, match="at least one"):
        gather([])


def test_the_exception_is_kept_as_the_cause():
    """The log of the relaying server needs it."""
    cause = ConnectionResetError("acme")
    error = relay(cause)
    assert isinstance(error, FaultError)
    assert error.__cause__ is cause
    assert "acme" not in str(error)


def test_relaying_translates_foreign_exceptions_only():
    """A FaultError that a handler raised keeps its fault; the rules decide about everything else."""
    busy = relaying(rules=(Rule(code="CONFLICT", everyday=frozenset({"TIMEOUT"})), *RULES))
    assert busy(RateLimitedError(retry_after=3)).retry_after == 3
    assert busy(NotFoundError("No such order")).code == "REFERENCE_NOT_FOUND"
    assert busy(TimeoutError("acme")).code == "CONFLICT"
    assert busy(relay(extract(result(SELLER)))).code == "X_ACME_FLOOR"
    received = FaultError.from_fault(extract({"status": 422, "headers": {}, "body": {"title": "acme"}}))
    assert busy(received).code == "SERVICE_UNAVAILABLE"


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("number", [-32601, -32602])
def test_an_answer_that_blames_our_request_is_our_bug(number, own):
    """M9, row 5: for a response as it was received, as for an exception of a client."""
    response = {"jsonrpc": "2.0", "id": 1, "error": {"code": number, "message": "No such tool"}}
    fault = relay(response, own=own).fault
    assert (fault.code, fault.recovery, fault.executed) == ("SERVICE_UNAVAILABLE", "terminal", "no")
    assert fault.message == bug_fault("adcp").message
