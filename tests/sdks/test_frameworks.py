"""Frameworks wrap the exceptions of SDKs: the fault is that of the answer."""

import asyncio

import pytest

from amends import from_exception
from tests.sdks.clients import CHAT
from tests.sdks.server import Answer, serving


def body(code, kind="invalid_request_error", param=None):
    return {"error": {"message": "x", "type": kind, "param": param, "code": code}}


CASES = [
    (Answer(429, body("insufficient_quota", "insufficient_quota")), "QUOTA_EXCEEDED", "terminal"),
    (Answer(429, body("rate_limit_exceeded", "tokens"), {"retry-after": "7"}), "RATE_LIMITED", "transient"),
    (Answer(503, body(None, "server_error")), "SERVICE_UNAVAILABLE", "transient"),
    (Answer(400, body("context_length_exceeded", param="messages")), "CONTEXT_TOO_LONG", "correctable"),
    (Answer(401, body("invalid_api_key")), "UNAUTHENTICATED", "correctable"),
    (Answer(400, body("content_policy_violation")), "CONTENT_REFUSED", "correctable"),
]


def litellm(url):
    litellm = pytest.importorskip("litellm")
    litellm.completion("openai/m", CHAT, api_base=f"{url}/v1", api_key="k", max_retries=0, num_retries=0)


def pydantic_ai(url):
    pytest.importorskip("pydantic_ai")
    import openai
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))).run_sync("x")


def langchain(url):
    pytest.importorskip("langchain_openai")
    from langchain_openai import ChatOpenAI

    ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0).invoke("x")


def langgraph(url):
    pytest.importorskip("langgraph")
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(dict)
    graph.add_node("call", lambda state: langchain(url))
    graph.add_edge(START, "call")
    graph.add_edge("call", END)
    graph.compile().invoke({})


def openai_agents(url):
    agents = pytest.importorskip("agents")
    import openai

    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    model = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
    agents.set_tracing_disabled(disabled=True)
    asyncio.run(agents.Runner.run(agents.Agent("a", model=model), "x"))


def instructor(url):
    instructor = pytest.importorskip("instructor")
    import openai
    from pydantic import BaseModel

    class Reply(BaseModel):
        text: str

    client = instructor.from_openai(openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0))
    client.chat.completions.create(model="m", messages=CHAT, response_model=Reply, max_retries=1)


@pytest.mark.parametrize(
    "call",
    [litellm, pydantic_ai, langchain, langgraph, openai_agents, instructor],
    ids=lambda call: call.__name__,
)
def test_a_wrapped_exception(call):
    """Code and recovery are those of the answer, whatever the framework raises."""
    wrong = []
    with serving(Answer(500)) as server:
        for answer, code, recovery in CASES:
            server.script = [answer]
            try:
                call(server.url)
            except Exception as error:
                fault = from_exception(error)
                got = fault.code, fault.recovery.value, type(error).__name__
            else:
                got = (None,)
            if got[:2] != (code, recovery):
                wrong.append((code, got))
    assert wrong == []
