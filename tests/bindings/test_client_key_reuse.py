"""A give-up after a request with a key carries the key, and only `reuse_keys` sends it again unasked: all clients, a real server."""

import asyncio

import pytest
from starlette.responses import Response

from amends import FaultError, Operation, Policy, recover
from amends.http.calls import UnsettledKeys
from amends.serving.tracing import handling
from tests.bindings.clients import client  # noqa: F401 - a fixture

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b7-01"


async def lose(flaky, request):
    """The answer is lost."""
    await asyncio.sleep(2)
    return Response(b"late")


async def done(flaky, request):
    return Response(b"{}", 201)


def in_use(wait, key=None):
    """The answer of a server that still works on an earlier request with the key."""

    async def respond(flaky, request):
        flaky.effects["in use"] += 1
        body = (
            b'{"type":"about:blank","status":409,"code":"CONFLICT","recovery":"transient","executed":"maybe"}'
        )
        headers = {
            "Content-Type": "application/problem+json",
            "Retry-After": str(wait),
            "Idempotency-Key": key or request.headers["idempotency-key"],
        }
        return Response(body, 409, headers=headers)

    return respond


def keys(flaky):
    return [headers["idempotency-key"] for _, headers, _ in flaky.calls["/orders"]]


def order(client, flaky, *, options=None, body=None, **more):  # noqa: F811
    return client.call(
        "POST", f"{flaky.url}/orders", json=body or {"item": 1}, timeout=0.3, options=options, **more
    )


def test_a_give_up_carries_its_key(client, flaky, clock):  # noqa: F811
    """The exception has the key, its note says what to do with it, and the operation's key is sent again."""
    flaky.script["/orders"] = [lose, done]
    with pytest.raises(FaultError) as caught:
        order(client, flaky)
    error = caught.value
    assert error.key == keys(flaky)[0]
    assert any("same key" in note and "error.key" in note for note in error.__notes__)
    reply = recover(order, client, flaky, operation=Operation(key=error.key))
    assert reply.status == 201
    assert keys(flaky) == [error.key, error.key]


def test_two_identical_orders_are_two_orders(client, flaky, clock):  # noqa: F811
    """Nothing is reused unasked."""
    flaky.script["/orders"] = [lose, done]
    with pytest.raises(FaultError):
        order(client, flaky)
    order(client, flaky)
    first, second = keys(flaky)
    assert first != second


def test_keys_are_reused_on_demand(client, flaky, clock):  # noqa: F811
    """The same request gets the same key until its outcome is known; another body, header or trace gets another."""
    flaky.script["/orders"] = [lose, lose, done, done, done, done, done]
    steps = [{}, {}, {"body": {"item": 2}}, {"headers": {"Authorization": "Bearer b"}}, {}, {}]
    options = {"reuse_keys": True, "policy": Policy(attempts=1)}
    session = Session(client, flaky, options)
    outcomes = session.run(steps)
    assert outcomes == ["lost", "lost", 201, 201, 201, 201]
    first, second, body, header, settled, new = keys(flaky)
    assert first == second == settled
    assert len({first, body, header, new}) == 4


def test_a_key_belongs_to_its_trace(client, flaky, clock):  # noqa: F811
    """The same request in another trace is another request."""
    flaky.script["/orders"] = [lose, done, done]
    session = Session(client, flaky, {"reuse_keys": True, "policy": Policy(attempts=1)})
    outcomes = session.run([{"trace": TRACE}, {"trace": OTHER}, {"trace": TRACE}])
    assert outcomes == ["lost", 201, 201]
    first, other, same = keys(flaky)
    assert first == same != other


class Session:
    """Requests one after the other through one transport, of which some fail."""

    def __init__(self, client, flaky, options):  # noqa: F811
        self.client, self.flaky, self.options = client, flaky, options

    def run(self, steps):
        # Each call of the fixture makes a transport; they share here what one transport remembers.
        shared, kind, outcomes = UnsettledKeys(), UnsettledKeys, []
        get, note = kind.get, kind.note
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, "get", lambda _, place: get(shared, place))
            patch.setattr(
                kind, "note", lambda _, place, key, settled: note(shared, place, key, settled=settled)
            )
            for step in steps:
                trace = step.pop("trace", None)
                with handling(trace):
                    try:
                        reply = order(self.client, self.flaky, options=dict(self.options), **step)
                    except FaultError:
                        outcomes.append("lost")
                    else:
                        outcomes.append(reply.status)
        return outcomes


def test_a_key_in_use_is_waited_for_once(client, flaky, clock):  # noqa: F811
    """The wait for an earlier request with the key costs no attempt; the second such answer is an ordinary failure."""
    flaky.script["/orders"] = [in_use(7), done]
    options = {"policy": Policy(attempts=1)}
    assert order(client, flaky, options=options).status == 201
    assert 7 <= clock.waited < 8.5
    flaky.calls.clear()
    flaky.script["/orders"] = [in_use(7), in_use(7), done]
    with pytest.raises(FaultError) as caught:
        order(client, flaky, options=options)
    assert (caught.value.fault.executed, caught.value.decision.action) == ("maybe", "verify")
    assert caught.value.key == keys(flaky)[-1]
    assert flaky.effects["in use"] == 3


def test_the_wait_for_a_key_is_bounded_by_the_policy(client, flaky, clock):  # noqa: F811
    """A lease that lasts longer than the policy waits ends the call at once, and says when it can go on."""
    flaky.script["/orders"] = [in_use(100), done]
    with pytest.raises(FaultError) as caught:
        order(client, flaky, options={"policy": Policy(max_wait=20)})
    assert (caught.value.decision.reason, caught.value.decision.resume_in) == ("wait-too-long", 100)
    assert clock.waited == 0


def test_another_key_in_the_answer_is_no_reason_to_wait(client, flaky, clock):  # noqa: F811
    """The answer must be about our key."""
    flaky.script["/orders"] = [in_use(7, key="another"), done]
    with pytest.raises(FaultError) as caught:
        order(client, flaky)
    assert caught.value.decision.action == "verify"
    assert flaky.effects["in use"] == 1
