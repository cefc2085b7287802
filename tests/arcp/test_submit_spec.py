"""From a submission to the spec of a job."""

import pytest

from amends.arcp.runtime.agents import Agents
from amends.arcp.runtime.jobs.submit import (
    accepted_payload,
    check_lease_not_expired,
    spec_from_request,
    trace_id_from,
)
from amends.arcp.wire.messages import Submit
from amends.errors.arcp import AgentNotAvailableError, ARCPError, InvalidRequestError

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Members:
    """The agents of one node."""

    def __init__(self):
        self.agents = Agents()
        self.agents.add("echo", lambda given, ctx: None, version="1", default=None, repeatable=True)

    async def known_agents(self, reference):
        return {"echo": ("1",)}


async def spec(request, trace=None):
    return await spec_from_request(Members(), "alice", "sess_1", trace, request)


async def test_a_submission():
    found = await spec(Submit("echo", {"a": 1}, max_runtime_sec=5), TRACE)
    assert (found.agent, found.input, found.trace, found.max_runtime) == ("echo@1", {"a": 1}, TRACE, 5)
    assert (found.principal, found.session, found.repeatable, found.key) == ("alice", "sess_1", True, None)
    assert found.job_id.startswith("job_")


async def test_the_same_submission_has_the_same_fingerprint():
    """The order of members does not matter; everything else does."""
    first = await spec(Submit("echo", {"a": 1, "b": 2}, idempotency_key="k"))
    again = await spec(Submit("echo", {"b": 2, "a": 1}, idempotency_key="k"))
    other = await spec(Submit("echo", {"a": 1, "b": 3}, idempotency_key="k"))
    assert (first.key, first.fingerprint) == (again.key, again.fingerprint)
    assert first.fingerprint != other.fingerprint
    assert first.job_id != again.job_id


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Submit("nobody"), AgentNotAvailableError),
        (Submit("Not A Name!"), InvalidRequestError),
        (Submit("echo", idempotency_key=""), InvalidRequestError),
        (Submit("echo", idempotency_key="k" * 257), InvalidRequestError),
        (Submit("echo", max_runtime_sec=0), InvalidRequestError),
        (Submit("echo", max_runtime_sec=float("nan")), InvalidRequestError),
        (Submit("echo", lease_request={"": ["x"]}), ARCPError),
        (Submit("echo", lease_constraints={"expires_at": "2020-01-01T00:00:00Z"}), InvalidRequestError),
    ],
)
async def test_refused_submissions(request_, error):
    with pytest.raises(error):
        await spec(request_)


async def test_an_expired_lease_under_a_key():
    """It may repeat a submission that was accepted before the lease expired; a new job is refused."""
    request = Submit("echo", idempotency_key="k", lease_constraints={"expires_at": "2020-01-01T00:00:00Z"})
    found = await spec(request)
    with pytest.raises(InvalidRequestError):
        check_lease_not_expired(found)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (TRACE, True),
        (f"00-{TRACE}-00f067aa0ba902b7-01", True),
        (None, False),
        ("0" * 32, False),
        ("x", False),
    ],
)
def test_traces(given, kept):
    found = trace_id_from(given)
    assert (found == TRACE) is kept
    assert len(found) == 32


async def test_the_answer():
    """Without a lease nothing of it is written, except that it is empty."""
    plain = accepted_payload(await spec(Submit("echo")), "m1")
    assert (plain.lease, plain.budget, plain.request_id) == ({}, None, "m1")
    leased = await spec(Submit("echo", lease_request={"cost.budget": ["USD:5.00"]}))
    assert accepted_payload(leased, None, amounts_as_text=True).budget == {"USD": "5.00"}
