"""The key of the running effect: what HTTP requests inside it carry."""

import asyncio

import httpx2

from amends.bindings.httpx import Transport
from amends.effects import Effects, current_key
from amends.recovery.effect_context import current_scope, enter_scope, request_key, running_as, within_scope


def test_scopes_nest():
    """An inner scope replaces the outer one until it ends."""
    with within_scope("a"):
        with within_scope("b"):
            assert current_scope() == "b"
        assert current_scope() == "a"
    assert current_scope() == ""


def test_request_keys():
    """The n-th request to an address has the same key whenever the effect runs; other effects have other keys."""

    def keys(effect):
        with running_as(effect):
            assert current_key() == effect
            return [request_key("POST", address) for address in ("a", "a", "b")]

    first = keys("pay:1")
    assert len(set(first)) == 3
    assert keys("pay:1") == first
    assert not set(keys("pay:2")) & set(first)
    assert request_key("POST", "a") is None


def test_http_requests_carry_the_key_of_the_effect():
    """A service that honours keys sees the same key when the effect runs again, and another one with `again`."""
    seen, answers = [], [httpx2.ReadTimeout("lost")]

    def answer(request):
        seen.append(request.headers.get("idempotency-key"))
        if answers:
            raise answers.pop()
        return httpx2.Response(201, json={})

    effects = Effects("memory:")
    transport = Transport(httpx2.MockTransport(answer), upstream=None, keyed=False)
    with httpx2.Client(transport=transport) as client:

        @effects.once(verify=lambda amount: False, timeout=3)  # a lost call may act until then
        def pay(amount):
            client.post("https://api.stripe.com/v1/charges", json={"amount": amount})

        try:
            pay(5)
        except Exception as error:
            assert error.fault.executed == "no"  # noqa: PT017
        pay(5)
        pay(5, again="a second one")
    assert seen[0] == seen[1] != seen[2]
    assert None not in seen


async def test_a_scope_that_a_task_enters_ends_with_the_task():
    async def work():
        enter_scope("task")
        return current_scope()

    assert await asyncio.create_task(work()) == "task"
    assert current_scope() == ""
