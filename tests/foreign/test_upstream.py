"""S4's rules for chains (A18): what our caller hears of a failure of something we called."""

from types import SimpleNamespace

import msgspec
import pytest

from amends import Fault, Recovery, encode, extract, from_exception, from_upstream
from amends.core.enums import Executed
from amends.errors import NotFoundError
from amends.errors.adcp import BudgetTooLowError
from amends.foreign import from_upstreams
from tests.foreign.standins import standin

ADCP = {
    "code": "BUDGET_TOO_LOW",
    "message": "Raise it",
    "recovery": "correctable",
    "details": {"minimum_budget": 5},
}
RESULT = {"isError": True, "structuredContent": {"adcp_error": ADCP}, "content": []}


def told(fault: Fault) -> tuple[str, str, str, str]:
    return fault.vocabulary, fault.code, fault.recovery.value, fault.executed.value


def http(status: int, headers: dict[str, str] | None = None, body: object = None) -> dict[str, object]:
    return {"status": status, "headers": headers or {}, "body": body}


# ------------------------------------------------------------------------------------------------ passing through


def test_a_conformant_error_passes_untouched() -> None:
    """Rule 3: nothing stripped, nothing added, its origin kept."""
    fault = extract(RESULT)
    assert fault is not None
    assert from_upstream(fault) is fault
    assert from_upstream(RESULT) == fault
    assert encode(from_upstream(RESULT), "adcp") == ADCP


def test_a_vendors_code_is_conformant_and_any_other_is_not() -> None:
    """A bare object that happens to have a code is somebody's text in disguise."""
    assert from_upstream({"code": "X_ACME_FLOOR", "message": "m"}).code == "X_ACME_FLOOR"
    said = from_upstream({"code": "ECONNREFUSED", "message": "10.0.0.5:5432"})
    assert told(said) == ("adcp", "SERVICE_UNAVAILABLE", "transient", "maybe")
    assert "10.0.0.5" not in repr(said)


def test_what_speaks_adcp_already_is_not_told_twice() -> None:
    """Our own typed errors, and what this function has told before."""
    own = BudgetTooLowError("Raise it")
    assert from_upstream(own) is own.fault
    once = from_upstream(http(503, {"Retry-After": "5"}))
    assert from_upstream(once) is once


def test_adcp_words_from_another_dialect_are_not_conformant() -> None:
    """A problem document that was translated still carries the upstream's text."""
    from amends import translate

    problem = extract(http(404, body={"detail": "no /srv/acme"}))
    assert problem is not None
    said = from_upstream(translate(problem, to="adcp")[0])
    assert told(said)[1] == "SERVICE_UNAVAILABLE"
    assert "acme" not in repr(said)


# ---------------------------------------------------------------------------------------------------- translating


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({}, 10), ({"Retry-After": "30"}, 30), ({"Retry-After": "acme"}, 10), ({"retry-after-ms": "1500"}, 1.5)],
)
def test_a_rate_limit_is_told_with_its_wait(headers: dict[str, str], wait: float) -> None:
    """A18: 10 s where the upstream names none."""
    said = from_upstream(http(429, headers, "acme has used 40 of 40"))
    assert told(said) == ("adcp", "RATE_LIMITED", "transient", "no")
    assert said.retry_after == wait
    assert "acme" not in repr(said)


def test_other_kinds_of_rate_limits() -> None:
    """By the word or the status, whatever dialect it came in."""
    envelope = {"ok": False, "error": {"code": "RATE_LIMITED", "message": "acme", "retryable": True}}
    grpc = standin("grpc.RpcError", code=lambda self: SimpleNamespace(name="RESOURCE_EXHAUSTED"))()
    odd = http(429, body={"code": "ACME_QUOTA", "title": "acme"})
    for failure in (envelope, grpc, odd):
        said = from_upstream(failure)
        assert (said.code, said.retry_after) == ("RATE_LIMITED", 10)
        assert "acme" not in repr(said).lower()


@pytest.mark.parametrize(
    ("failure", "executed"),
    [
        (http(500, body="Traceback in /srv/acme"), "maybe"),
        (http(404), "no"),
        (http(401), "no"),
        (http(403), "no"),
        (http(422, body={"title": "acme", "suggestions": ["acme"]}), "no"),
        (ConnectionRefusedError("acme"), "no"),
        (TimeoutError("acme"), "maybe"),
        (PermissionError("acme"), "no"),
        (ValueError("acme"), "maybe"),
        (NotFoundError("acme"), "no"),
        ({"exit": 127, "stdout": "", "stderr": "acme"}, "no"),
        # Nothing can be found in these, and they failed all the same.
        (http(200), "maybe"),
        ("acme", "maybe"),
        (b"\xff", "maybe"),
        (None, "maybe"),
        (object(), "maybe"),
    ],
)
def test_everything_else_is_unavailable(failure: object, executed: str) -> None:
    """Rules 1 and 2: our caller can only wait; whether it may have happened is carried over."""
    said = from_upstream(failure)
    assert told(said) == ("adcp", "SERVICE_UNAVAILABLE", "transient", executed)
    assert said.origin is None
    assert "acme" not in repr(said)


def test_waits_and_tries_are_carried_over() -> None:
    """What was tried below counts, so that layers do not multiply."""
    assert from_upstream(http(503, {"Retry-After": "12"})).retry_after == 12
    below = Fault(
        code="TIMEOUT", attempt=3, retry_after=-5, trace_id="acme", details={"acme": 1}, user_message="acme"
    )
    said = from_upstream(below)
    assert (said.attempt, said.retry_after) == (3, None)
    assert "acme" not in repr(said)


def test_an_object_that_fights_back_is_unavailable() -> None:
    """Neither reading nor not reading it raises."""

    class Trap:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            raise RuntimeError("acme")

    assert told(from_upstream(Trap())) == ("adcp", "SERVICE_UNAVAILABLE", "transient", "maybe")


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


def test_what_the_caller_can_mend_is_correctable_only_if_we_say_so() -> None:
    """Rule 2: fields and redacted steps are kept, nothing else of the upstream's."""
    assert from_upstream(PROBLEM).recovery is Recovery.TRANSIENT
    said = from_upstream(PROBLEM, caller_can_fix=True)
    assert told(said) == ("adcp", "VALIDATION_ERROR", "correctable", "no")
    assert said.field == "/packages/0/budget"
    assert said.suggestions == ("Ask acme at [redacted]", "Send a larger number")
    assert [(part.code, part.field, part.suggestions) for part in said.errors] == [
        ("VALIDATION_ERROR", "/a", ("Send a date",)),
        ("VALIDATION_ERROR", None, ()),
    ]
    shown = msgspec.json.encode(said)
    assert not any(leak in shown for leak in (b"10.0.0.7", b"internal", b"rm -rf", b"details"))


@pytest.mark.parametrize("failure", [http(401), http(500), http(403), TimeoutError()])
def test_what_no_caller_can_mend(failure: object) -> None:
    """Our own credentials, a broken upstream, a refusal: also where the caller wrote the request."""
    assert told(from_upstream(failure, caller_can_fix=True))[1:3] == ("SERVICE_UNAVAILABLE", "transient")


def test_validation_errors_of_our_callers_input() -> None:
    """The fields that from_exception found come through."""
    import pydantic

    class Order(pydantic.BaseModel):
        count: int

    with pytest.raises(pydantic.ValidationError) as caught:
        Order.model_validate({"count": "acme"})
    said = from_upstream(caught.value, caller_can_fix=True)
    assert (said.code, said.field, said.suggestions) == (
        "VALIDATION_ERROR",
        "/count",
        ("Send a whole number",),
    )
    assert len(said.errors) == 1


# -------------------------------------------------------------------------------------------------------- several


def test_several_upstreams_are_told_together() -> None:
    """A18: each with its own code and recovery; the conformant one untouched."""
    said = from_upstreams([RESULT, http(429, {"Retry-After": "4"}), ConnectionRefusedError()])
    assert [part.code for part in said.errors] == ["BUDGET_TOO_LOW", "RATE_LIMITED", "SERVICE_UNAVAILABLE"]
    assert [part.recovery.value for part in said.errors] == ["correctable", "transient", "transient"]
    assert said.errors[0] == extract(RESULT)
    assert told(said) == ("adcp", "BUDGET_TOO_LOW", "correctable", "no")
    # The whole is in the code's own words.
    assert said.message != "Raise it"
    assert said.retry_after is None


def test_several_that_are_all_transient() -> None:
    """The longest wait, the worst effect."""
    said = from_upstreams(iter([http(429), TimeoutError(), http(503, {"Retry-After": "60"})]))
    assert told(said) == ("adcp", "RATE_LIMITED", "transient", "maybe")
    assert said.retry_after == 60


def test_one_of_several_is_itself_and_none_is_a_mistake() -> None:
    """A single conformant one passes untouched; nothing to tell is our user's mistake."""
    fault = extract(RESULT)
    assert from_upstreams([fault]) is fault
    with pytest.raises(ValueError, match="at least one"):
        from_upstreams([])


def test_a_whole_whose_parts_know_nothing() -> None:
    """Received faults may say what AdCP has no word for; the whole stays in its vocabulary."""
    odd = Fault(
        code="PRODUCT_NOT_FOUND", vocabulary="adcp", recovery=Recovery.UNCERTAIN, executed=Executed.YES
    )
    said = from_upstreams([odd, TimeoutError()])
    assert told(said) == ("adcp", "SERVICE_UNAVAILABLE", "correctable", "yes")
    assert from_exception(TimeoutError()).vocabulary == "everyday"
