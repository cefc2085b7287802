"""
A secret in any field of a fault leaves through no binding that redacts.

The fields come from the class: a field added to Fault is tested in every binding without a change here.
"""

import asyncio
import json
import logging
import pickle
import subprocess
import sys
import types
import typing

import fastapi
import fastmcp
import flask
import httpx2
import mcp
import msgspec
import pytest
import structlog
from django.test import RequestFactory
from google.protobuf.json_format import MessageToJson
from mcp.server.mcpserver import MCPServer
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.applications import Starlette
from starlette.routing import Route

import amends.bindings.a2a
import amends.bindings.fastapi
import amends.bindings.fastmcp
import amends.bindings.flask
import amends.bindings.mcp
import amends.bindings.starlette
import amends.bindings.structlog
from amends import Fault, FaultError, encode
from amends.bindings import otel
from amends.bindings.asgi import Problems
from amends.bindings.django import ProblemMiddleware
from amends.bindings.tool_calls import ToolCalls
from amends.core.enums import Executed
from amends.core.fault import Origin
from amends.dialects.outgoing import FORMATS
from amends.recorder.clean import event_of
from amends.recovery import NONE, recover
from tests.bindings.agents import Agent, application, failing, request
from tests.each import each
from tests.http import django_site

assert django_site.settings.configured
SECRET = "hunter2Xq9"
TEXT = f"password={SECRET}"
NOT_TEXT = {"recovery", "actor", "executed", "origin"}
"""Closed enumerations, and `origin`, which is never written."""
UNCHANGED = {"intent"}
"""Leaves as it is (design section 6)."""


def with_secret(kind):
    """A value of a field's type that contains the secret; None for a type that holds no text."""
    if kind is str:
        return TEXT
    if kind is Fault:
        return Fault(code="X", message=TEXT)
    origin = typing.get_origin(kind)
    if origin in {typing.Union, types.UnionType}:
        return next((value for one in typing.get_args(kind) if (value := with_secret(one)) is not None), None)
    if origin is tuple:
        return (with_secret(typing.get_args(kind)[0]),)
    return {"note": TEXT, "deep": [{TEXT: TEXT}]} if origin is dict else None


FIELDS = {
    field.name: value
    for field in msgspec.structs.fields(Fault)
    if field.name not in NOT_TEXT | UNCHANGED and (value := with_secret(field.type)) is not None
}


def test_every_field_is_a_number_a_text_or_a_stated_exception():
    """A field of a new type does not slip through unnoticed."""
    numbers = {"retry_after", "max_retries", "status", "attempt", "max_attempts", "fatal", "in_doubt"}
    assert {field.name for field in msgspec.structs.fields(Fault)} == numbers | NOT_TEXT | UNCHANGED | set(
        FIELDS
    )
    assert {"code", "message", "details", "errors", "suggestions", "extensions"} <= set(FIELDS)


def error(field):
    facts = {"code": "CONFLICT", "message": "It changed", field: FIELDS[field]}
    return FaultError.from_fault(Fault(**facts))


async def over_http(app):
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        texts = []
        for accept in ("application/json", "text/html", "text/plain"):
            response = await client.get("/", headers={"accept": accept})
            texts.append(response.text + str(response.headers))
    return "".join(texts)


async def asgi(raised):
    async def app(scope, receive, send):
        raise raised

    return await over_http(Problems(app))


async def starlette(raised):
    async def page(request):
        raise raised

    app = Starlette(routes=[Route("/", page)])
    amends.bindings.starlette.install(app)
    return await over_http(app)


async def fast_api(raised):
    app = fastapi.FastAPI()
    amends.bindings.fastapi.install(app)

    @app.get("/")
    def page():
        raise raised

    return await over_http(app)


async def flask_app(raised):
    app = flask.Flask("shop")
    amends.bindings.flask.install(app)

    @app.get("/")
    def page():
        raise raised

    client = app.test_client()
    return "".join(
        client.get("/", headers={"accept": kind}).text for kind in ("application/json", "text/html")
    )


async def mcp_tool(raised):
    server = MCPServer("shop")

    @server.tool()
    def fails() -> str:
        raise raised

    amends.bindings.mcp.guard(server)
    async with mcp.Client(server) as client:
        return (await client.call_tool("fails", {})).model_dump_json()


async def fastmcp_tool(raised):
    server = fastmcp.FastMCP("shop")

    @server.tool
    def fails() -> str:
        raise raised

    amends.bindings.fastmcp.guard(server)
    async with fastmcp.Client(server) as client:
        return repr(await client.call_tool("fails", {}, raise_on_error=False))


async def a2a_agent(raised):
    app = application(amends.bindings.a2a.guard(Agent(failing(raised))))
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": json.loads(MessageToJson(request())),
    }
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://agent.invalid", headers={"A2A-Version": "1.0"}
    ) as client:
        response = await client.post("/rpc", json=body)
    assert "adcp_error" in response.text
    return response.text


# A bound command keeps file descriptor 1 for its answer until the process ends, so each one is a process.
COMMANDS = """
import os, pickle, sys
import click
from amends.bindings.click import main

for error in pickle.load(sys.stdin.buffer):
    for words in (["--output", "json"], ["--output", "problem"], []):
        child = os.fork()
        if child == 0:
            @click.command()
            def fails():
                raise error
            sys.argv[1:] = words
            main(fails)
        os.waitpid(child, 0)
"""


async def telemetry(raised):
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))

    def call():
        raise raised

    otel.instrument()
    try:
        with pytest.MonkeyPatch.context() as patch, tracers.get_tracer("t").start_as_current_span("request"):
            patch.setattr(otel.trace, "get_tracer", tracers.get_tracer)
            with pytest.raises(FaultError):
                await asyncio.to_thread(recover, call, policy=NONE)
    finally:
        otel.uninstrument()
    spans = exporter.get_finished_spans()
    assert spans
    return "".join(span.to_json() for span in spans)


async def recorded(raised):
    facts = {"name": TEXT, "url": f"https://shop.example/?{TEXT}", "facts": {"note": TEXT}}
    return msgspec.json.encode(event_of(0.0, "call", "gave-up", raised.fault, facts)).decode()


async def model_text(raised):
    """What the bindings for agent frameworks show to a model."""

    def call():
        raise raised

    return ToolCalls().run("run").call("tool", {}, call).text


BINDINGS = [
    *(asgi, starlette, fast_api, flask_app, mcp_tool, fastmcp_tool, a2a_agent, telemetry, recorded),
    model_text,
]


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("field", sorted(FIELDS))
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_secret_leaves_through_no_binding(binding, field):
    """A19: in whatever field a producer put it."""
    text = await binding(error(field))
    assert text
    assert SECRET not in text


async def django_view(raised):
    def view(request):
        raise AssertionError("process_exception is called without the view")

    middleware = ProblemMiddleware(view)
    answers = [
        middleware.process_exception(RequestFactory(HTTP_ACCEPT=accept).get("/"), raised)
        for accept in ("application/json", "text/html", "text/markdown")
    ]
    return "".join(answer.content.decode() + str(answer.headers) for answer in answers)


async def structlog_record(raised):
    def call():
        raise raised

    amends.bindings.structlog.install()
    try:
        with structlog.testing.capture_logs() as records, pytest.raises(FaultError):
            recover(call, policy=NONE)
    finally:
        amends.bindings.structlog.remove()
    assert records
    return repr(records)


async def server_span(raised):
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    with tracers.get_tracer("t").start_as_current_span("request"):
        await asgi(raised)
    return "".join(span.to_json() for span in exporter.get_finished_spans())


CREDENTIALS = {
    "password": TEXT,
    "json": f'{{"password": "{SECRET}"}}',
    "bearer": f"Bearer {SECRET}aB3dE5fG7hI9jK1l",
    "cookie": f"Cookie: sessionid={SECRET}",
    "dsn": f"postgresql://app:{SECRET}@db.example.com/shop",
    "connection": f"Server=db;User Id=sa;Password={SECRET};",
    "user": f"https://app:{SECRET}@shop.example/docs",
    "query": f"https://shop.example/back?access_token={SECRET}",
    "fragment": f"/back#access_token={SECRET}",
    "key": f"sk-proj-{SECRET}abcdef0123456789ABCDEF",
}
INTERNALS = {
    "path": f"/srv/app/{SECRET}/settings.py",
    "sql": f"SELECT * FROM users WHERE name = '{SECRET}'",
    "trace": f'File "/srv/app/{SECRET}.py", line 3, in pay',
}
IDENTIFIERS = {"code", "vocabulary", "strategy", "field", "trace_id", "type", "doc_uri", "instance"}
"""Identifiers and URLs lose credentials only (`dialects/outgoing.py`)."""


def places(kind, text):
    """Values of a field's type with the text in every place that a value of this type has."""
    if kind is str:
        return [text]
    if kind is Fault:
        part = Fault(code="X", message=text, details={"note": text}, suggestions=(text,), user_message=text)
        return [part, Fault(code="Y", message="Two things", errors=(part,))]
    origin = typing.get_origin(kind)
    if origin in {typing.Union, types.UnionType}:
        return [value for one in typing.get_args(kind) for value in places(one, text)]
    if origin is tuple:
        return [(value,) for value in places(typing.get_args(kind)[0], text)]
    if origin is not dict:
        return []
    inside = [
        text,
        [{"b": ({"c": text},)}],
        text.encode(),
        {text},
        ValueError(text),
        Fault(code="X", message=text),
    ]
    return [*({"note": value} for value in inside), {text: "x"}]


def faults():
    """Every secret in every place of every field, with a description."""
    for field in msgspec.structs.fields(Fault):
        if field.name in FIELDS:
            texts = CREDENTIALS if field.name in IDENTIFIERS else CREDENTIALS | INTERNALS
            for name, text in texts.items():
                for value in places(field.type, text):
                    yield (
                        f"{name} in {field.name}: {value!r}",
                        Fault(**{"code": "CONFLICT", "message": "It changed", field.name: value}),
                        name,
                    )


class AllRecords(logging.Handler):
    """Keeps the text of every record of ours, with its extra members."""

    def __init__(self):
        super().__init__(level=0)
        self.records = []

    def emit(self, record):
        if record.name.startswith("amends"):
            self.records.append(repr({**record.__dict__, "exc_info": None, "text": record.getMessage()}))


@pytest.mark.parametrize(
    "binding",
    [asgi, starlette, flask_app, django_view, server_span, structlog_record, recorded, model_text],
)
async def test_no_kind_of_secret_leaves_from_any_place(binding, caplog):
    """A19: passwords, tokens, addresses, paths and SQL in every place of every field; neither do they reach our log."""
    caplog.set_level(logging.DEBUG, logger="amends")
    kept = AllRecords()
    logging.getLogger().addHandler(kept)
    tried = 0
    try:
        for description, fault, name in faults():
            if binding is model_text and name in INTERNALS:
                continue  # an agent's own model may read them
            tried += 1
            text = await binding(FaultError.from_fault(fault))
            assert SECRET not in text, description
            assert not any(SECRET in record for record in kept.records), description
            kept.records.clear()
            caplog.clear()
    finally:
        logging.getLogger().removeHandler(kept)
    assert tried > 200


SUGGESTION = "Choose a day after the first of March"
SHOWN = [asgi, starlette, fast_api, flask_app, mcp_tool, fastmcp_tool, a2a_agent, recorded, model_text]


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("binding", SHOWN)
async def test_suggestions_leave_through_every_binding(binding):
    """What the caller can do about a failure reaches the caller. Telemetry has the code and the decision only."""
    fault = Fault(code="VALIDATION_ERROR", message="It is closed", suggestions=(SUGGESTION,))
    assert SUGGESTION in await binding(FaultError.from_fault(fault))


def test_suggestions_leave_through_every_output_of_a_command():
    """The envelope, the problem document and the text on a terminal."""
    fault = Fault(code="VALIDATION_ERROR", message="It is closed", suggestions=(SUGGESTION,))
    raised = pickle.dumps([FaultError.from_fault(fault)])
    done = subprocess.run([sys.executable, "-c", COMMANDS], input=raised, capture_output=True)
    assert (done.stdout + done.stderr).count(SUGGESTION.encode()) >= 3


def test_a_secret_leaves_through_no_command():
    """The envelope, the problem document and the text on a terminal."""
    errors = [error(field) for field in sorted(FIELDS)]
    done = subprocess.run([sys.executable, "-c", COMMANDS], input=pickle.dumps(errors), capture_output=True)
    assert done.stdout.count(b'"ok"') == len(errors) <= done.stdout.count(b'"is_retriable"')
    assert done.stderr.count(b"\n") >= len(errors)
    assert SECRET.encode() not in done.stdout + done.stderr


@each("field", sorted(FIELDS))
@each("format", ["problem", "adcp", "envelope"])
def test_a_secret_leaves_in_no_format(format, field):
    """A19: the formats that redact, also for a fault that was received in another one."""
    assert FORMATS[format]
    fault = error(field).fault
    received = msgspec.structs.replace(fault, origin=Origin("elsewhere"), executed=Executed.NO)
    for one in (fault, received):
        assert SECRET not in json.dumps(encode(one, format))
