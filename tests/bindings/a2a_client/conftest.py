"""Agents behind the SDK's own server: guarded, on a line that can be cut, and as it comes."""

import pytest
from a2a.server.tasks import InMemoryPushNotificationConfigStore

from amends.bindings.a2a import guard
from tests.bindings.a2a_client.lines import Line
from tests.bindings.agents import Agent, Desk, Store, application, works
from tests.http.serving import serve


@pytest.fixture(scope="module")
def served():
    agent, store = Agent(works), Store()
    line = Line(
        application(
            guard(agent), store=store, wrap=guard, push_config_store=InMemoryPushNotificationConfigStore()
        )
    )
    with serve(line, timeout_graceful_shutdown=1) as base:
        found = Desk(base, agent, store)
        found.line = line
        yield found


@pytest.fixture
def desk(served):
    served.line.first = []
    return served.does(works)


@pytest.fixture(scope="module")
def bare():
    """The SDK's server without a guard."""
    agent, store = Agent(works), Store()
    with serve(application(agent, store=store), timeout_graceful_shutdown=1) as base:
        yield Desk(base, agent, store)
