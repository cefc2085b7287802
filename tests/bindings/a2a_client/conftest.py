"""Agents on the SDK's server: guarded and behind a Line that can fail, or without both."""

import pytest
from a2a.server.tasks import InMemoryPushNotificationConfigStore

from amends.bindings.a2a import guard
from tests.bindings.a2a_client.lines import Line
from tests.bindings.agents import Agent, AgentServer, Store, application, works
from tests.http.serving import serve


@pytest.fixture(scope="module")
def running():
    agent, store = Agent(works), Store()
    line = Line(
        application(
            guard(agent), store=store, wrap=guard, push_config_store=InMemoryPushNotificationConfigStore()
        )
    )
    with serve(line, timeout_graceful_shutdown=1) as base:
        server = AgentServer(base, agent, store)
        server.line = line
        yield server


@pytest.fixture
def server(running):
    running.line.first = []
    return running.does(works)


@pytest.fixture(scope="module")
def bare():
    """The SDK's server without a guard."""
    agent, store = Agent(works), Store()
    with serve(application(agent, store=store), timeout_graceful_shutdown=1) as base:
        yield AgentServer(base, agent, store)
