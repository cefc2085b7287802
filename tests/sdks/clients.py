"""
The SDKs as functions: each makes one call to a server, with the SDK's own retries off, and raises the SDK's exception.

`SDKS` maps a name to (the function, the vendors whose fixtures it is tried with).
"""

import asyncio
from functools import cache

CHAT = [{"role": "user", "content": "x"}]
COMPATIBLE = (
    *("openai", "azure-openai", "groq", "openrouter", "deepseek", "xai", "together", "vllm", "cerebras"),
    *("mistral", "google", "anthropic"),
)


@cache
def openai_client(url, retries=0):
    import openai

    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=retries)


def openai(url):
    openai_client(url).chat.completions.create(model="m", messages=CHAT)


@cache
def anthropic_client(url, retries=0):
    import anthropic

    return anthropic.Anthropic(base_url=url, api_key="k", max_retries=retries)


def anthropic(url):
    anthropic_client(url).messages.create(model="m", max_tokens=5, messages=CHAT)


@cache
def genai_client(url):
    from google import genai
    from google.genai import types

    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))


def google_genai(url):
    genai_client(url).models.generate_content(model="m", contents="x")


def google_api_core(url):
    import requests
    from google.api_core import exceptions

    response = requests.get(url, timeout=5)
    raise exceptions.from_http_response(response)


@cache
def botocore_client(service, url, retries=1):
    import botocore.session
    from botocore.config import Config

    session = botocore.session.get_session()
    session.set_credentials("k", "s")
    config = Config(retries={"total_max_attempts": retries, "mode": "standard"}) if retries else None
    return session.create_client(service, region_name="us-east-1", endpoint_url=url, config=config)


def dynamodb(url):
    botocore_client("dynamodb", url).get_item(TableName="t", Key={"k": {"S": "1"}})


def s3(url):
    botocore_client("s3", url).get_object(Bucket="b", Key="k")


def ec2(url):
    botocore_client("ec2", url).describe_instances()


def aiobotocore(url):
    from aiobotocore.session import get_session
    from botocore.config import Config

    async def call():
        config = Config(retries={"total_max_attempts": 1})
        keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
        session = get_session()
        async with session.create_client(
            "dynamodb", "us-east-1", endpoint_url=url, config=config, **keys
        ) as client:
            await client.get_item(TableName="t", Key={"k": {"S": "1"}})

    asyncio.run(call())


def azure_core(url):
    from azure.core import PipelineClient
    from azure.core.exceptions import HttpResponseError
    from azure.core.rest import HttpRequest

    with PipelineClient(base_url=url, policies=[]) as client:
        response = client.send_request(HttpRequest("GET", url))
        if response.status_code >= 400:
            raise HttpResponseError(response=response)


@cache
def mistral_client(url):
    from mistralai.client import Mistral

    return Mistral(api_key="k", server_url=url)


def mistralai(url):
    mistral_client(url).chat.complete(model="m", messages=CHAT)


def cohere(url):
    import cohere

    options = {"max_retries": 0}
    cohere.ClientV2(api_key="k", base_url=url).chat(model="m", messages=CHAT, request_options=options)


def stripe(url, **options):
    import stripe

    options = options or {"max_network_retries": 0}
    client = stripe.StripeClient("sk_test_x", base_addresses={"api": url}, **options)
    client.v1.charges.create({"amount": 1, "currency": "usd"})


def twilio(url):
    from twilio.http.http_client import TwilioHttpClient
    from twilio.rest import Client

    class Local(TwilioHttpClient):
        def request(self, method, address, **more):
            return super().request(method, f"{url}/x", **more)

    Client("AC0", "t", http_client=Local()).messages.create(to="+1", from_="+2", body="x")


def slack_sdk(url):
    from slack_sdk import WebClient

    WebClient(token="t", base_url=f"{url}/api/", retry_handlers=[]).chat_postMessage(channel="c", text="x")


def pygithub(url, **more):
    import github
    from github.Requester import Requester

    Requester.resetConnectionClasses()  # the recipe of docs/sdks.md injects others for the whole process
    github.Github(base_url=url, **{"retry": None, **more}).get_repo("o/r")


@cache
def kubernetes_client(url):
    from kubernetes import client

    configuration = client.Configuration(host=url)
    configuration.retries = False
    return client.CoreV1Api(client.ApiClient(configuration))


def kubernetes(url):
    kubernetes_client(url).read_namespaced_pod("p", "n")


def elasticsearch(url, retries=0):
    from elasticsearch import Elasticsearch

    client = Elasticsearch(url, max_retries=retries, retry_on_timeout=False)
    try:
        client.search(index="i")
    finally:
        client.close()


def docker(url):
    import docker

    client = docker.DockerClient(base_url=url.replace("http", "tcp"), version="1.43")
    client.images.get("x")


@cache
def httpx_client():
    import httpx

    return httpx.Client()


def httpx(url):
    httpx_client().get(url).raise_for_status()


def requests(url):
    import requests

    requests.get(url, timeout=5).raise_for_status()


def aiohttp(url):
    import aiohttp

    async def call():
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            response.raise_for_status()

    asyncio.run(call())


SDKS = {
    "openai": (openai, COMPATIBLE),
    "anthropic": (anthropic, ("anthropic",)),
    "google-genai": (google_genai, ("google",)),
    "google-api-core": (google_api_core, ("google",)),
    "botocore": (dynamodb, ("aws",)),
    "aiobotocore": (aiobotocore, ("aws",)),
    "s3": (s3, ("aws",)),
    "ec2": (ec2, ("aws",)),
    "azure-core": (azure_core, ("azure", "microsoft-graph")),
    "mistralai": (mistralai, ("mistral",)),
    "cohere": (cohere, ("cohere",)),
    "stripe": (stripe, ("stripe",)),
    "twilio": (twilio, ("twilio",)),
    "slack-sdk": (slack_sdk, ("slack",)),
    "PyGithub": (pygithub, ("github",)),
    "kubernetes": (kubernetes, ("kubernetes",)),
    "elasticsearch": (elasticsearch, ("elasticsearch",)),
    "docker": (docker, ()),
    "httpx": (httpx, ("github", "stripe", "google", "notion")),
    "requests": (requests, ("github", "stripe", "google", "notion")),
    "aiohttp": (aiohttp, ()),
}
