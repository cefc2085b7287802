"""The recipes of docs/sdks.md, and the calls that SDKs make by default and with them."""

import re
import time
from pathlib import Path

import pytest

from amends import from_exception
from tests.sdks import clients
from tests.sdks.server import Answer, serving

PAGE = Path(__file__).parents[2] / "docs" / "sdks.md"
TEXT = PAGE.read_text()
OPENAI = "invalid_request_error"
GITHUB = {"x-github-request-id": "r"}


def openai(status, code, kind=OPENAI):
    return Answer(status, {"error": {"message": "x", "type": kind, "param": None, "code": code}})


def anthropic(status, kind):
    return Answer(status, {"type": "error", "error": {"type": kind, "message": "x"}})


def google(status, name, quota=None):
    details = (
        [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}]
        if quota
        else []
    )
    return Answer(status, {"error": {"code": status, "status": name, "message": "x", "details": details}})


def stripe(status, code, kind):
    return Answer(status, {"error": {"message": "x", "type": kind, "code": code}})


def slack(word, status=200, **headers):
    return Answer(status, {"ok": False, "error": word}, headers)


def github(status, page, **headers):
    body = {"message": "x", "documentation_url": f"https://docs.github.com/{page}"}
    return Answer(status, body, {**GITHUB, **headers})


LIMITED = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}
# SDK → its answers when it is out of quota, asked to slow down, overloaded, and given a request that cannot fit.
FAILURES = {
    "openai": (
        *(
            openai(429, "insufficient_quota", "insufficient_quota"),
            openai(429, "rate_limit_exceeded", "tokens"),
        ),
        *(openai(503, None, "server_error"), openai(400, "context_length_exceeded")),
    ),
    "anthropic": (
        *(anthropic(402, "billing_error"), anthropic(429, "rate_limit_error")),
        *(anthropic(529, "overloaded_error"), anthropic(413, "request_too_large")),
    ),
    "google-genai": (
        *(
            google(429, "RESOURCE_EXHAUSTED", "RequestsPerDay"),
            google(429, "RESOURCE_EXHAUSTED", "RequestsPerMinute"),
        ),
        *(google(503, "UNAVAILABLE"), google(400, "INVALID_ARGUMENT")),
    ),
    "stripe": (
        *(stripe(400, "balance_insufficient", OPENAI), stripe(429, "rate_limit", OPENAI)),
        *(stripe(503, None, "api_error"), stripe(400, "amount_too_large", OPENAI)),
    ),
    "slack-sdk": (
        *(slack("message_limit_exceeded"), slack("ratelimited", 429, **{"Retry-After": "1"})),
        *(slack("internal_error"), slack("msg_too_long")),
    ),
    "PyGithub": (
        None,
        github(403, "rest/using-the-rest-api/rate-limits-for-the-rest-api", **LIMITED),
        *(github(503, "rest"), github(422, "rest/repos/contents")),
    ),
}


def recipe(name, url):
    """Return the recipe of a section as a function that makes its call to a server."""
    code = re.search(
        rf"^## {re.escape(name)}\n.*?^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE
    ).group(1)
    code = re.sub(r"https://[a-z.]+(?=[/\"])", url, code)
    return lambda: exec(compile(code, name, "exec"), {"__name__": "recipe"})


def default(name, url):
    """Return the same call with the SDK's own defaults."""
    import openai as openai_sdk
    from anthropic import Anthropic
    from github import Github
    from github.Requester import Requester
    from slack_sdk import WebClient

    if name == "openai":
        client = openai_sdk.OpenAI(base_url=f"{url}/v1", api_key="k")
        return lambda: client.chat.completions.create(model="m", messages=clients.CHAT)
    if name == "anthropic":
        made = Anthropic(base_url=url, api_key="k")
        return lambda: made.messages.create(model="m", max_tokens=1, messages=clients.CHAT)
    if name == "stripe":
        return lambda: clients.stripe(url, client_id=None)
    if name == "slack-sdk":
        return lambda: WebClient(token="t", base_url=f"{url}/api/").chat_postMessage(channel="c", text="x")
    if name == "PyGithub":
        Requester.resetConnectionClasses()
        return lambda: Github(base_url=url).get_repo("o/r")
    return lambda: clients.google_genai(url)


def calls(make, name, answer):
    """Return the number of calls that reach the server, and the exception."""
    with serving(answer) as server:
        call = make(name, server.url)
        with pytest.raises(Exception) as caught:
            call()
        return len(server.requests), caught.value


@pytest.fixture
def quick(monkeypatch, amends_clock):
    """Nothing waits: neither the SDKs nor we."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "k")


@pytest.mark.parametrize("name", FAILURES)
def test_a_recipe(name, quick):
    """Money and refusals reach the service once, the SDK's own exception is raised, and the page has the figures."""
    row = []
    for answer in FAILURES[name]:
        if answer is None:
            row.append("–")
            continue
        before, _ = calls(default, name, answer)
        after, error = calls(recipe, name, answer)
        assert not type(error).__module__.startswith("amends")
        fault = from_exception(error)
        assert after == 1 or fault.recovery.value == "transient"
        row.append(f"{before} → {after}")
    line = f"| {name} | {' | '.join(row)} |"
    assert line in TEXT, f"docs/sdks.md needs: {line}"
