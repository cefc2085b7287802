"""A task group with two failures is the same failure in every binding (`amends.foreign.groups`)."""

import asyncio
import json
import pickle
import subprocess
import sys

import pytest
from litestar import Litestar
from litestar import get as litestar_get
from quart import Quart

from amends import extract
from amends.arcp import Runtime, connect
from amends.bindings.asgi import Problems
from amends.errors import (
    ConflictError,
    PermissionDeniedError,
    RateLimitedError,
    ServiceUnavailableError,
    ValidationError,
)
from amends.http.batch import run
from amends.tasks import Agent
from tests.bindings import test_one_way_out as ways


def typed():
    return [ValidationError("No day", field="/day"), ValidationError("No seat", field="/seat")]


def pair(*classes):
    return [cls() for cls in classes]


async def task_group(parts):
    """Raise the parts as an `asyncio.TaskGroup` does."""

    async def fail(part):
        raise part

    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(fail(part))


async def raised(parts):
    with pytest.raises(ExceptionGroup) as caught:
        await task_group(parts)
    return caught.value


async def quart_app(error):
    app = Quart("shop")

    @app.get("/")
    async def page():
        raise error

    return await ways.over_http(Problems(app))


async def litestar_app(error):
    @litestar_get("/")
    async def page() -> None:
        raise error

    return await ways.over_http(Problems(Litestar([page], logging_config=None)))


HTTP = [
    *(ways.asgi, ways.starlette, ways.fast_api, ways.flask_app, ways.django_view, quart_app, litestar_app),
]
MIXED = [
    ((ValidationError, PermissionDeniedError), "PERMISSION_DENIED", "terminal"),
    ((RateLimitedError, ServiceUnavailableError), "RATE_LIMITED", "transient"),
    ((ServiceUnavailableError, ConflictError), "CONFLICT", "correctable"),
    ((ValidationError, KeyError), "VALIDATION_ERROR", "correctable"),
    ((ServiceUnavailableError, KeyError), "INTERNAL_ERROR", "uncertain"),
]


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("binding", HTTP)
async def test_over_http(binding):
    """The same code: that code, its status and every field; different ones: M1's row for nested errors."""
    document = json.JSONDecoder().raw_decode(await binding(await raised(typed())))[0]
    assert (document["code"], document["status"], document["is_retriable"]) == (
        "VALIDATION_ERROR",
        422,
        False,
    )
    assert [part["field"] for part in document["errors"]] == ["/day", "/seat"]
    assert [part["detail"] for part in document["errors"]] == ["No day", "No seat"]
    for classes, code, recovery in MIXED:
        document = json.JSONDecoder().raw_decode(await binding(await raised(pair(*classes))))[0]
        assert (document["code"], document["recovery"], len(document["errors"])) == (code, recovery, 2), (
            classes
        )


async def test_in_a_batch():
    """The failed item is the joined failure."""

    async def create(item):
        await task_group(typed())

    fault = (await run([1], create)).items[0].fault
    assert (fault.code, fault.instance) == ("VALIDATION_ERROR", "batch-item-0")
    assert [part.field for part in fault.errors] == ["/day", "/seat"]


async def test_of_a_command():
    """The envelope has every field, and the exit code is that of the joined failure."""
    groups = [await raised(typed()), *[await raised(pair(*classes)) for classes, _, _ in MIXED]]
    done = subprocess.run(
        [sys.executable, "-c", ways.COMMANDS], input=pickle.dumps(groups), capture_output=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if b'"ok"' in line]
    found = [(line["error"]["code"], line["error"]["recovery"]) for line in lines]
    assert found == [("VALIDATION_ERROR", "correctable"), *[(code, recovery) for _, code, recovery in MIXED]]
    assert [part["field"] for part in lines[0]["error"]["errors"]] == ["/day", "/seat"]


async def test_of_an_interrupted_command():
    """A group with an interrupt is an interrupt."""
    program = (
        "from amends.bindings.guard import guard\n"
        "def main():\n"
        "    raise BaseExceptionGroup('g', [ValueError(), KeyboardInterrupt()])\n"
        "guard(main, piped='json')()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 130


async def test_of_a_task():
    """The error of a failed task has the joined code."""
    agent = Agent("shop")

    @agent.capability
    async def book(payload):
        await task_group(typed())

    @agent.capability
    async def pay(payload):
        await task_group(pair(ValidationError, PermissionDeniedError))

    async def error_of(capability):
        request = {"id": "1", "type": capability, "payload": {}}
        return (await agent.handle(request)).error

    error = await error_of("book")
    assert (error.code, error.recovery, error.field) == ("INVALID_INPUT", "correctable", "/day")
    assert [part.field for part in error.errors] == ["/day", "/seat"]
    assert (await error_of("pay")).recovery == "terminal"


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("binding", [ways.mcp_tool, ways.fastmcp_tool])
async def test_of_a_tool(binding):
    """AdCP: the code of both, correctable, and both parts beside the error."""
    answer = await binding(await raised(typed()))
    assert "VALIDATION_ERROR" in answer
    assert "correctable" in answer
    assert "terminal" not in answer
    assert "day" in answer
    assert "seat" in answer


@pytest.mark.usefixtures("quiet")
async def test_of_an_agent():
    """A2A: the code of both, correctable, with both parts."""
    task = json.loads(await ways.a2a_agent(await raised(typed())))["result"]["task"]
    fault = extract(task, "a2a")
    assert (fault.code, fault.recovery, fault.field) == ("VALIDATION_ERROR", "correctable", "day")
    assert [part.field for part in fault.errors] == ["day", "seat"]


async def test_of_a_job():
    """ARCP: the joined code, and the log has no unexpected exception."""
    runtime = Runtime(tokens={"secret": "alice"})

    async def book(input, ctx):
        await task_group(typed())

    async def pay(input, ctx):
        await task_group([ServiceUnavailableError(), KeyError("secret")])

    runtime.register_agent("book", book)
    runtime.register_agent("pay", pay)
    async with connect(runtime, token="secret") as client:
        codes = []
        for name in ("book", "pay"):
            job = await client.submit(name, {})
            with pytest.raises(Exception) as caught:
                await job.done
            codes.append(caught.value.fault.code)
            assert "secret" not in str(caught.value.fault)
    assert codes == ["INVALID_REQUEST", "INTERNAL_ERROR"]


OVER_TOOLS = [
    ((ValidationError, PermissionDeniedError), "PERMISSION_DENIED", "terminal"),
    ((RateLimitedError, ServiceUnavailableError), "RATE_LIMITED", "transient"),
    ((ServiceUnavailableError, ConflictError), "CONFLICT", "correctable"),
    ((ServiceUnavailableError, KeyError), "SERVICE_UNAVAILABLE", "terminal"),
]
"""AdCP has no "uncertain": a bug is terminal there (M7), and so is a group with one."""


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("classes", "code", "recovery"), OVER_TOOLS)
async def test_different_failures_of_tools_and_agents(classes, code, recovery):
    """MCP, FastMCP and A2A: the code and class of the row for nested errors."""
    raised_group = await raised(pair(*classes))
    for binding in (ways.mcp_tool, ways.fastmcp_tool):
        answer = await binding(raised_group)
        assert code in answer, binding
        assert recovery in answer, binding
    task = json.loads(await ways.a2a_agent(raised_group))["result"]["task"]
    fault = extract(task, "a2a")
    assert (fault.code, fault.recovery, len(fault.errors)) == (code, recovery, 2)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("classes", "code", "recovery"), MIXED)
async def test_different_failures_of_an_item(classes, code, recovery):
    """A batch item is what the answer of a handler would be."""

    async def create(item):
        await task_group(pair(*classes))

    fault = (await run([1], create)).items[0].fault
    assert (fault.code, fault.recovery, len(fault.errors)) == (code, recovery, 2)
