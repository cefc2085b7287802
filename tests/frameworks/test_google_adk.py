"""Google ADK's runner with a scripted model."""

import asyncio
import copy

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types

from amends.bindings.google_adk import Failures
from amends.effects import Effects
from tests.frameworks import catalogue


class Scripted(BaseLlm):
    """A model that calls the tool a number of times and then answers."""

    left: int = 0
    steps: list = []

    async def generate_content_async(self, llm_request, stream=False):
        if self.left == 0:
            part = types.Part(text="the end")
        else:
            self.left -= 1
            asked = self.steps[len(self.steps) - 1 - self.left] if self.steps else [{"order": 17}]
            calls = [types.FunctionCall(name="act", args=arguments) for arguments in asked]
            parts = [types.Part(function_call=call) for call in calls]
            yield LlmResponse(content=types.Content(role="model", parts=parts))
            return
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def runner(failures=None):
    async def work(tool, steps):
        tool.__name__ = "act"
        steps = [[{"order": 17}]] * steps if isinstance(steps, int) else steps
        agent = LlmAgent(
            name="helper",
            model=Scripted(model="scripted", left=len(steps), steps=steps),
            tools=[FunctionTool(tool)],
        )
        run = InMemoryRunner(agent=agent, app_name="test", plugins=[failures or Failures()])
        session = await run.session_service.create_session(app_name="test", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="act")])
        texts, last = [], ""
        async for event in run.run_async(user_id="u", session_id=session.id, new_message=message):
            for part in event.content.parts if event.content else ():
                if part.function_response:
                    answer = part.function_response.response
                    texts.append(str(answer.get("error") or answer.get("result")))
                last = part.text or last
        return texts, last == "the end"

    return lambda tool, steps: asyncio.run(work(tool, steps))


def test_the_catalogue():
    """The model reads the same facts as everywhere, and the run goes on."""
    catalogue.check(runner())


def test_loops_and_success():
    """Loops are broken; results pass; the next run starts anew."""
    failures = Failures()
    catalogue.check_loop(runner(failures))
    catalogue.check_success(runner(failures))


def test_recovery_and_ledger():
    """A tool that only reads is repeated; another one has its effect once."""
    catalogue.check_recovery_and_ledger(lambda **options: runner(Failures(**options)))


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options)))


class Guard(BasePlugin):
    """A guardrail of another author: it blocks calls, or answers for failures, and notes what it was asked."""

    def __init__(self, asked, *, blocks=False, answers=False):
        super().__init__(name="guard")
        self.asked, self.blocks, self.answers = asked, blocks, answers

    async def before_tool_callback(self, *, tool, tool_args, tool_context):
        self.asked.append("plugin before")
        return {"result": "blocked"} if self.blocks else None

    async def after_tool_callback(self, *, tool, tool_args, tool_context, result):
        self.asked.append("plugin after")

    async def on_tool_error_callback(self, *, tool, tool_args, tool_context, error):
        self.asked.append("plugin error")
        return {"result": "explained"} if self.answers else None


def hooked(function, plugins, **callbacks):
    """Run the agent once with plugins and callbacks, and return what the model read."""

    async def work():
        function.__name__ = "act"
        confirm = callbacks.pop("require_confirmation", False)
        agent = LlmAgent(
            name="helper",
            model=Scripted(model="scripted", left=1),
            tools=[FunctionTool(function, require_confirmation=confirm)],
            **callbacks,
        )
        run = InMemoryRunner(agent=agent, app_name="test", plugins=plugins)
        session = await run.session_service.create_session(app_name="test", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="act")])
        return [
            dict(part.function_response.response)
            async for event in run.run_async(user_id="u", session_id=session.id, new_message=message)
            for part in (event.content.parts if event.content else ())
            if part.function_response
        ]

    return asyncio.run(work())


@pytest.mark.parametrize("order", ["alone", "first", "last"])
@pytest.mark.parametrize("blocker", ["plugin", "agent", "confirmation"])
def test_a_guardrail_is_asked_before_the_tool_runs(order, blocker):
    """The binding does not run a tool that a plugin, a callback of the agent or a confirmation holds back."""
    paid, asked = [], []

    def pay(order: int) -> str:
        """Pay."""
        paid.append(order)
        return "paid"

    def block(tool, args, tool_context):
        asked.append("agent before")
        return {"result": "blocked"}

    guard = Guard(asked, blocks=blocker == "plugin")
    with Effects("memory:") as effects:
        ours = Failures(effects=effects, scope="task")
        plugins = {"alone": [guard], "first": [ours, guard], "last": [guard, ours]}[order]
        callbacks = {"before_tool_callback": block} if blocker == "agent" else {}
        read = hooked(pay, plugins, require_confirmation=blocker == "confirmation", **callbacks)
        assert effects.list() == []
    assert paid == []
    assert read[0] != {"result": "paid"}
    assert asked == ["plugin before", *(["agent before"] if blocker == "agent" else []), "plugin after"]


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("answers", ["plugin", "agent", "neither"])
def test_the_callbacks_for_errors_are_asked(order, answers):
    """A callback that answers for a failed tool is what the model reads; without one the text is ours."""
    asked = []

    def fail(order: int) -> str:
        """Fail."""
        raise ConnectionResetError("db.internal")

    def explain(tool, args, tool_context, error):
        asked.append(f"agent {type(error).__name__}")
        return {"result": "explained"} if answers == "agent" else None

    def after(tool, args, tool_context, tool_response):
        asked.append("agent after")

    guard = Guard(asked, answers=answers == "plugin")
    plugins = [Failures(), guard] if order == "first" else [guard, Failures()]
    (read,) = hooked(fail, plugins, on_tool_error_callback=explain, after_tool_callback=after)
    agent = [] if answers == "plugin" else ["agent ConnectionResetError"]
    assert asked == ["plugin before", "plugin error", *agent, "plugin after", "agent after"]
    if answers == "neither":
        assert "may have had its effect" in read["error"]
    else:
        assert read == {"result": "explained"}


def test_a_tool_that_the_model_invents():
    """The model reads the names of the tools, as ADK gives them."""

    def other(order: int) -> str:
        """Do something else."""
        return "other"

    async def work():
        agent = LlmAgent(name="helper", model=Scripted(model="scripted", left=1), tools=[other])
        run = InMemoryRunner(agent=agent, app_name="test", plugins=[Failures()])
        session = await run.session_service.create_session(app_name="test", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="act")])
        return [
            part.function_response.response["error"]
            async for event in run.run_async(user_id="u", session_id=session.id, new_message=message)
            for part in (event.content.parts if event.content else ())
            if part.function_response
        ]

    (read,) = asyncio.run(work())
    assert "other" in read


def test_a_tool_without_the_plugin_runs_as_before():
    """A tool that two runners share is covered only in the one with the plugin, and so is a copy of it."""
    seen = []

    def act(order: int) -> str:
        """Act."""
        raise KeyError("hunter2")

    tool = FunctionTool(act)
    for made in (tool, copy.copy(tool)):
        for plugins in ([Failures(on_failure=seen.append)], []):
            agent = LlmAgent(name="helper", model=Scripted(model="scripted", left=1), tools=[made])

            async def work(agent=agent, plugins=plugins):
                run = InMemoryRunner(agent=agent, app_name="test", plugins=plugins)
                session = await run.session_service.create_session(app_name="test", user_id="u")
                message = types.Content(role="user", parts=[types.Part(text="act")])
                return [
                    event
                    async for event in run.run_async(user_id="u", session_id=session.id, new_message=message)
                ]

            if plugins:
                asyncio.run(work())
            else:
                with pytest.raises(KeyError):
                    asyncio.run(work())
    assert len(seen) == 2


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(lambda function, steps, **options: runner(Failures(**options))(function, steps))
    catalogue.check_replanned_values(
        lambda function, steps, **options: runner(Failures(**options))(function, steps)
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures, finds_one=True)


def test_a_returned_error_is_no_success():
    """A result with `status: error`, and missing arguments: the ledger does not record them as done."""

    def declined(calls):
        def act(order: int) -> dict:
            """Act on an order."""
            calls.append(order)
            return {"status": "error", "error": "declined"}

        return act

    catalogue.check_returned_errors(lambda **options: runner(Failures(**options)), declined)
    catalogue.check_refused_arguments(
        lambda function, steps, **options: runner(Failures(**options))(function, steps)
    )


def test_each_session_has_its_payments():
    """The session and the user separate the payments of a ledger."""
    paid = []

    def pay(order: int) -> str:
        """Pay."""
        paid.append(order)
        return f"receipt {len(paid)}"

    with Effects("memory:") as effects:
        run = runner(Failures(effects=effects))
        assert run(pay, 2)[0][0] == "receipt 1"
        assert run(pay, 1)[0] == ["receipt 2"]
