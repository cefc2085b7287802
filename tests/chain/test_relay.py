"""Failures passed on and translated (A18)."""

import pytest

from amends import Fault, FaultError, encode, extract
from amends.chain import RULES, Rule, gather, relay, relaying
from amends.core.enums import Executed, Recovery
from amends.errors import NotFoundError
from amends.errors.adcp import RateLimitedError

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


@pytest.mark.parametrize("recovery", ["correctable", "transient", "terminal", "someday"])
def test_a_conformant_error_passes_byte_for_byte_in_meaning(recovery):
    """Nothing is stripped and nothing added: recovery, wait, details, and members nobody here knows."""
    said = {**SELLER, "recovery": recovery}
    error = relay(extract(result(said)))
    assert encode(error.fault, "adcp") == said
    again = relay(error)
    assert encode(again.fault, "adcp") == said


def test_rules_are_data_and_yours_come_first():
    """A creative that an upstream's review refused is our caller's to mend, if we say so."""
    mine = Rule(
        code="CREATIVE_REJECTED",
        codes=frozenset({"AD_REFUSED"}),
        vocabulary="http",
        fixable=True,
        message="The creative was not accepted",
    )
    refused = problem("AD_REFUSED", suggestions=["Use another picture"])
    told = relay(refused, rules=(mine, *RULES), caller_can_fix=True).fault
    assert (told.code, told.recovery, told.message) == (
        "CREATIVE_REJECTED",
        Recovery.CORRECTABLE,
        "The creative was not accepted",
    )
    assert told.suggestions == ("Use another picture",)
    # Without the caller's part in it, and for anything else, the rules of S4 hold.
    assert relay(refused, rules=(mine, *RULES)).code == "SERVICE_UNAVAILABLE"
    other = Fault(code="AD_REFUSED", vocabulary="cli", recovery="correctable")
    assert relay(other, rules=(mine, *RULES), caller_can_fix=True).code == "VALIDATION_ERROR"
    assert relay(problem("OTHER"), rules=(mine, *RULES), caller_can_fix=True).code == "VALIDATION_ERROR"
    assert relay({"status": 429, "headers": {}}, rules=(mine, *RULES)).fault.retry_after == 10


def test_what_a_rule_can_ask_for_and_say():
    """Statuses, everyday words, recovery classes; another recovery, another wait."""
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
    # A table without a last row still has an answer.
    assert relay(ValueError(), rules=rules).code == "SERVICE_UNAVAILABLE"
    with pytest.raises(ValueError, match="NOT_A_CODE"):
        Rule(code="NOT_A_CODE")


def test_a_trace_is_kept_and_nothing_that_only_looks_like_one():
    """Of what is translated only the id goes along, where it is one."""
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert relay({"status": 503, "headers": {}, "body": {"trace_id": trace}}).fault.trace_id == trace
    for odd in ("acme", "0" * 32, 7, trace + "\n"):
        assert relay({"status": 503, "headers": {}, "body": {"trace_id": odd}}).fault.trace_id is None


def test_several_upstreams_are_one_failure_with_all_of_them_in_it():
    """Each with its own code and recovery; what is correctable only if none is for a human."""
    told = gather([TimeoutError("acme"), result(SELLER), {"status": 429, "headers": {}}]).fault
    assert [part.code for part in told.errors] == ["SERVICE_UNAVAILABLE", "X_ACME_FLOOR", "RATE_LIMITED"]
    assert encode(told.errors[1], "adcp") == SELLER
    assert told.executed is Executed.MAYBE
    assert gather([{"status": 429, "headers": {}}]).fault.errors == ()
    with pytest.raises(ValueError, match="at least one"):
        gather([])


def test_the_exception_is_kept_as_the_cause():
    """For the log of whoever passes it on."""
    cause = ConnectionResetError("acme")
    error = relay(cause)
    assert isinstance(error, FaultError)
    assert error.__cause__ is cause
    assert "acme" not in str(error)


def test_what_a_guarded_server_says():
    """Errors raised on purpose are said as they are; everything else goes by the rules."""
    busy = relaying(rules=(Rule(code="CONFLICT", everyday=frozenset({"TIMEOUT"})), *RULES))
    assert busy(RateLimitedError(retry_after=3)).retry_after == 3
    assert busy(NotFoundError("No such order")).code == "REFERENCE_NOT_FOUND"
    assert busy(TimeoutError("acme")).code == "CONFLICT"
    assert busy(relay(extract(result(SELLER)))).code == "X_ACME_FLOOR"
    heard = FaultError.from_fault(extract({"status": 422, "headers": {}, "body": {"title": "acme"}}))
    assert busy(heard).code == "SERVICE_UNAVAILABLE"
