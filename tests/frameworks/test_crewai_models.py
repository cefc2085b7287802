"""Models of CrewAI, LlamaIndex and Strands whose clients need version 2 of OpenAI's SDK, against a local server."""

import asyncio
import os

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")

import pytest
from crewai import LLM, Agent, Crew, Task
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from strands import Agent as StrandsAgent
from strands.models.openai import OpenAIModel

from amends.bindings import crewai, llama_index, strands
from amends.testing import FakeClock
from tests.frameworks.model_server import BROKEN, CUT, DOWN, QUOTA, RATE, TOO_LONG, serving


@pytest.fixture(autouse=True)
def clock():
    """Waits take no time."""
    with FakeClock() as fake:
        yield fake


def with_crewai(url, second=None, **options):
    def model(url, **options):
        return LLM(model="openai/gpt-4o", base_url=url, api_key="none", **options)

    failures = crewai.Failures(fallback_models=[model(second)] if second else [])
    llm = failures.model(model(url, **options))
    # The agent's own repeats of a task are the user's to set.
    agent = Agent(role="a", goal="b", backstory="c", llm=llm, max_retry_limit=0)
    task = Task(description="hello", expected_output="text", agent=agent)
    return Crew(agents=[agent], tasks=[task], tracing=False).kickoff().raw


def with_llama_index(url, second=None, *, streaming=False, **options):
    def model(url, **options):
        return OpenAI(model="gpt-4o", api_base=url, api_key="none", **options)

    failures = llama_index.Failures(fallback_models=[model(second)] if second else [])
    llm = failures.model(model(url, **options))

    async def work():
        return str(await FunctionAgent(tools=[], llm=llm, streaming=streaming).run("hello"))

    return asyncio.run(work())


def with_llama_index_streams(url, second=None, **options):
    return with_llama_index(url, second, streaming=True, **options)


def with_strands(url, second=None, **options):
    def model(url, **options):
        return OpenAIModel(client_args={"base_url": url, "api_key": "none", **options}, model_id="gpt-4o")

    plugin = strands.Failures(fallback_models=[model(second)] if second else [])
    agent = StrandsAgent(model=model(url, **options), plugins=[plugin], callback_handler=None)
    return str(agent("hello")).strip()


RUNS = [with_crewai, with_llama_index, with_llama_index_streams, with_strands]


@pytest.mark.parametrize("run", RUNS)
def test_a_call_that_failed_is_made_again(run):
    """What a repeat can help is repeated, once for each failure."""
    for fault in (RATE, DOWN, BROKEN, CUT):
        with serving([fault]) as (url, requests):
            assert run(url) == "the end", fault
        assert len(requests) == 2, fault


@pytest.mark.parametrize("run", RUNS)
def test_tries_do_not_multiply(run):
    """The retries of the framework and of its client are off: one policy says how many tries there are."""
    for fault, tries in ((DOWN, 4), (QUOTA, 1)):
        with serving([fault] * 40) as (url, requests), pytest.raises(Exception) as raised:
            run(url)
        assert len(requests) == tries, (fault, raised.value)


@pytest.mark.parametrize("run", [with_crewai, with_strands])
def test_a_number_of_the_user_stays(run):
    """A client with a number of retries is not changed, and its tries are counted."""
    with serving([DOWN] * 40) as (url, requests), pytest.raises(Exception):  # noqa: B017
        run(url, max_retries=3)
    assert len(requests) == 4


@pytest.mark.parametrize("run", RUNS)
def test_another_model_answers(run):
    """A model out of quota, or refusing for load, or with too small a context, is replaced for this call."""
    for fault in (QUOTA, RATE, TOO_LONG):
        with serving([fault] * 40) as (first, requests), serving([]) as (second, others):
            assert run(first, second) == "the end", fault
        assert (len(requests), len(others)) == (1, 1), fault


def test_the_program_reads_why_strands_gave_up():
    """Used-up quota is no internal error."""
    with serving([QUOTA] * 40) as (url, _), pytest.raises(Exception) as raised:
        with_strands(url)
    assert raised.value.fault.code == "QUOTA_EXCEEDED"
