"""Redirects: credentials and our own headers stay with the origin that they were meant for."""

import httpx2
import pytest
import requests

from amends import FaultError, Operation, Policy, Upstream, recover
from amends.bindings.httpx import Transport
from amends.bindings.requests import Adapter
from tests.bindings.clients import client  # noqa: F401 - a fixture
from tests.http.raw_server import answer, raw_server

SECRETS = {
    "X-Api-Key": "k",
    "Api-Key": "k",
    "X-Auth-Token": "t",
    "Authorization": "Bearer t",
    "X-Goog-Api-Key": "k",
    "Idempotency-Key": "order-17",
}


@pytest.fixture
def two():
    with raw_server() as one, raw_server() as other:
        yield one, other


@pytest.mark.parametrize("status", [302, 307])
def test_credentials_do_not_follow_to_another_origin(client, two, status):  # noqa: F811
    """After a redirect to another origin no credential and no key of the first request is sent; other headers are."""
    one, other = two
    one.script = [answer(status, headers={"Location": f"{other.url}/there"})]
    headers = {**SECRETS, "X-Request": "7"}
    reply = client.call("POST", f"{one.url}/here", json={}, headers=headers, redirects=True)
    assert reply.status == 200
    (_, _, first, _), (_, _, then, _) = one.requests[0], other.requests[0]
    assert {name.lower() for name in SECRETS} <= set(first)
    assert not {name.lower() for name in SECRETS} - {"idempotency-key"} & set(then)
    assert then.get("idempotency-key") != "order-17"
    assert then["x-request"] == "7"


def test_a_new_key_is_not_carried_to_another_origin(client, two):  # noqa: F811
    """A POST that is redirected elsewhere with 307 carries another key there."""
    one, other = two
    one.script = [answer(307, headers={"Location": f"{other.url}/there"})]
    client.call("POST", f"{one.url}/here", json={}, redirects=True)
    assert one.requests[0][2]["idempotency-key"] != other.requests[0][2]["idempotency-key"]


def test_what_is_said_about_keys_holds_for_the_first_origin(client, two, clock):  # noqa: F811
    """`keyed=True` and the key of the operation are about the called service, and not about one that it redirects to."""
    one, other = two
    one.script = [answer(307, headers={"Location": f"{other.url}/there"})]
    other.script = [answer(500), answer(201)]
    operation = Operation(key="order-17")
    once = Policy(attempts=1)
    for options in ({"keyed": True}, {"upstream": Upstream(keyed=True)}, {}):
        other.requests.clear()
        with pytest.raises(FaultError) as caught:
            recover(
                lambda options=options: client.call(
                    "POST", f"{one.url}/here", json={}, redirects=True, options=options
                ),
                operation=operation,
                policy=once,
            )
        assert caught.value.fault.status == 500
        assert len(other.requests) == 1
        assert one.requests[-1][2]["idempotency-key"] == "order-17"
        assert other.requests[0][2].get("idempotency-key") != "order-17"


def test_credentials_follow_within_the_origin(client, two):  # noqa: F811
    """A redirect to another path of the same origin keeps the credentials."""
    one, _ = two
    one.script = [answer(302, headers={"Location": "/there"}), answer(200)]
    client.call("GET", f"{one.url}/here", headers={"X-Api-Key": "k"}, redirects=True)
    assert [(path, headers["x-api-key"]) for _, path, headers, _ in one.requests] == [
        ("/here", "k"),
        ("/there", "k"),
    ]


def test_a_chain_of_redirects(client, two):  # noqa: F811
    """Credentials do not come to another origin through a redirect within the first, either."""
    one, other = two
    one.script = [
        answer(302, headers={"Location": "/there"}),
        answer(302, headers={"Location": f"{other.url}/x"}),
    ]
    client.call("GET", f"{one.url}/here", headers={"X-Api-Key": "k"}, redirects=True)
    assert "x-api-key" in one.requests[1][2]
    assert "x-api-key" not in other.requests[0][2]


def test_two_requests_are_independent(client, two):  # noqa: F811
    """A request to another origin that is no redirect keeps its credentials."""
    one, other = two
    steps = [("GET", f"{server.url}/", {"headers": {"X-Api-Key": "k"}}) for server in (one, other)]
    client.calls(steps)
    assert other.requests[0][2]["x-api-key"] == "k"


def test_cookies_of_the_second_origin_are_sent():
    """The cookie jar decides over cookies: one that belongs to the second host is sent there."""
    with raw_server() as one, raw_server() as other:
        one.script = [answer(302, headers={"Location": other.url})]
        with httpx2.Client(transport=Transport(), follow_redirects=True) as session:
            session.cookies.set("mine", "1", domain="127.0.0.1")
            session.get(one.url)
        with requests.Session() as session:
            session.mount("http://", Adapter())
            session.cookies.set("mine", "1", domain="127.0.0.1")
            session.get(one.url)
        assert [request[2]["cookie"] for request in other.requests] == ["mine=1", "mine=1"]


def test_requests_strips_for_every_adapter(two):
    """In requests the redirected request may go to another adapter; it has no credentials either."""
    one, other = two
    one.script = [answer(302, headers={"Location": other.url})]
    with requests.Session() as session:
        session.mount(one.url, Adapter())
        prepared = session.prepare_request(requests.Request("GET", one.url, headers={"X-Api-Key": "k"}))
        session.send(prepared)
    assert "x-api-key" not in other.requests[0][2]
    assert prepared.headers["X-Api-Key"] == "k"


def test_the_callers_request_is_not_changed():
    """Neither httpx nor requests find our headers in the request that they made."""
    with raw_server() as server:
        with httpx2.Client(transport=Transport()) as session:
            found = session.post(server.url)
            assert "idempotency-key" not in found.request.headers
        with requests.Session() as session:
            session.mount("http://", Adapter())
            assert "idempotency-key" not in session.post(server.url).request.headers
