"""Tests of AdCP's rules for chains (A18): the fault our caller gets when a service that we called failed."""

from types import SimpleNamespace

import msgspec
import pytest

from amends import Fault, Recovery, encode, extract, from_exception, from_upstream
from amends.core.enums import Executed
from amends.errors import NotFoundError
from amends.errors.adcp import BudgetTooLowError
from amends.foreign import from_upstreams
from amends.foreign.rules import RULES, Rule
from tests.foreign.standins import standin

ADCP = {
    "code": "BUDGET_TOO_LOW",
    "message": "Raise it",
    "recovery": "correctable",
    "details": {"minimum_budget": 5},
}
RESULT = {"isError": True, "structuredContent": {"adcp_error": ADCP}, "content": []}


def facts(fault: Fault) -> tuple[str, str, str, str]:
    return fault.vocabulary, fault.code, fault.recovery.value, fault.executed.value


def http(status: int, headers: dict[str, str] | None = None, body: object = None) -> dict[str, object]:
    return {"status": status, "headers": headers or {}, "body": body}


# ------------------------------------------------------------------------------------------------ passing through


def test_a_conformant_error_passes_unchanged() -> None:
    """Rule 3: nothing is removed or added, and its origin is kept."""
    fault = extract(RESULT)
    assert fault is not None
    assert from_upstream(fault) is fault
    assert from_upstream(RESULT) == fault
    assert encode(from_upstream(RESULT), "adcp") == ADCP


def test_a_vendor_code_is_conformant() -> None:
    """An object with any other code is no structured error: the code may be the upstream's text."""
    assert from_upstream({"code": "X_ACME_FLOOR", "message": "m"}).code == "X_ACME_FLOOR"
    fault = from_upstream({"code": "ECONNREFUSED", "message": "10.0.0.5:5432"})
    assert facts(fault) == ("adcp", "SERVICE_UNAVAILABLE", "transient", "maybe")
    assert "10.0.0.5" not in repr(fault)


def test_exhausted_credit_is_terminal() -> None:
    """Though it arrives as a 429: what was read decides before the status."""
    body = {
        "error": {"message": "m", "type": "insufficient_quota", "code": "insufficient_quota", "param": None}
    }
    assert facts(from_upstream(http(429, body=body))) == ("adcp", "SERVICE_UNAVAILABLE", "terminal", "no")


def test_from_upstream_is_idempotent() -> None:
    """Our own AdCP errors and results of this function pass unchanged."""
    own = BudgetTooLowError("Raise it")
    assert from_upstream(own) is own.fault
    once = from_upstream(http(503, {"Retry-After": "5"}))
    assert from_upstream(once) is once


def test_adcp_codes_from_another_dialect_are_not_conformant() -> None:
    """A problem document that was translated still has the upstream's text."""
    from amends import translate

    problem = extract(http(404, body={"detail": "no /srv/acme"}))
    assert problem is not None
    fault = from_upstream(translate(problem, to="adcp")[0])
    assert facts(fault)[1] == "SERVICE_UNAVAILABLE"
    assert "acme" not in repr(fault)


# ---------------------------------------------------------------------------------------------------- translating


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({}, 10), ({"Retry-After": "30"}, 30), ({"Retry-After": "acme"}, 10), ({"retry-after-ms": "1500"}, 1.5)],
)
def test_a_rate_limit_has_a_wait(headers: dict[str, str], wait: float) -> None:
    """A18: 10 s if the upstream names none."""
    fault = from_upstream(http(429, headers, "acme has used 40 of 40"))
    assert facts(fault) == ("adcp", "RATE_LIMITED", "transient", "no")
    assert fault.retry_after == wait
    assert "acme" not in repr(fault)


def test_rate_limits_of_other_dialects() -> None:
    """The code or the status decides, whatever the dialect."""
    envelope = {"ok": False, "error": {"code": "RATE_LIMITED", "message": "acme", "retryable": True}}
    grpc = standin("grpc.RpcError", code=lambda self: SimpleNamespace(name="RESOURCE_EXHAUSTED"))()
    odd = http(429, body={"code": "ACME_QUOTA", "title": "acme"})
    for failure in (envelope, grpc, odd):
        fault = from_upstream(failure)
        assert (fault.code, fault.retry_after) == ("RATE_LIMITED", 10)
        assert "acme" not in repr(fault).lower()


@pytest.mark.parametrize(
    ("failure", "executed"),
    [
        (http(500, body="Traceback in /srv/acme"), "maybe"),
        (http(408), "maybe"),
        (http(425), "no"),
        (ConnectionRefusedError("acme"), "no"),
        (TimeoutError("acme"), "maybe"),
        (ValueError("acme"), "maybe"),
        ({"exit": 127, "stdout": "", "stderr": "acme"}, "no"),
        # No error can be found in these, and they count as failures all the same.
        (http(200), "maybe"),
        ("acme", "maybe"),
        (b"\xff", "maybe"),
        (None, "maybe"),
        (object(), "maybe"),
    ],
)
def test_everything_else_is_unavailable(failure: object, executed: str) -> None:
    """M9, row 2: our caller can only wait. `executed` is passed on."""
    fault = from_upstream(failure)
    assert facts(fault) == ("adcp", "SERVICE_UNAVAILABLE", "transient", executed)
    assert fault.origin is None
    assert "acme" not in repr(fault)


@pytest.mark.parametrize(
    "failure",
    [
        *(http(status) for status in (400, 401, 402, 403, 404, 407, 409, 422, 501, 505, 526)),
        http(422, body={"title": "acme", "suggestions": ["acme"]}),
        # What was read decides before the status: an exhausted quota, a server that asks for no retry.
        http(429, body={"code": "QUOTA", "is_retriable": False, "detail": "acme"}),
        http(503, {"Retry-After": "5"}, {"is_retriable": False, "detail": "acme"}),
        PermissionError("acme"),
        NotFoundError("acme"),
    ],
)
def test_a_refusal_is_terminal(failure: object) -> None:
    """M9, row 3: waiting does not help, and our caller cannot change the request that was refused."""
    fault = from_upstream(failure)
    assert facts(fault) == ("adcp", "SERVICE_UNAVAILABLE", "terminal", "no")
    assert (fault.actor.value, fault.retry_after, fault.origin) == ("operator", None, None)
    assert "acme" not in repr(fault)


def test_an_open_effect_stays_open() -> None:
    """A refusal that says that the effect of the call is unknown, or that has cancelled it, is not `no`."""
    unknown = http(409, body={"code": "EFFECT_UNKNOWN", "is_retriable": False, "executed": "maybe"})
    assert facts(from_upstream(unknown)) == ("adcp", "SERVICE_UNAVAILABLE", "terminal", "maybe")
    done = Fault(code="NOT_FOUND", executed="yes")
    assert from_upstream(done).executed.value == "yes"


def test_a_refusal_of_our_own_request_is_our_bug() -> None:
    """M9, row 5: an unknown method or invalid params, by number and without an AdCP error."""
    for number in (-32601, -32602):
        raised = standin("mcp.shared.exceptions.MCPError", code=number, message="acme", data=None)()
        for own in (False, True):
            fault = from_upstream(raised, own=own)
            assert facts(fault) == ("adcp", "SERVICE_UNAVAILABLE", "terminal", "no")
            assert fault.message == "Something went wrong inside the service"


def test_a_service_of_our_own_is_passed_on_as_read() -> None:
    """M9, `own=True`: code, recovery, field, suggestions and executed; its text only with our members."""
    missing = from_upstream(http(404, body={"detail": "GET /srv/acme", "field": "/id"}), own=True)
    assert facts(missing) == ("adcp", "REFERENCE_NOT_FOUND", "correctable", "no")
    assert (missing.field, missing.details) == ("/id", None)
    assert "acme" not in repr(missing)
    late = from_upstream(http(504), own=True)
    assert facts(late) == ("adcp", "SERVICE_UNAVAILABLE", "transient", "maybe")
    limited = from_upstream(http(429, {"Retry-After": "3"}), own=True)
    assert (limited.code, limited.retry_after) == ("RATE_LIMITED", 3)
    body = {
        "code": "NOT_FOUND",
        "recovery": "correctable",
        "detail": "There is no order 7 at 10.0.0.7",
        "suggestions": ["List the orders"],
        "details": {"order": 7},
    }
    complete = from_upstream(http(404, body=body), own=True)
    assert (complete.message, complete.details) == (body["detail"], {"order": 7})
    assert "10.0.0.7" not in encode(complete, "adcp")["message"]
    # A whole document is passed on whatever its status.
    quota = http(429, body={"code": "PERMISSION_DENIED", "recovery": "terminal", "detail": "No quota left"})
    assert facts(from_upstream(quota, own=True))[1:3] == ("PERMISSION_DENIED", "terminal")
    # Without `own` nothing of it is passed on.
    assert facts(from_upstream(http(404, body=body)))[1:] == ("SERVICE_UNAVAILABLE", "terminal", "no")
    # One rule for one service.
    mine = Rule(own=True, statuses=frozenset({404}))
    assert from_upstream(http(404), rules=(mine, *RULES)).code == "REFERENCE_NOT_FOUND"
    # Nothing in a response can claim to be our own.
    assert from_upstream(http(404, body={"own": True})).code == "SERVICE_UNAVAILABLE"


def test_waits_and_attempts_are_passed_on() -> None:
    """Inner attempts count, so that layers do not multiply them."""
    assert from_upstream(http(503, {"Retry-After": "12"})).retry_after == 12
    below = Fault(
        code="TIMEOUT", attempt=3, retry_after=-5, trace_id="acme", details={"acme": 1}, user_message="acme"
    )
    fault = from_upstream(below)
    assert (fault.attempt, fault.retry_after) == (3, None)
    assert "acme" not in repr(fault)


def test_an_object_whose_attributes_raise_is_unavailable() -> None:
    """Reading it raises nothing."""

    class Trap:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            raise RuntimeError("acme")

    assert facts(from_upstream(Trap())) == ("adcp", "SERVICE_UNAVAILABLE", "transient", "maybe")


# -------------------------------------------------------------------------------------- what the caller can mend

PROBLEM = http(
    422,
    body={
        "title": "acme",
        "detail": "acme-db.internal refused it",
        "field": "/packages/0/budget",
        "suggestions": ["Ask acme at http://10.0.0.7/admin", "Send a larger number\u202e"],
        "errors": [
            {"field": "/a", "suggestions": ["Send a date"], "detail": "acme"},
            {"field": "see acme; rm -rf"},
        ],
        "details": {"acme": 1},
    },
)


def test_an_error_is_correctable_only_with_caller_can_fix() -> None:
    """Rule 2: fields and redacted suggestions are kept, and nothing else of the upstream's."""
    assert from_upstream(PROBLEM).recovery is Recovery.TERMINAL
    fault = from_upstream(PROBLEM, caller_can_fix=True)
    assert facts(fault) == ("adcp", "VALIDATION_ERROR", "correctable", "no")
    assert fault.field == "/packages/0/budget"
    assert fault.suggestions == ("Ask acme at [redacted]", "Send a larger number")
    assert [(part.code, part.field, part.suggestions) for part in fault.errors] == [
        ("VALIDATION_ERROR", "/a", ("Send a date",)),
        ("VALIDATION_ERROR", None, ()),
    ]
    shown = msgspec.json.encode(fault)
    assert not any(leak in shown for leak in (b"10.0.0.7", b"internal", b"rm -rf", b"details"))


@pytest.mark.parametrize("failure", [http(401), http(500), http(403), TimeoutError()])
def test_failures_that_no_caller_can_correct(failure: object) -> None:
    """Our own credentials, a broken upstream, a refusal: also if the caller wrote the request."""
    fault = from_upstream(failure, caller_can_fix=True)
    assert fault.code == "SERVICE_UNAVAILABLE"
    assert fault.recovery is not Recovery.CORRECTABLE


def test_validation_errors_of_the_callers_input() -> None:
    """The fields that `from_exception` finds are passed on."""
    import pydantic

    class Order(pydantic.BaseModel):
        count: int

    with pytest.raises(pydantic.ValidationError) as caught:
        Order.model_validate({"count": "acme"})
    fault = from_upstream(caught.value, caller_can_fix=True)
    assert (fault.code, fault.field, fault.suggestions) == (
        "VALIDATION_ERROR",
        "/count",
        ("Send a whole number",),
    )
    assert len(fault.errors) == 1


# -------------------------------------------------------------------------------------------------------- several


def test_several_upstreams_give_one_fault() -> None:
    """A18: each has its own code and recovery; a conformant one is unchanged."""
    fault = from_upstreams([RESULT, http(429, {"Retry-After": "4"}), ConnectionRefusedError()])
    assert [part.code for part in fault.errors] == ["BUDGET_TOO_LOW", "RATE_LIMITED", "SERVICE_UNAVAILABLE"]
    assert [part.recovery.value for part in fault.errors] == ["correctable", "transient", "transient"]
    assert fault.errors[0] == extract(RESULT)
    assert facts(fault) == ("adcp", "BUDGET_TOO_LOW", "correctable", "no")
    # The combined fault has the code's own message.
    assert fault.message != "Raise it"
    assert fault.retry_after is None


def test_several_transient_failures() -> None:
    """The longest wait, the worst effect."""
    fault = from_upstreams(iter([http(429), TimeoutError(), http(503, {"Retry-After": "60"})]))
    assert facts(fault) == ("adcp", "RATE_LIMITED", "transient", "maybe")
    assert fault.retry_after == 60


def test_a_single_failure_and_none() -> None:
    """A single conformant one passes unchanged; an empty list raises ValueError."""
    fault = extract(RESULT)
    assert from_upstreams([fault]) is fault
    with pytest.raises(ValueError, match="at least one"):
        from_upstreams([])


def test_the_combined_fault_stays_in_adcp() -> None:
    """Received faults may have a recovery that AdCP does not define."""
    odd = Fault(
        code="PRODUCT_NOT_FOUND", vocabulary="adcp", recovery=Recovery.UNCERTAIN, executed=Executed.YES
    )
    fault = from_upstreams([odd, TimeoutError()])
    assert facts(fault) == ("adcp", "SERVICE_UNAVAILABLE", "correctable", "yes")
    assert from_exception(TimeoutError()).vocabulary == "everyday"
