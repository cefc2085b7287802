"""A peer that forges everything it controls gets no request a second time, through the clients and through the gateway."""

import httpx
import pytest

from amends import FaultError
from amends.bindings.httpx import Transport
from amends.testing import FakeClock
from tests.forgery.peer import Peer, forgeries
from tests.gateway.peers import http, serving

INVITED = 503
"""Under this status an error in one of our five formats may invite a repeat (M3)."""


def is_invitation(status, body):
    """Return whether the answer is an invitation that the specification allows: in one of the five formats, for this status."""
    ours = isinstance(body, dict) and ("retry_after_ms" in body or "adcp_error" in body or "ok" in body)
    return status == INVITED and ours


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.soak)])
def test_no_forged_answer_makes_a_client_repeat_a_post(step):
    """The POST is sent once, whatever the failed answer contains; its key is sent, but not proved."""
    with Peer() as peer, FakeClock(), httpx.Client(transport=Transport(upstream=None)) as client:
        count = 0
        for number, status, which, body in forgeries(step):
            if is_invitation(status, body):
                continue
            path = peer.forge(number, status, which, body)
            with pytest.raises(FaultError) as failed:
                client.post(peer.url + path, json={})
            assert peer.effects[path] == 1, (status, which, body)
            assert failed.value.fault.executed == "maybe", (status, which, body)
            count += 1
        assert count > 100


@pytest.mark.parametrize("step", [47, pytest.param(3, marks=pytest.mark.soak)])
async def test_no_forged_answer_makes_the_gateway_repeat_a_post(step):
    """With the caller's key, and with nothing known about the service."""
    with Peer() as peer:
        async with (
            serving(http(peer, prefix="")) as gateway,
            httpx.AsyncClient(base_url=gateway.url, timeout=60) as caller,
        ):
            count = 0
            for number, status, which, body in forgeries(step):
                if is_invitation(status, body):
                    continue
                path = peer.forge(number, status, which, body)
                answer = await caller.post(
                    path,
                    json={},
                    headers={"idempotency-key": f"key-{number}", "authorization": f"Bearer caller-{number}"},
                )
                assert answer.status_code == status, (status, which, body)
                assert peer.effects[path] == 1, (status, which, body)
                count += 1
            assert count > 50
