"""A call with an option that does not exist names what was called and the option that is meant, in every public callable."""

import asyncio
import importlib
import re
from pathlib import Path

import fastapi
import flask
import httpx2
import pytest
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette

import amends.bindings.a2a
import amends.bindings.aiohttp
import amends.bindings.argparse
import amends.bindings.asgi
import amends.bindings.click
import amends.bindings.fastapi
import amends.bindings.fastmcp
import amends.bindings.flask
import amends.bindings.httpx
import amends.bindings.mcp
import amends.bindings.requests
import amends.bindings.starlette
from amends import Fault, FaultError, Operation, Policy, Upstream, decide, extract, recover, register
from amends.arcp import Runtime, connect
from amends.bindings.limits import Limited
from amends.core.wrong_calls import explains_wrong_calls
from amends.effects import Effects
from amends.errors import NotFoundError
from amends.http.cancellation import Cancellable
from amends.http.idempotency import Idempotent
from amends.http.idempotency_wsgi import IdempotentWSGI
from amends.process import arun, run
from amends.recovery import Options, recovering
from amends.tasks import Agent, Orchestrator, Request
from amends.vendors.registry import find


async def app(scope, receive, send):
    raise AssertionError


def plain(what):
    return what


POLICY = "policy=Policy(attempts=…)"
CASES = [
    (Policy, (), "max_attempts", "attempts"),
    (Policy, (), "retries", "attempts"),
    (Operation, (), "readonly", "read_only"),
    (Upstream, ("shop",), "service", "vendor"),
    (FaultError, (), "suggestion", "suggestions"),
    (NotFoundError, ("No",), "sugestions", "suggestions"),
    (amends.bindings.httpx.Transport, (), "retries", POLICY),
    (amends.bindings.httpx.AsyncTransport, (), "max_attempts", POLICY),
    (amends.bindings.requests.Adapter, (), "retries", POLICY),
    (amends.bindings.aiohttp.recovering, (), "attempts", POLICY),
    (amends.bindings.mcp.Client, (app,), "retries", POLICY),
    (amends.bindings.a2a.Client, ("https://agent.example",), "retries", POLICY),
    (amends.bindings.asgi.Problems, (app,), "page", "pages"),
    (amends.bindings.fastapi.install, (fastapi.FastAPI(),), "baseurl", "base_url"),
    (amends.bindings.starlette.install, (Starlette(),), "page", "pages"),
    (amends.bindings.flask.install, (flask.Flask("shop"),), "page", "pages"),
    (amends.bindings.mcp.guard, (MCPServer("shop"),), "prefix", "code_prefix"),
    (amends.bindings.fastmcp.guard, (MCPServer("shop"),), "prefix", "code_prefix"),
    (Limited, (app, "5/s"), "rout", "route"),
    (Idempotent, (app, "memory:"), "ttl", "expires_in"),
    (IdempotentWSGI, (app, "memory:"), "ttl", "expires_in"),
    (Cancellable, (app, "memory:"), "ttl", "expires_in"),
    (Orchestrator, (), "agent", "agents"),
    (Agent, ("shop",), "retries", POLICY),
    (Agent("shop").capability, (), "readonly", "read_only"),
    (Effects, ("memory:",), "leases", "lease"),
    (Effects("memory:").once, (), "ttl", "expires_in"),
    (run, (["true"],), "readonly", "read_only"),
    (arun, (["true"],), "retries", POLICY),
    (register, (KeyError,), "codes", "code"),
    (Fault, (), "suggestion", "suggestions"),
    (Options, (), "readonly", "read_only"),
    (recovering, (), "max_attempts", POLICY),
    (recovering, (), "readonly", "read_only"),
    (Runtime, (), "token", "tokens"),
    (connect, ("ws://agents.example",), "tokn", "token"),
    (connect, ("ws://agents.example",), "request_timout", "request_timeout"),
    (amends.bindings.a2a.guard, (app,), "codeprefix", "code_prefix"),
    (amends.bindings.click.main, (app,), "profil", "profile"),
    (amends.bindings.argparse.main, (app, app), "doc", "docs"),
    (extract, ({},), "vendr", "vendor"),
    (decide, (Fault(code="X"),), "polcy", "policy"),
    (Request, (), "retry_polcy", "retry_policy"),
]


def shown(call):
    name = getattr(call, "__qualname__", call.__class__.__name__)
    return {"Agent.capability": "Capability"}.get(name, name)


@pytest.mark.parametrize(
    ("call", "args", "wrong", "meant"), CASES, ids=[f"{shown(case[0])}-{case[2]}" for case in CASES]
)
def test_the_option_that_is_meant(call, args, wrong, meant):
    """The message has the public name, the wrong option and the right one."""

    async def awaited():
        await call(*args, **{wrong: 3})

    def made():
        result = call(*args, **{wrong: 3})
        return result(plain) if callable(result) else result

    with pytest.raises(TypeError) as caught:
        asyncio.run(awaited()) if call is arun else made()
    assert str(caught.value) == f"{shown(call)}() has no option {wrong!r}; use {meant}"


DOCS = Path(__file__).parents[1] / "docs"
RESULTS = {
    *(
        "Claim",
        "Client",
        "Context",
        "CredentialProvider",
        "Decision",
        "Event",
        "Grant",
        "Handle",
        "Hop",
        "Proof",
    ),
    *("Recovery", "RequestInfo", "Response", "RotatingCredentialProvider", "TaskEvent", "Ticket"),
}
"""What the library makes, and what has no options: protocols and enumerations."""
WITHOUT_OPTIONS = {
    *("open", "transaction_on"),  # the stores import nothing else of the package
    *("current_operation", "current_target", "exit_code", "exception_response", "is_retryable_by_default"),
    *(
        "check_url",
        "declare",
        "find",
        "judge_url",
        "redact",
        "redact_value",
        "rests_on",
        "safe_urls",
        "time_left",
    ),
}
"""Functions of values, and `declare`, which takes any member."""
OF_RECOVER = {"recover", "arecover"}
"""Their options may be those of the function."""


def documented():
    """The callables that the pages import."""
    found = set()
    for page in DOCS.glob("*.md"):
        for module, names in re.findall(
            r"(?m)^from (amends[\w.]*) import (\([^)]*\)|[^\n#]*)", page.read_text()
        ):
            found |= {(module, name) for name in re.findall(r"\w+", re.sub(r"\bas \w+|#.*", "", names))}
    for module, name in sorted(found):
        if name in RESULTS | WITHOUT_OPTIONS | OF_RECOVER:
            continue
        try:
            value = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue  # a framework that is not installed; tests/test_docs.py runs the pages
        if callable(value) and not (isinstance(value, type) and issubclass(value, BaseException)):
            yield name, value


def test_every_documented_callable_names_itself():
    """Generated from the pages: the message has the public name, and says which options there are."""
    silent = []
    for name, call in documented():
        try:
            made = call(no_such_option_zz=1)
            if asyncio.iscoroutine(made):
                asyncio.run(made)
            silent.append((name, "accepted"))
        except TypeError as error:
            if f"{getattr(call, '__name__', name)}() has no option 'no_such_option_zz'" not in str(error):
                silent.append((name, str(error)))
    assert silent == []


def test_a_misspelt_option_of_recover():
    """Other arguments go to the function, which does not know this one."""
    with pytest.raises(TypeError, match=r"recover has no option 'max_attempts': use policy=Policy"):
        recover(plain, "tea", max_attempts=3)
    with pytest.raises(TypeError) as caught:
        recover(plain, "tea", sugar=2)
    assert "recover has" not in str(caught.value)


def test_missing_and_positional_arguments():
    """The name is the one that the user wrote, and what can only be given by name is listed."""
    with pytest.raises(TypeError, match=r"^Idempotent\(\) missing 1 required positional argument: 'store'"):
        Idempotent(app)
    with pytest.raises(TypeError, match="; write code=, recovery=, executed= by name"):
        register(KeyError, "CONFLICT")


def test_an_error_inside_is_not_changed():
    """Only the call itself is explained."""

    @explains_wrong_calls
    def broken(what):
        return len(what, key=3)

    with pytest.raises(TypeError, match="len"):
        broken("tea")


@pytest.mark.parametrize("name", ["opnai", "open_ai", "antropic", "strip"])
def test_a_misspelt_vendor(name):
    """The nearest name is suggested instead of all of them."""
    answer = {"status": 400, "headers": {}, "body": {}}
    with pytest.raises(LookupError) as caught:
        extract(answer, "http", vendor=name)
    assert find(str(caught.value).rpartition("; use ")[2].partition(";")[0]) is not None


def test_values_of_an_enum():
    """All of them are in the message."""
    with pytest.raises(ValueError, match="transient, correctable, terminal, uncertain, not 'weird'"):
        Fault(code="X", recovery="weird")


async def test_a_transport_of_the_other_kind():
    """The error says which one to use, with and without a context."""
    of_plain, of_async = amends.bindings.httpx.Transport(), amends.bindings.httpx.AsyncTransport()
    with pytest.raises(TypeError, match=r"needs AsyncTransport\(\)"):
        await httpx2.AsyncClient(transport=of_plain).get("http://shop.example/")
    with pytest.raises(TypeError, match=r"needs AsyncTransport\(\)"):
        async with httpx2.AsyncClient(transport=of_plain):
            pass
    with pytest.raises(TypeError, match=r"needs Transport\(\)"):
        httpx2.Client(transport=of_async).get("http://shop.example/")
    with pytest.raises(TypeError, match=r"needs Transport\(\)"), httpx2.Client(transport=of_async):
        pass
