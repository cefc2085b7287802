"""The Upstream that clients have by default: one per origin, with a scope per credential and route."""

import httpx
import pytest

from amends import Policy, Upstream
from amends.bindings.httpx import Transport
from amends.errors import RateLimitedError
from tests.bindings.clients import client  # noqa: F401 - a fixture
from tests.http.raw_server import answer, raw_server

LIMITED = answer(429, b"", {"Retry-After": "600"})
ONCE = {"policy": Policy(attempts=1)}


def refused(client, url, **options):  # noqa: F811
    """Make eight calls, each through a new session, all of which fail with the limit."""
    for _ in range(8):
        with pytest.raises(RateLimitedError):
            client.call("GET", url, options={**ONCE, **options})


def test_clients_of_one_origin_obey_each_others_limits(client, clock):  # noqa: F811
    """A limit that one session was given holds back the next ones; other routes, credentials and origins are called."""
    with raw_server(LIMITED) as server, raw_server(answer(200, b"x")) as other:
        refused(client, f"{server.url}/orders/1")
        assert len(server.requests) < 4
        for path, headers in (("/invoices/1", {}), ("/orders/2", {"X-Api-Key": "another"})):
            before = len(server.requests)
            with pytest.raises(RateLimitedError):
                client.call("GET", f"{server.url}{path}", headers=headers, options=ONCE)
            assert len(server.requests) == before + 1
        assert client.call("GET", f"{other.url}/orders/1", options=ONCE).status == 200


def test_the_default_upstream_can_be_replaced_or_turned_off(client, clock):  # noqa: F811
    """`upstream=None` sends every call; an Upstream that is given counts for all routes."""
    with raw_server(LIMITED) as server:
        refused(client, f"{server.url}/orders/1", upstream=None)
        assert len(server.requests) == 8
        given = Upstream("shop")
        refused(client, f"{server.url}/orders/1", upstream=given)
        before = len(server.requests)
        with pytest.raises(RateLimitedError):
            client.call("GET", f"{server.url}/invoices/1", options={**ONCE, "upstream": given})
        assert len(server.requests) == before < 12


def test_renewals_are_not_shared_between_clients(clock):
    """Two clients of one origin renew credentials of their own: one does not wait for the other's renewal."""
    renewed = []
    no, yes = answer(401, b""), answer(200, b"x")
    with raw_server(no, no, yes) as server:

        def renew_after_another_client():
            with httpx.Client(transport=Transport(refresh=lambda: renewed.append("b"))) as other:
                assert other.get(server.url).status_code == 200
            renewed.append("a")

        with httpx.Client(transport=Transport(refresh=renew_after_another_client)) as outer:
            assert outer.get(server.url).status_code == 200
    assert renewed == ["b", "a"]
