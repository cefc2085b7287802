"""
A binding never changes which hooks of the user run: guards, approvals, interrupts, callbacks and middleware of each framework.

A function per framework installs every hook that the framework has around a run, a model and a tool, runs an agent whose model calls the
tool once, and returns what the model read. The hooks note that they ran. The notes of a run with the binding are those of a run
without it, whether the binding is added first or last, and whether a hook lets the call pass, holds it back, or asks a person.
"""

import asyncio
import copy
import functools
import inspect
import types
from typing import Any, NamedTuple

import pytest

from amends.effects import Effects
from tests.frameworks.matrix import Call, driver

PASS, BLOCK, ASK = "pass", "block", "ask"


class Script:
    """A model for the drivers: it calls the tool once, and answers."""

    def __init__(self):
        self.steps = [[Call("pay", {"order": 17})]]
        self.read = []

    def step(self, read):
        self.read = read
        return self.steps.pop(0) if self.steps else "the end"


class Trial(NamedTuple):
    """A run with hooks."""

    hook: str
    """What the guard does: lets the call pass, holds it back, or asks a person."""
    ours: Any
    """Makes the binding; None for the framework alone."""
    first: bool
    notes: list[str]
    paid: list[int]

    def ordered(self, *others, binding):
        """Return what is installed, with the binding first or last."""
        if self.ours is None:
            return [*others]
        made = self.ours(binding)
        return [made, *others] if self.first else [*others, made]

    def pay(self, order: int) -> str:
        """
        Pay an order.

        Args:
            order: the order.
        """
        self.paid.append(order)
        return "receipt 17"


def noting(base, notes, **methods):
    """Return an object of a class whose methods note that they ran and do what they did; `methods` replace some."""

    def method(name, original):
        if name in methods:
            return methods[name]
        if inspect.isasyncgenfunction(original):

            async def events(self, *args, **kwargs):
                notes.append(name)
                async for event in original(self, *args, **kwargs):
                    yield event

            return functools.wraps(original)(events)
        if inspect.iscoroutinefunction(original):

            async def noted(self, *args, **kwargs):
                notes.append(name)
                return await original(self, *args, **kwargs)

            return functools.wraps(original)(noted)

        def plain(self, *args, **kwargs):
            notes.append(name)
            return original(self, *args, **kwargs)

        return functools.wraps(original)(plain)

    names = [
        name
        for name in dir(base)
        if name.startswith(("before_", "after_", "on_", "wrap_"))
        and callable(getattr(base, name))
        and name not in {"on_event", "wrap_run_event_stream"}  # they make pydantic-ai ask for a stream
    ]
    members = {name: method(name, getattr(base, name)) for name in names}
    return types.new_class("Noting", (base,), exec_body=lambda namespace: namespace.update(members))


def langchain(trial):
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import StructuredTool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    from amends.bindings.langchain import Failures

    class Noting(AgentMiddleware):
        def before_agent(self, state, runtime):
            trial.notes.append("before_agent")

        def before_model(self, state, runtime):
            trial.notes.append("before_model")

        def after_model(self, state, runtime):
            trial.notes.append("after_model")

        def after_agent(self, state, runtime):
            trial.notes.append("after_agent")

        def wrap_model_call(self, request, handler):
            trial.notes.append("wrap_model_call")
            response = handler(request)
            trial.notes.append("model answered")
            return response

        def wrap_tool_call(self, request, handler):
            trial.notes.append("wrap_tool_call")
            if trial.hook == BLOCK:
                return ToolMessage("blocked", tool_call_id=request.tool_call["id"], name="pay")
            response = handler(request)
            trial.notes.append(f"tool answered {response.content}")
            return response

    asks = [HumanInTheLoopMiddleware(interrupt_on={"pay": True})] if trial.hook == ASK else []
    model = driver("langchain").Scripted(model=Script())
    tool = StructuredTool.from_function(trial.pay, name="pay")
    middleware = trial.ordered(*asks, Noting(), binding=Failures)
    agent = create_agent(model, [tool], middleware=middleware, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    state = agent.invoke({"messages": [{"role": "user", "content": "pay"}]}, config)
    if trial.hook == ASK:
        trial.notes.append(f"asked {len(state['__interrupt__'])} paid {trial.paid}")
        state = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    return [message.content for message in state["messages"] if isinstance(message, ToolMessage)]


def openai_agents(trial):
    from agents import (
        Agent,
        AgentHooks,
        GuardrailFunctionOutput,
        RunHooks,
        Runner,
        ToolGuardrailFunctionOutput,
        function_tool,
        input_guardrail,
        output_guardrail,
        tool_input_guardrail,
        tool_output_guardrail,
    )

    from amends.bindings.openai_agents import Failures

    @tool_input_guardrail
    def before(data):
        trial.notes.append("tool input guardrail")
        if trial.hook == BLOCK:
            return ToolGuardrailFunctionOutput.reject_content("blocked")
        return ToolGuardrailFunctionOutput.allow()

    @tool_output_guardrail
    def after(data):
        trial.notes.append(f"tool output guardrail {data.output}")
        return ToolGuardrailFunctionOutput.allow()

    @input_guardrail(run_in_parallel=False)
    def first(context, agent, given):
        trial.notes.append("input guardrail")
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    @output_guardrail
    def last(context, agent, given):
        trial.notes.append("output guardrail")
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    def approval(*_):
        trial.notes.append("approval asked")
        return trial.hook == ASK

    async def needs_approval(context, arguments, call):
        return approval()

    options: dict[str, Any] = {
        "tool_input_guardrails": [before],
        "tool_output_guardrails": [after],
        "needs_approval": needs_approval,
    }
    if trial.ours is None:
        tool = function_tool(trial.pay, name_override="pay", **options)
    elif trial.first:
        tool = trial.ours(Failures).function_tool(trial.pay, name_override="pay", **options)
    else:
        tool = trial.ours(Failures).guard(function_tool(trial.pay, name_override="pay", **options))

    script = Script()
    agent = Agent(
        name="a",
        tools=[tool],
        model=driver("openai_agents").Scripted(script),
        hooks=noting(AgentHooks, trial.notes)(),
        input_guardrails=[first],
        output_guardrails=[last],
    )

    async def work():
        hooks = noting(RunHooks, trial.notes)()
        result = await Runner.run(agent, "pay", hooks=hooks)
        if trial.hook == ASK:
            trial.notes.append(f"asked {len(result.interruptions)} paid {trial.paid}")
            state = result.to_state()
            state.approve(result.interruptions[0])
            await Runner.run(agent, state, hooks=hooks)

    asyncio.run(work())
    return script.read


def llama_index(trial):
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.tools import FunctionTool
    from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

    from amends.bindings.llama_index import Failures

    async def pay(ctx: Context, order: int) -> str:
        """Pay an order."""
        if trial.hook == ASK:
            trial.notes.append("asks")
            answer = await ctx.wait_for_event(
                HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="May I?"), waiter_id="one"
            )
            trial.notes.append(answer.response)
        if trial.hook == BLOCK:
            return "blocked"
        return trial.pay(order)

    def after(result):
        trial.notes.append("callback")

    def partial_tool():
        return FunctionTool.from_defaults(async_fn=pay, name="pay", callback=after)

    tool = partial_tool() if trial.ours is None else trial.ours(Failures).guard(partial_tool())
    script = Script()
    agent = FunctionAgent(tools=[tool], llm=driver("llama_index").Scripted(model=script))

    async def work():
        handler = agent.run("pay")
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                trial.notes.append(f"asked paid {trial.paid}")
                handler.ctx.send_event(HumanResponseEvent(response="yes"))
            elif type(event).__name__ in {"ToolCall", "ToolCallResult", "AgentInput", "AgentOutput"}:
                streamed.append(type(event).__name__)
        await handler

    streamed: list[str] = []
    asyncio.run(work())
    trial.notes.extend(streamed)  # they arrive at any time while the tool runs
    return script.read


def google_adk(trial):
    from google.adk.agents import LlmAgent
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.runners import InMemoryRunner
    from google.adk.tools import FunctionTool
    from google.genai import types as genai

    from amends.bindings.google_adk import Failures

    async def before_tool_callback(self, *, tool, tool_args, tool_context):
        trial.notes.append("plugin before_tool")
        return {"result": "blocked"} if trial.hook == BLOCK else None

    def note(name, answer=None):
        def callback(*args, **kwargs):
            trial.notes.append(f"agent {name}")
            return answer

        return callback

    def pay(order: int) -> str:
        """Pay an order."""
        return trial.pay(order)

    script = Script()
    names = ("before_agent", "after_agent", "before_model", "after_model", "after_tool", "on_model_error")
    agent = LlmAgent(
        name="a",
        model=driver("google_adk").Scripted(model="scripted", scripted=script),
        tools=[FunctionTool(pay, require_confirmation=trial.hook == ASK)],
        before_tool_callback=note("before_tool", {"result": "blocked"} if trial.hook == BLOCK else None),
        on_tool_error_callback=note("on_tool_error"),
        **{f"{name}_callback": note(name) for name in names},
    )
    noted = noting(BasePlugin, trial.notes, before_tool_callback=before_tool_callback)(name="noting")
    plugins = trial.ordered(noted, binding=Failures)

    async def work():
        run = InMemoryRunner(agent=agent, app_name="shop", plugins=plugins)
        await run.session_service.create_session(app_name="shop", user_id="u", session_id="s")

        async def say(part):
            message = genai.Content(role="user", parts=[part])
            return [event async for event in run.run_async(user_id="u", session_id="s", new_message=message)]

        events = await say(genai.Part(text="pay"))
        if trial.hook != ASK:
            return
        (asked,) = [
            call
            for event in events
            for call in event.get_function_calls()
            if call.name == "adk_request_confirmation"
        ]
        trial.notes.append(f"asked paid {trial.paid}")
        answer = genai.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
        await say(genai.Part(function_response=answer))

    asyncio.run(work())
    return [each for each in script.read if "onfirm" not in each]


def agent_framework(trial):
    from agent_framework import (
        Agent,
        AgentMiddleware,
        AgentSession,
        ChatMiddleware,
        FunctionMiddleware,
        Message,
        tool,
    )

    from amends.bindings.agent_framework import Failures

    def middleware(base, name):
        class Noting(base):
            async def process(self, context, call_next):
                trial.notes.append(name)
                if name == "function" and trial.hook == BLOCK:
                    context.result = "blocked"
                    return
                await call_next()
                trial.notes.append(f"after {name}")

        return Noting()

    script = Script()
    made = tool(
        trial.pay,
        name="pay",
        description="Pay",
        approval_mode="always_require" if trial.hook == ASK else "never_require",
    )
    noted = [
        middleware(AgentMiddleware, "agent"),
        middleware(FunctionMiddleware, "function"),
        middleware(ChatMiddleware, "chat"),
    ]
    installed = trial.ordered(*noted, binding=Failures)
    client = driver("agent_framework").Scripted(script)
    for each in installed:
        client = each.model(client) if isinstance(each, Failures) else client
    agent = Agent(client=client, tools=[made], middleware=installed)

    async def work():
        session = AgentSession(session_id="s")
        result = await agent.run("pay", session=session)
        if trial.hook == ASK:
            (asked,) = result.user_input_requests
            trial.notes.append(f"asked paid {trial.paid}")
            answer = Message("user", [asked.to_function_approval_response(True)])
            await agent.run(answer, session=session)

    asyncio.run(work())
    return script.read


def claude_agent_sdk(trial):
    from claude_agent_sdk import (
        ClaudeAgentOptions,
        HookMatcher,
        PermissionResultAllow,
        create_sdk_mcp_server,
        query,
        tool,
    )

    from amends.bindings.claude_agent_sdk import Failures
    from tests.frameworks.claude_model import SERVER, answering

    @tool("pay", "Pay an order", {"order": int})
    async def pay(arguments):
        return {"content": [{"type": "text", "text": trial.pay(arguments["order"])}]}

    made = pay if trial.ours is None else trial.ours(Failures).guard(pay)

    def note(name):
        async def hook(given, call, context):
            trial.notes.append(name)
            if name == "PreToolUse" and trial.hook == BLOCK:
                decision = {"permissionDecision": "deny", "permissionDecisionReason": "blocked"}
                return {"hookSpecificOutput": {"hookEventName": name, **decision}}
            return {}

        return [HookMatcher(hooks=[hook])]

    async def can_use_tool(name, arguments, context):
        trial.notes.append(f"asked paid {trial.paid}")
        return PermissionResultAllow()

    async def prompts():
        yield {"type": "user", "message": {"role": "user", "content": "pay"}}
        await ended.wait()

    ended = asyncio.Event()
    script = Script()

    async def work():
        with answering(script) as environment:
            options = ClaudeAgentOptions(
                mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[made])},
                allowed_tools=[] if trial.hook == ASK else [f"{SERVER}pay"],
                can_use_tool=can_use_tool,
                setting_sources=[],
                cwd=environment["HOME"],
                env=environment,
                hooks={
                    name: note(name) for name in ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
                },
            )
            async for message in query(prompt=prompts(), options=options):
                if type(message).__name__ == "ResultMessage":
                    ended.set()

    asyncio.run(work())
    return script.read


def smolagents(trial):
    from smolagents import LogLevel, ToolCallingAgent

    from amends.bindings.smolagents import Failures

    if trial.hook == ASK:
        pytest.skip("smolagents has no approval of tools")
    smol = driver("smolagents")

    def pay(order, currency):
        return "blocked" if trial.hook == BLOCK else trial.pay(order)

    class Pay(smol.Pay):
        def setup(self):
            trial.notes.append("setup")
            self.is_initialized = True

        def validate_arguments(self):
            trial.notes.append("validate_arguments")

    tool: Any = Pay(pay)
    script = Script()
    made = None if trial.ours is None else trial.ours(Failures)
    if made is not None:
        tool = made.guard(tool)
    ToolCallingAgent(
        tools=[tool],
        model=smol.Scripted(script),
        verbosity_level=LogLevel.OFF,
        step_callbacks=[lambda step, agent: trial.notes.append(type(step).__name__)],
        final_answer_checks=[lambda answer, memory, agent: trial.notes.append("check") or True],
    ).run("pay")
    return script.read


def strands(trial):
    from strands import Agent, tool
    from strands.hooks import (
        AfterInvocationEvent,
        AfterModelCallEvent,
        AfterToolCallEvent,
        BeforeInvocationEvent,
        BeforeModelCallEvent,
        BeforeToolCallEvent,
        HookProvider,
        MessageAddedEvent,
    )
    from strands.middleware import ExecuteToolStage, InvokeModelStage

    from amends.bindings.strands import Failures

    kinds = (
        BeforeInvocationEvent,
        AfterInvocationEvent,
        BeforeModelCallEvent,
        AfterModelCallEvent,
        BeforeToolCallEvent,
        AfterToolCallEvent,
        MessageAddedEvent,
    )

    class Noting(HookProvider):
        def register_hooks(self, registry, **options):
            for kind in kinds:
                registry.add_callback(kind, self.note)

        def note(self, event):
            trial.notes.append(type(event).__name__)
            if isinstance(event, BeforeToolCallEvent) and trial.hook == BLOCK:
                event.cancel_tool = "blocked"
            if isinstance(event, BeforeToolCallEvent) and trial.hook == ASK:
                trial.notes.append(str(event.interrupt("approval", reason="May I?")))

    def middleware(name):
        async def noted(context, call_next):
            trial.notes.append(name)
            async for event in call_next(context):
                yield event
            trial.notes.append(f"after {name}")

        return noted

    made = tool(trial.pay, name="pay", description="Pay an order")
    script = Script()
    ours = None if trial.ours is None else trial.ours(Failures)
    agent = Agent(
        model=driver("strands").Scripted(script),
        tools=[made],
        plugins=[ours] if ours is not None and trial.first else [],
        hooks=[Noting()],
        callback_handler=None,
    )
    agent.add_middleware(ExecuteToolStage, middleware("tool"))
    agent.add_middleware(InvokeModelStage, middleware("model"))
    if ours is not None and not trial.first:
        ours.init_agent(agent)
    result = agent("pay")
    if trial.hook == ASK:
        trial.notes.append(f"asked {len(result.interrupts)} paid {trial.paid}")
        answer = {"interruptId": result.interrupts[0].id, "response": "yes"}
        agent([{"interruptResponse": answer}])
    return script.read


def pydantic_ai(trial):
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import SkipToolExecution

    from amends.bindings.pydantic_ai import Failures

    async def before_tool_execute(self, ctx, *, call, tool_def, args):
        trial.notes.append("before_tool_execute")
        if trial.hook == BLOCK:
            raise SkipToolExecution("blocked")
        return args

    async def prepare(ctx, definition):
        trial.notes.append("prepare")
        return definition

    def validate(ctx, order):
        trial.notes.append("args_validator")

    noted = noting(AbstractCapability, trial.notes, before_tool_execute=before_tool_execute)()
    script = Script()
    tool = Tool(
        trial.pay,
        name="pay",
        prepare=prepare,
        args_validator=validate,
        requires_approval=trial.hook == ASK,
    )
    agent = Agent(
        driver("pydantic_ai").scripted(script),
        tools=[tool],
        capabilities=trial.ordered(noted, binding=Failures),
        output_type=[str, DeferredToolRequests],
    )
    result = agent.run_sync("pay")
    if trial.hook == ASK:
        (asked,) = result.output.approvals
        trial.notes.append(f"asked paid {trial.paid}")
        agent.run_sync(
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={asked.tool_call_id: True}),
        )
    return script.read


FRAMEWORKS = {
    each.__name__: each
    for each in (
        langchain,
        openai_agents,
        llama_index,
        google_adk,
        agent_framework,
        claude_agent_sdk,
        smolagents,
        strands,
        pydantic_ai,
    )
}


def tried(framework, hook, ours, *, first):
    trial = Trial(hook, ours, first, [], [])
    read = framework(trial)
    return trial.notes, copy.copy(trial.paid), read


@pytest.mark.parametrize("hook", [PASS, BLOCK, ASK])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_hooks_of_the_user_run_as_they_do_alone(name, hook):
    """The hooks that run, the payments, and what the model reads are those of the framework alone."""
    check(FRAMEWORKS[name], hook)


def check(framework, hook):
    alone = tried(framework, hook, None, first=True)
    assert alone[0], "no hook noted that it ran"
    assert alone[1] == ([] if hook == BLOCK else [17])
    for first in (True, False):
        with Effects("memory:") as effects:
            covered = tried(framework, hook, lambda made: made(effects=effects, scope="task"), first=first)
        assert covered == alone, "first" if first else "last"
