"""In-process MCP tools of the Claude Agent SDK, called through the server that the SDK makes of them."""

import asyncio
from inspect import isawaitable

from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool
from mcp import Client

from amends.bindings.claude_agent_sdk import Failures
from tests.frameworks import catalogue
from tests.frameworks.claude_model import SERVER, answering
from tests.frameworks.matrix import Call


def runner(failures=None):
    async def work(function, times):
        made = failures or Failures()

        @made.guard
        @tool("act", "Act on an order", {"order": int})
        async def act(arguments):
            text = function(arguments["order"])
            return {"content": [{"type": "text", "text": await text if isawaitable(text) else text}]}

        server = create_sdk_mcp_server("shop", tools=[act])["instance"]
        async with Client(server) as client:
            results = [await client.call_tool("act", {"order": 17}) for _ in range(times)]
        texts = [result.content[0].text for result in results]
        return texts, True

    return lambda function, times: asyncio.run(work(function, times))


def asked(failures):
    """The same with the program of the SDK, and a scripted model."""

    class Script:
        def __init__(self, times):
            self.left, self.read = times, []

        def step(self, read):
            self.read, self.left = read, self.left - 1
            return [Call("act", {"order": 17})] if self.left >= 0 else "the end"

    async def work(function, times):
        @failures.guard
        @tool("act", "Act on an order", {"order": int})
        async def act(arguments):
            return {"content": [{"type": "text", "text": function(arguments["order"])}]}

        script, said = Script(times), []
        with answering(script) as environment:
            options = ClaudeAgentOptions(
                mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[act])},
                allowed_tools=[f"{SERVER}act"],
                setting_sources=[],
                cwd=environment["HOME"],
                env=environment,
            )
            async for message in query(prompt="act", options=options):
                said.append(getattr(message, "result", None))
        return script.read, said[-1] == "the end"

    return lambda function, times: asyncio.run(work(function, times))


def test_the_catalogue():
    """The model reads the same facts as everywhere."""
    catalogue.check(runner())


def test_loops_and_success():
    """Loops are broken; results pass; the next run of the same object starts anew."""
    failures = Failures()
    catalogue.check_loop(asked(failures))
    catalogue.check_success(asked(failures))


def test_recovery_and_ledger():
    """A tool that only reads is repeated; another one has its effect once."""
    catalogue.check_recovery_and_ledger(lambda **options: runner(Failures(**options)))


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options)))


async def steps_of(function, steps, failures):
    """Return the texts of calls with these arguments."""

    @failures.guard
    @tool("act", "Act on an order", SCHEMA)
    async def act(arguments):
        text = function(int(arguments["order"]), arguments.get("currency", "EUR"))
        return {"content": [{"type": "text", "text": text}]}

    server = create_sdk_mcp_server("shop", tools=[act])["instance"]
    async with Client(server) as client:
        results = [await client.call_tool("act", arguments) for calls in steps for arguments in calls]
    return [result.content[0].text for result in results], True


SCHEMA = {
    "type": "object",
    "properties": {
        "order": {"type": "integer"},
        "currency": {"type": "string", "default": "EUR"},
    },
    "required": ["order"],
}


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(
        lambda function, steps, **options: asyncio.run(steps_of(function, steps, Failures(**options))),
        refused=("type",),
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures)


def test_a_returned_error_is_no_success():
    """A result with `is_error`: the ledger does not record it as done."""

    async def work(calls, steps, failures):
        @failures.guard
        @tool("act", "Act on an order", SCHEMA)
        async def act(arguments):
            calls.append(arguments["order"])
            return {"content": [{"type": "text", "text": "declined"}], "is_error": True}

        server = create_sdk_mcp_server("shop", tools=[act])["instance"]
        async with Client(server) as client:
            results = [await client.call_tool("act", {"order": 17}) for _ in steps]
        return [result.content[0].text for result in results], True

    def bind(**options):
        return lambda calls, steps: asyncio.run(work(calls, steps, Failures(**options)))

    catalogue.check_returned_errors(bind, lambda calls: calls)
