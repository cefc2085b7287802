"""Every SDK that speaks HTTP, without an answer: nothing listens, time-outs, a connection that is reset or cut."""

import asyncio

import pytest

from tests.sdks import clients
from tests.sdks.checks import difference, raised
from tests.sdks.server import Answer, closed_port, serving, silent_port

SHORT = 0.4
"""Seconds until the time-outs."""


def openai(url):
    import openai as sdk

    client = sdk.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=SHORT)
    client.chat.completions.create(model="m", messages=clients.CHAT)


def anthropic(url):
    import anthropic as sdk

    client = sdk.Anthropic(base_url=url, api_key="k", max_retries=0, timeout=SHORT)
    client.messages.create(model="m", max_tokens=5, messages=clients.CHAT)


def google_genai(url):
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url, timeout=int(SHORT * 1000))
    client = genai.Client(api_key="k", http_options=options)  # closed when it is collected
    client.models.generate_content(model="m", contents="x")


def mistralai(url):
    from mistralai.client import Mistral

    Mistral(api_key="k", server_url=url, timeout_ms=int(SHORT * 1000)).chat.complete(
        model="m", messages=clients.CHAT
    )


def cohere(url):
    import cohere as sdk

    client = sdk.ClientV2(api_key="k", base_url=url, timeout=SHORT)
    client.chat(model="m", messages=clients.CHAT, request_options={"max_retries": 0})


def litellm(url):
    import litellm as sdk

    sdk.completion(
        "openai/m", clients.CHAT, api_base=f"{url}/v1", api_key="k", max_retries=0, num_retries=0, timeout=SHORT
    )  # fmt: skip


def litellm_anthropic(url):
    import litellm as sdk

    sdk.completion(
        "anthropic/m", clients.CHAT, api_base=url, api_key="k", max_retries=0, num_retries=0, timeout=SHORT
    )  # fmt: skip


def pydantic_ai(url):
    import openai as sdk
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=SHORT)
    Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))).run_sync("x")


def langchain(url):
    from langchain_openai import ChatOpenAI

    ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=SHORT).invoke("x")


def openai_agents(url):
    import agents
    import openai as sdk

    client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=SHORT)
    model = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
    agents.set_tracing_disabled(disabled=True)
    asyncio.run(agents.Runner.run(agents.Agent("a", model=model), "x"))


def instructor(url):
    import instructor as sdk
    import openai
    from pydantic import BaseModel

    class Reply(BaseModel):
        text: str

    inner = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=SHORT)
    client = sdk.from_openai(inner)
    client.chat.completions.create(model="m", messages=clients.CHAT, response_model=Reply, max_retries=1)


def botocore(url):
    import botocore.session
    from botocore.config import Config

    session = botocore.session.get_session()
    session.set_credentials("k", "s")
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=SHORT, read_timeout=SHORT)
    client = session.create_client("dynamodb", region_name="us-east-1", endpoint_url=url, config=config)
    client.put_item(TableName="t", Item={"k": {"S": "1"}})


def aiobotocore(url):
    from aiobotocore.session import get_session
    from botocore.config import Config

    async def call():
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=SHORT, read_timeout=SHORT)
        keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
        async with get_session().create_client(
            "dynamodb", "us-east-1", endpoint_url=url, config=config, **keys
        ) as client:
            await client.put_item(TableName="t", Item={"k": {"S": "1"}})

    asyncio.run(call())


def azure_core(url):
    from azure.core import PipelineClient
    from azure.core.rest import HttpRequest

    with PipelineClient(base_url=url, policies=[]) as client:
        client.send_request(HttpRequest("PUT", url), connection_timeout=SHORT, read_timeout=SHORT).read()


def azure_core_async(url):
    from azure.core import AsyncPipelineClient
    from azure.core.rest import HttpRequest

    async def call():
        async with AsyncPipelineClient(base_url=url, policies=[]) as client:
            request = HttpRequest("PUT", url)
            response = await client.send_request(request, connection_timeout=SHORT, read_timeout=SHORT)
            await response.read()

    asyncio.run(call())


def google_api_core(url):
    import requests as sdk
    from google.api_core import retry

    retry.Retry(predicate=lambda error: False)(sdk.post)(url, timeout=SHORT)


def stripe(url):
    import stripe as sdk

    client = sdk.StripeClient(
        "sk_test_x", base_addresses={"api": url}, max_network_retries=0, http_client=sdk.RequestsClient(timeout=SHORT)
    )  # fmt: skip
    client.v1.charges.create({"amount": 1, "currency": "usd"})


def twilio(url):
    from twilio.http.http_client import TwilioHttpClient
    from twilio.rest import Client

    class Local(TwilioHttpClient):
        def request(self, method, address, **more):
            return super().request(method, f"{url}/x", **{**more, "timeout": SHORT})

    Client("AC0", "t", http_client=Local()).messages.create(to="+1", from_="+2", body="x")


def slack_sdk(url):
    from slack_sdk import WebClient

    client = WebClient(token="t", base_url=f"{url}/api/", retry_handlers=[], timeout=SHORT)
    client.chat_postMessage(channel="c", text="x")


def slack_sdk_async(url):
    from slack_sdk.web.async_client import AsyncWebClient

    async def call():
        client = AsyncWebClient(token="t", base_url=f"{url}/api/", retry_handlers=[], timeout=SHORT)
        await client.chat_postMessage(channel="c", text="x")

    asyncio.run(call())


def pygithub(url):
    import github
    from github.Requester import Requester

    Requester.resetConnectionClasses()
    github.Github(base_url=url, retry=None, timeout=1).get_repo("o/r")


def kubernetes(url):
    clients.kubernetes_client(url).create_namespaced_pod("n", {}, _request_timeout=SHORT)


def elasticsearch(url):
    from elasticsearch import Elasticsearch

    client = Elasticsearch(url, max_retries=0, request_timeout=SHORT)
    try:
        client.index(index="i", document={})
    finally:
        client.close()


def docker(url):
    import docker as sdk

    client = sdk.DockerClient(base_url=url.replace("http", "tcp"), version="1.43", timeout=SHORT)
    client.api.create_container("x")


def httpx(url):
    import httpx as sdk

    sdk.post(url, timeout=SHORT)


def requests(url):
    import requests as sdk

    sdk.post(url, timeout=SHORT)


def urllib3(url):
    import urllib3 as sdk

    sdk.PoolManager().request("POST", url, timeout=SHORT, retries=False)


def urllib3_retries(url):
    import urllib3 as sdk

    sdk.PoolManager().request("POST", url, timeout=SHORT)


def aiohttp(url):
    import aiohttp as sdk

    async def call():
        timeout = sdk.ClientTimeout(sock_connect=SHORT, sock_read=SHORT)
        async with sdk.ClientSession(timeout=timeout) as session, session.post(url) as response:
            await response.read()

    asyncio.run(call())


def aiohttp_total(url):
    import aiohttp as sdk

    async def call():
        async with sdk.ClientSession(timeout=sdk.ClientTimeout(total=SHORT)) as session:
            await (await session.post(url)).read()

    asyncio.run(call())


def websockets(url):
    from websockets.sync.client import connect

    connect(url.replace("http", "ws"), open_timeout=SHORT)


CALLS = (
    *(openai, anthropic, google_genai, mistralai, cohere, litellm, litellm_anthropic, pydantic_ai, langchain),
    *(
        openai_agents,
        instructor,
        botocore,
        aiobotocore,
        azure_core,
        azure_core_async,
        google_api_core,
        stripe,
    ),
    *(twilio, slack_sdk, slack_sdk_async, pygithub, kubernetes, elasticsearch, docker, httpx, requests),
    *(urllib3, urllib3_retries, aiohttp, aiohttp_total, websockets),
)
BODY = b'{"ok": true, "id": "' + b"x" * 20000 + b'"}'
ELASTIC = {"X-Elastic-Product": "Elasticsearch"}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_without_an_answer(call):
    """`executed` is "no" only if the request cannot have arrived."""
    found = {}

    def check(name, url, kind, **more):
        error = raised(call, url)
        if differs := difference(error, kind, **more):
            found[name] = (repr(error)[:200], differs)

    check("refused", f"http://127.0.0.1:{closed_port()}", "refused")
    with silent_port() as port:
        check("connect time-out", f"http://127.0.0.1:{port}", None, **SLOW.get(call.__name__, NOT_STARTED))
    for name, cut, kind in (("read time-out", -2, "timeout"), ("reset", -1, "lost"), ("cut", 100, "lost")):
        if (call.__name__, name) in NOT_RAISED:
            continue
        with serving(Answer(200, BODY, ELASTIC, cut=cut)) as server:
            check(name, server.url, kind)
    assert found == {}


NOT_STARTED = {"recovery": "transient", "executed": "no", "code": "TIMEOUT"}
MAYBE = {"recovery": "transient", "executed": "maybe", "code": "TIMEOUT"}
SLOW = {
    # Their one time-out covers connecting and reading, and the exception does not say which.
    **dict.fromkeys(("slack_sdk", "slack_sdk_async", "aiohttp_total", "websockets"), MAYBE),
}
NOT_RAISED = {("websockets", "cut"), ("websockets", "reset"), ("botocore", "cut"), ("aiobotocore", "cut")}
