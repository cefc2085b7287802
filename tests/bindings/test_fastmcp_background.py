"""Tools of FastMCP that run in the background are guarded too."""

import inspect
from typing import Literal

import fastmcp
import pytest
from fastmcp import FastMCP
from fastmcp.server.extensions import MethodBinding, ServerExtension
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.utilities.tasks import TASKS_EXTENSION_ID, TaskConfig
from mcp.shared.exceptions import MCPError
from mcp_types import Request, RequestParams, Result

from amends import extract
from amends.bindings.fastmcp import guard
from amends.bindings.mcp.tool_effects import restore
from amends.errors import RateLimitedError

pytestmark = pytest.mark.usefixtures("quiet")

SECRET = "db-7.internal refused, password=hunter2"


class Task(Result):
    """What the extension's `tasks/get` returns, as far as the guard looks at it."""

    status: str = "failed"
    status_message: str | None = SECRET
    error: dict | None = None


GetTask = Request[RequestParams, Literal["tasks/get"]]


class Tasks(ServerExtension):
    """The tasks extension without a worker: it declares itself, and `tasks/get` returns a failed task."""

    identifier = TASKS_EXTENSION_ID
    error = {"code": -32603, "message": SECRET}

    def methods(self):
        async def get(ctx, params):
            return Task(error=self.error)

        return (MethodBinding("tasks/get", RequestParams, get),)


class Custom(Tool):
    """A tool that is not made from a function."""

    async def run(self, arguments):
        raise OSError(SECRET)


def server(extension):
    shop = guard(FastMCP("shop"))
    shop.add_extension(extension)

    @shop.tool(task=True)
    async def order(item: str) -> str:
        if item == "tea":
            raise RateLimitedError("Too many", retry_after=5)
        if item == "cup":
            raise MCPError(-32602, "Name another item")
        if item == "pot":
            raise OSError(SECRET)
        return item

    shop.add_tool(Custom(name="custom", parameters={}, task_config=TaskConfig()))
    return shop


async def test_the_function_that_the_worker_calls_answers_its_failures():
    """The worker sends the text of what it raises; so it raises nothing but what the author chose to send."""
    found = {each.name: each for each in await server(Tasks()).get_tasks()}
    order = found["order"].fn
    assert list(inspect.signature(order).parameters) == ["item"]
    assert await order(item="rice") == "rice"
    for call, code, executed in (
        (order(item="pot"), "SERVICE_UNAVAILABLE", "maybe"),
        (order(item="tea"), "RATE_LIMITED", "no"),
        (found["custom"].run({}), "SERVICE_UNAVAILABLE", "maybe"),
    ):
        result = await call
        assert isinstance(result, ToolResult)
        assert "hunter2" not in result.model_dump_json()
        fault = extract(result.to_mcp_result())
        assert (fault.code, fault.executed.value) == (code, executed)
    with pytest.raises(MCPError, match="Name another item"):
        await order(item="cup")


async def test_a_failed_task_does_not_quote_an_exception():
    """What a dependency or the worker raised; an answer that the author chose stays."""
    chosen = {"code": -32602, "message": "Name another item"}
    for error, message in ((Tasks.error, "The service is unavailable for now"), (chosen, chosen["message"])):
        extension = Tasks()
        extension.error = error
        async with fastmcp.Client(server(extension)) as client:
            task = await client.session.send_request(
                GetTask(method="tasks/get", params=RequestParams()), Task
            )
        assert task.error["message"] == message
        assert (extract({"jsonrpc": "2.0", "error": task.error}, native=False) is None) == (error is chosen)


def test_a_ledger_returns_the_task_of_a_background_tool():
    """The stub of the task, as the extension made it or as the ledger stored it; the client polls it."""
    stored = {"taskId": "7", "status": "working", "resultType": "task"}
    for stub in (Task(status="working"), stored):
        assert restore(stub) is stub


@pytest.mark.soak
async def test_a_real_worker_sends_no_text_of_an_exception():
    """With the package fastmcp-tasks, in the same process."""
    tasks = pytest.importorskip("fastmcp_tasks", reason="pip install fastmcp-tasks")
    shop = server(tasks.TasksExtension())
    async with fastmcp.Client(shop) as client:
        for item, code in (("pot", "SERVICE_UNAVAILABLE"), ("tea", "RATE_LIMITED")):
            task = await tasks.call_tool_task(client, "order", {"item": item}, raise_on_error=False)
            result = await task.result()
            assert extract((await task.status()).result).code == code
            assert "hunter2" not in str(result)
