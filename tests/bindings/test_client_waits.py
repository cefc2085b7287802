"""Waits that answers name in the past: all clients, against a real server."""

from email.utils import formatdate
from time import time

import pytest
from starlette.responses import Response

from amends import FaultError, Policy
from tests.bindings.clients import client  # noqa: F401 - a fixture

PAST = formatdate(time() - 3600, usegmt=True)


def refused(headers):
    async def respond(flaky, request):
        return Response(b"", 503, headers=headers)

    return respond


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "0"},
        {"Retry-After": PAST},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time()) - 60)},
    ],
    ids=["zero", "past date", "past reset"],
)
def test_a_wait_that_is_over_does_not_spend_all_tries_at_once(client, flaky, clock, headers):  # noqa: F811
    """Three tries of a read wait as long as without a hint after the first repeat."""
    flaky.script["/orders"] = [refused(headers)] * 4
    with pytest.raises(FaultError) as caught:
        client.call("GET", f"{flaky.url}/orders", options={"policy": Policy(attempts=3), "upstream": None})
    assert len(flaky.calls["/orders"]) == 3
    assert caught.value.decision.reason == "attempts"
    assert 2.0 <= clock.waited < 60
