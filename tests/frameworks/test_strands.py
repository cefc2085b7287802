"""Strands' Agent with a scripted model."""

import asyncio
import json

from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent, HookProvider
from strands.models import Model
from strands.session import FileSessionManager

from amends.bindings.strands import Failures
from amends.effects import Effects
from tests.frameworks import catalogue


class Scripted(Model):
    """A model that makes the given calls and then answers."""

    def __init__(self, steps):
        self.steps, self.number = iter(steps), 0

    async def stream(self, messages, *args, **options):
        self.number += 1
        asked = next(self.steps, ())
        yield {"messageStart": {"role": "assistant"}}
        for index, arguments in enumerate(asked):
            use = {"name": "act", "toolUseId": f"call-{self.number}-{index}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
            yield {"contentBlockStop": {}}
        if not asked:
            yield {"contentBlockDelta": {"delta": {"text": "the end"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if asked else "end_turn"}}

    def get_config(self):
        return {}

    def update_config(self, **options):
        raise NotImplementedError

    def structured_output(self, *args, **options):
        raise NotImplementedError


def agent_with(function, steps, plugins):
    made = function if hasattr(function, "tool_spec") else tool(function, name="act", description="Act")
    return Agent(model=Scripted(steps), tools=[made], plugins=plugins, callback_handler=None)


def texts_of(agent):
    """Return the texts that the model got."""
    parts = [
        part["toolResult"] for each in agent.messages for part in each["content"] if "toolResult" in part
    ]
    assert len({each["toolUseId"] for each in parts}) == len(parts)
    return [each["content"][0]["text"] for each in parts]


def run_steps(function, steps, plugins):
    """Return the texts that the model got, and whether it answered."""
    agent = agent_with(function, steps, plugins)
    result = agent("act")
    return texts_of(agent), str(result).strip() == "the end"


def runner(failures=None):
    return lambda function, times: run_steps(function, [[{"order": 17}]] * times, [failures or Failures()])


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


def test_the_ledger_hands_out_an_outcome():
    """Two equal calls at once have one effect and a result each; a repeat on purpose needs a reason."""
    catalogue.check_ledger_answers(
        lambda function, steps, **options: run_steps(function, steps, [Failures(**options)])
    )


def test_a_tool_that_asks_a_person():
    """The question reaches the program, the ledger frees the key, and the answer runs the tool once."""
    done = []

    @tool(name="act", context=True)
    def act(order: int, tool_context: ToolContext) -> str:
        """Act on an order."""
        answer = tool_context.interrupt("approval", reason="May I?")
        done.append(order)
        return f"done, {answer}"

    with Effects("memory:") as effects:
        agent = agent_with(act, [[{"order": 17}]], [Failures(effects=effects, scope="task")])
        asked = agent("act")
        assert asked.stop_reason == "interrupt"
        assert effects.list() == []
        answer = {"interruptId": asked.interrupts[0].id, "response": "yes"}
        agent([{"interruptResponse": answer}])
        assert [each.state for each in effects.list()] == ["done"]
    assert (done, texts_of(agent)) == ([17], ["done, yes"])


def test_what_a_tool_streams_passes():
    """The events of a tool that streams reach the caller before its result."""

    @tool(name="act")
    async def act(order: int):
        """Act on an order."""
        yield "half"
        yield f"done {order}"

    async def work():
        agent = agent_with(act, [[{"order": 17}]], [Failures()])
        streamed = [
            event["tool_stream_event"]["data"]
            async for event in agent.stream_async("act")
            if "tool_stream_event" in event
        ]
        return streamed, texts_of(agent)

    assert asyncio.run(work()) == (["half", "done 17"], ["done 17"])


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options)))


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(
        lambda function, steps, **options: run_steps(function, steps, [Failures(**options)])
    )
    catalogue.check_replanned_values(
        lambda function, steps, **options: run_steps(function, steps, [Failures(**options)])
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users: the session of a session manager separates them, and an agent without one is refused."""
    catalogue.check_scope(lambda **options: agent_with(act, [], [Failures(**options)]))


def act(order: int) -> str:
    """Act on an order."""
    return f"done {order}"


def test_each_session_has_its_payments(tmp_path):
    """The session of a session manager separates the payments of users, and is the same after a restart."""
    paid = []

    @tool(name="act")
    def pay(order: int) -> str:
        """Pay."""
        paid.append(order)
        return f"receipt {len(paid)}"

    def run(session):
        agent = Agent(
            model=Scripted([[{"order": 17}]]),
            tools=[pay],
            plugins=[Failures(effects=effects)],
            session_manager=FileSessionManager(session_id=session, storage_dir=str(tmp_path)),
            callback_handler=None,
        )
        agent("act")
        return agent.messages[-2]["content"][0]["toolResult"]["content"][0]["text"]

    with Effects("memory:") as effects:
        assert [run("ann"), run("bob")] == ["receipt 1", "receipt 2"]
        assert "ALREADY_DONE" in run("ann")
    assert paid == [17, 17]


def test_a_returned_error_is_no_success():
    """A result with `status: error`, and arguments that Strands refuses: the ledger does not record them as done."""

    def declined(calls):
        @tool(name="act")
        def act(order: int) -> dict:
            """Act on an order."""
            calls.append(order)
            return {"status": "error", "content": [{"text": "declined"}]}

        return act

    def bind(**options):
        return lambda made, steps: run_steps(made, steps, [Failures(**options)])

    catalogue.check_returned_errors(bind, declined)
    catalogue.check_refused_arguments(
        lambda function, steps, **options: run_steps(function, steps, [Failures(**options)])
    )


def test_a_hook_that_cancels_a_call():
    """A hook of another author holds the payment back, added before ours and after it."""
    for first in (True, False):

        @tool(name="act")
        def act(order: int) -> str:
            """Pay."""
            raise AssertionError

        class Blocks(HookProvider):
            def register_hooks(self, registry, **options):
                registry.add_callback(BeforeToolCallEvent, self.block)

            def block(self, event):
                event.cancel_tool = "blocked"

        with Effects("memory:") as effects:
            ours = Failures(effects=effects, scope="task")
            agent = Agent(
                model=Scripted([[{"order": 17}]]),
                tools=[act],
                plugins=[ours] if first else [],
                hooks=[Blocks()],
                callback_handler=None,
            )
            if not first:
                ours.init_agent(agent)
            agent("act")
            assert effects.list() == []
        assert texts_of(agent) == ["blocked"]
