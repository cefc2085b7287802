"""`amends.testing.Rehearsal` and the fixture: blocks with several failures, services at hosts, and what a block may say."""

import httpx2
import pytest

from amends.rehearse.plan import Failure, Plan, ServiceOptions
from amends.testing import Rehearsal

CHARGES = "https://api.stripe.com/v1/charges"


def test_the_fixture_is_the_class(amends_rehearsal):
    """So tests need no import."""
    with amends_rehearsal("stripe", kinds=["rate"], seed=7) as stage:
        assert httpx2.get(CHARGES).status_code == 429
    assert amends_rehearsal is Rehearsal
    assert stage.score("stripe", "rate") == 1


def test_several_failures_happen_one_after_the_other():
    """In one block each failure waits for a call of its own; those that no repeat cures come last."""
    with Rehearsal("stripe", kinds=["rate", "server-error", "validation", "lost"], wait=0.2) as stage:
        for number in range(8):
            try:
                httpx2.post(CHARGES, data={"amount": number}, timeout=2)
            except httpx2.TransportError:
                pass
    assert [each.kind for each in stage.incidents] == ["rate", "server-error", "validation", "lost"]
    assert len({each.call for each in stage.incidents}) == 4


def test_a_failure_that_is_not_sent_has_no_score():
    """The note says why; the lowest score is that of the others."""
    with Rehearsal("stripe", "orders", kinds=["rate"]) as stage:
        httpx2.get(CHARGES)
    notes = {row.id: row.note for row in stage.rows}
    assert notes["orders/rate"] == "not sent: the program did not call the service"
    assert stage.score("orders") is None
    assert stage.score() == 1


def test_an_unknown_name_is_an_error():
    """A misspelt kind or service is named, and not taken for one without a score."""
    with Rehearsal("stripe", kinds=["rate"]) as stage:
        pass
    with pytest.raises(ValueError, match="no kind of failure 'rates'"):
        stage.score("stripe", "rates")
    with pytest.raises(ValueError, match="'strip' is no service of this rehearsal: stripe"):
        stage.score("strip")
    with pytest.raises(ValueError, match="no kind of failure 'rates'"):
        Rehearsal("stripe", kinds=["rates"])
    with pytest.raises(ValueError, match="there is no service 'nonsense'"):
        Rehearsal("nonsense")


def test_a_check_may_assert():
    """An AssertionError or a false value is a failed check; the claim of success is then harm."""

    def check():
        assert False  # noqa: B011, PT015 - as a user's test does

    for failing in (check, lambda: False):
        with Rehearsal("stripe", kinds=["lost"], check=failing) as stage:
            with pytest.raises(httpx2.TransportError):
                httpx2.post(CHARGES, data={"amount": 1})
            stage.output("all done")
        assert "claimed" in [each.rule for each in stage.findings()]
        assert stage.score() == 0


def test_a_leak_in_the_output_is_found():
    """What the block passes to its user is searched for text from inside the service."""
    with Rehearsal("stripe", kinds=["server-error"]) as stage:
        stage.output(httpx2.get(CHARGES).text)
    assert "leaked" in [each.rule for each in stage.findings()]


def test_the_share_of_calls_that_fail():
    """`rate` fails a share of the calls, at most `repeat` times; the same seed fails the same calls."""

    def failed(seed):
        failure = Failure("orders", "server-error", rate=0.4, repeat=50)
        with Rehearsal("orders", plan=Plan(seed=seed, failure=[failure])) as stage:
            for _ in range(30):
                httpx2.get(stage.address("orders") + "/orders")
        return [each.call for each in stage.incidents]

    assert failed(1) == failed(1)
    assert failed(1) != failed(2)
    assert 5 < len(failed(1)) < 20


async def test_clients_of_mcp_and_a2a_are_intercepted_at_their_hosts():
    """The official SDKs, with addresses that are not of this machine."""
    from a2a.client import ClientConfig, ClientFactory
    from a2a.types.a2a_pb2 import SendMessageRequest
    from mcp import Client

    from amends.demo.agents import menu_message

    services = [
        ServiceOptions("mcp", hosts=["tools.example"]),
        ServiceOptions("a2a", hosts=["agent.example"]),
    ]
    plan = Plan(wait=0.1, failure=[Failure("mcp", "validation", call=1), Failure("a2a", "rate", call=1)])
    with Rehearsal(*services, plan=plan) as stage:
        async with Client("https://tools.example/mcp") as client:
            first = await client.call_tool("create_order", {"item": "tea", "quantity": 13})
            second = await client.call_tool("create_order", {"item": "tea", "quantity": 1})
        agent = await ClientFactory(ClientConfig(streaming=False)).create_from_url("https://agent.example")
        (event,) = [each async for each in agent.send_message(SendMessageRequest(message=menu_message()))]
        await agent.close()
    assert (first.is_error, second.is_error) == (True, False)
    assert "RATE_LIMITED" in str(event)
    assert [each.failure for each in stage.incidents] == ["mcp/validation", "a2a/rate"]
    assert stage.violations == []
