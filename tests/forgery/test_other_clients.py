"""The other HTTP clients, and an agent of the orchestrator, against the peer that forges everything it controls."""

import asyncio
from contextlib import nullcontext

import aiohttp
import httpx2
import pytest
import requests

from amends import FaultError
from amends.bindings.aiohttp import recovering
from amends.bindings.httpx import AsyncTransport
from amends.bindings.requests import Adapter
from amends.recovery.policies import NONE
from amends.tasks import Orchestrator
from amends.tasks.remote.http import Endpoint, HttpAgent
from amends.testing import FakeClock
from tests.forgery.peer import Peer, forgeries
from tests.forgery.test_peer import is_invitation


def with_requests(urls):
    session = requests.Session()
    session.mount("http://", Adapter(upstream=None))
    for url in urls:
        with pytest.raises(FaultError):
            session.post(url, json={})


def with_httpx(urls):
    async def post_all():
        async with httpx2.AsyncClient(transport=AsyncTransport(upstream=None)) as client:
            for url in urls:
                with pytest.raises(FaultError):
                    await client.post(url, json={})

    asyncio.run(post_all())


def with_aiohttp(urls):
    async def post_all():
        async with aiohttp.ClientSession(middlewares=(recovering(upstream=None),)) as session:
            for url in urls:
                with pytest.raises(FaultError):
                    async with session.post(url, json={}):
                        pass

    asyncio.run(post_all())


def with_tasks(urls):
    async def post_all():
        endpoints = {url: Endpoint(url=url) for url in urls}
        # As the agent makes it, but without a state that calls share: one forged refusal would hold back the others.
        client = httpx2.AsyncClient(transport=AsyncTransport(policy=NONE, keys=False, upstream=None))
        async with client, Orchestrator([HttpAgent("shop", endpoints, client=client)]) as orchestrator:
            running = (
                orchestrator.run(url, {}, agent="shop", id=f"t-{number}") for number, url in enumerate(urls)
            )
            assert not any(response.ok for response in await asyncio.gather(*running))

    asyncio.run(post_all())


@pytest.mark.parametrize("post_all", [with_requests, with_httpx, with_aiohttp, with_tasks])
@pytest.mark.parametrize("step", [97, pytest.param(5, marks=pytest.mark.soak)])
def test_no_forged_answer_is_followed_by_a_second_post(post_all, step):
    """Each of them sends a POST once, whatever the failed answer says about it."""
    with Peer() as peer:
        cases = {
            peer.url + peer.forge(number, status, which, body): (status, which, body)
            for number, status, which, body in forgeries(step)
            if not is_invitation(status, body)
        }
        # An orchestrator waits for its store, which the clock of a test does not move.
        with nullcontext() if post_all is with_tasks else FakeClock():
            post_all(list(cases))
        sent = {url: peer.effects.get(url.removeprefix(peer.url)) for url in cases}
    assert {url: cases[url] for url, count in sent.items() if count != 1} == {}
    assert len(cases) > 40
