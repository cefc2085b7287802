"""LangChain's create_agent with a scripted model."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from amends import extract
from amends.bindings.langchain import Failures
from amends.bindings.tool_calls import ToolEffect
from amends.effects import Effects
from amends.errors import NotFoundError
from tests.frameworks import catalogue


class Scripted(GenericFakeChatModel):
    """A model that calls the tool a number of times and then answers."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def scripted(times):
    calls = [
        AIMessage("", tool_calls=[{"name": "act", "args": {"order": 17}, "id": f"call-{number}"}])
        for number in range(times)
    ]
    return Scripted(messages=iter([*calls, AIMessage("the end")]))


def run_steps(function, steps, failures):
    """Return the texts that the model got, and whether it answered; `steps` are the arguments of its calls."""
    asked = [
        AIMessage(
            "",
            tool_calls=[
                {"name": "act", "args": each, "id": f"call-{step}-{index}"}
                for index, each in enumerate(calls)
            ],
        )
        for step, calls in enumerate(steps)
    ]
    model = Scripted(messages=iter([*asked, AIMessage("the end")]))
    made = (
        function
        if isinstance(function, StructuredTool)
        else StructuredTool.from_function(function, name="act")
    )
    agent = create_agent(model, [made], middleware=[failures])
    state = asyncio.run(agent.ainvoke({"messages": [{"role": "user", "content": "act"}]}))
    messages = [each for each in state["messages"] if isinstance(each, ToolMessage)]
    assert len({each.tool_call_id for each in messages}) == len(messages)
    return [str(each.content) for each in messages], state["messages"][-1].content == "the end"


def runner(failures=None, *, asynchronous=False):
    def run(tool, times):
        made = failures or Failures()
        agent = create_agent(
            scripted(times), [StructuredTool.from_function(tool, name="act")], middleware=[made]
        )
        question = {"messages": [{"role": "user", "content": "act"}]}
        state = asyncio.run(agent.ainvoke(question)) if asynchronous else agent.invoke(question)
        texts = [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]
        return texts, state["messages"][-1].content == "the end"

    return run


def test_the_catalogue():
    """The model reads the same facts as everywhere, and the run goes on."""
    catalogue.check(runner())
    catalogue.check(runner(asynchronous=True))


def test_loops_and_success():
    """Loops are broken; results pass."""
    catalogue.check_loop(runner())
    catalogue.check_success(runner())


def test_another_question_is_another_run():
    """A tool that was closed is open again for the next question."""
    failures = Failures()
    catalogue.check_loop(runner(failures))
    catalogue.check_success(runner(failures))


def test_recovery_and_ledger():
    """A tool that only reads is repeated; another one has its effect once."""
    catalogue.check_recovery_and_ledger(lambda **options: runner(Failures(**options)))


def test_the_ledger_hands_out_an_outcome():
    """Two equal calls at once have one effect, and each its own message; a repeat on purpose needs a reason."""
    catalogue.check_ledger_answers(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


def test_a_tool_node_of_ones_own():
    """The same methods serve a ToolNode, and the fault is in the message's artifact."""
    seen = []
    failures = Failures(on_failure=seen.append)

    def act(order: int) -> str:
        """Act."""
        raise KeyError("hunter2")

    tool = StructuredTool.from_function(act, name="act")
    node = ToolNode([tool], wrap_tool_call=failures.wrap_tool_call, awrap_tool_call=failures.awrap_tool_call)
    assert node is not None
    runner(failures)(act, 1)
    assert seen[0].fault.code == "INTERNAL_ERROR"


def test_a_tool_that_asks_a_person():
    """The question reaches the program, the ledger frees the key, and the answer runs the tool once."""
    done = []

    def act(order: int) -> str:
        """Act on an order."""
        answer = interrupt("May I?")
        done.append(order)
        return f"done, {answer}"

    with Effects("memory:") as effects:
        agent = create_agent(
            scripted(1),
            [StructuredTool.from_function(act, name="act")],
            middleware=[Failures(effects=effects, scope="task")],
            checkpointer=InMemorySaver(),
        )
        thread = {"configurable": {"thread_id": "1"}}
        asked = agent.invoke({"messages": [{"role": "user", "content": "act"}]}, thread)
        assert asked["__interrupt__"][0].value == "May I?"
        assert effects.list() == []
        state = agent.invoke(Command(resume="yes"), thread)
        assert [each.state for each in effects.list()] == ["done"]
    assert done == [17]
    assert state["messages"][-2].content == "done, yes"


def test_a_failure_in_a_checkpoint():
    """A checkpointer stores the message of a failure, and the fault can be read from it afterwards."""

    def act(order: int) -> str:
        """Act on an order."""
        raise NotFoundError("There is no such order")

    made = StructuredTool.from_function(act, name="act")
    agent = create_agent(scripted(1), [made], middleware=[Failures()], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [{"role": "user", "content": "act"}]}, thread)
    message = agent.get_state(thread).values["messages"][-2]
    assert "NOT_FOUND" in message.content
    assert extract(message.artifact).code == "NOT_FOUND"


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over, in an event loop and in a thread."""

    def bind(**options):
        def run(function, times):
            made = StructuredTool.from_function(coroutine=function, name="act", description="Act")
            agent = create_agent(scripted(times), [made], middleware=[Failures(**options)])
            state = asyncio.run(agent.ainvoke({"messages": [{"role": "user", "content": "act"}]}))
            texts = [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]
            return texts, state["messages"][-1].content == "the end"

        return run

    catalogue.check_hang(bind)
    catalogue.check_hang(lambda **options: plainly(runner(Failures(**options))))


def plainly(run):
    return lambda function, times: run(catalogue.plain(function), times)


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )
    catalogue.check_replanned_values(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures, finds_one=True)


def test_a_returned_error_is_no_success():
    """`handle_tool_error` and wrong arguments: the ledger does not record them as done."""

    def declined(calls):
        def act(order: int) -> str:
            """Act on an order."""
            calls.append(order)
            raise ToolException("declined")

        return StructuredTool.from_function(act, name="act", handle_tool_error=True)

    def bind(**options):
        return lambda made, steps: run_steps(made, steps, Failures(**options))

    catalogue.check_returned_errors(bind, declined)
    catalogue.check_refused_arguments(
        lambda function, steps, **options: run_steps(function, steps, Failures(**options))
    )


def test_an_mcp_tool_that_only_reads():
    """The hint of the server takes the tool out of the ledger."""
    looked = []

    def act(order: int) -> str:
        """Look an order up."""
        looked.append(order)
        return "open"

    made = StructuredTool.from_function(act, name="act", metadata={"readOnlyHint": True})
    with Effects("memory:") as effects:
        texts, _ = run_steps(made, [[{"order": 17}]] * 2, Failures(effects=effects, scope="task"))
        assert effects.list() == []
    assert (texts, looked) == (["open", "open"], [17, 17])


def test_each_thread_has_its_payments():
    """The thread id separates users, and a run without one does not start a payment."""
    paid = []

    def act(order: int) -> str:
        """Pay."""
        paid.append(order)
        return f"receipt {len(paid)}"

    tool = StructuredTool.from_function(act, name="act")
    with Effects("memory:") as effects:
        failures = Failures(effects=effects)

        def run(thread):
            agent = create_agent(scripted(1), [tool], middleware=[failures])
            config = {"configurable": {"thread_id": thread}} if thread else {}
            return agent.invoke({"messages": [{"role": "user", "content": "act"}]}, config)

        assert run("ann")["messages"][-2].content == "receipt 1"
        assert run("bob")["messages"][-2].content == "receipt 2"
        again = run("ann")["messages"][-2].content
        assert "ALREADY_DONE" in again
        assert "receipt 1" in again
        with pytest.raises(TypeError, match="scope="):
            run(None)
    assert paid == [17, 17]


def test_a_person_approves_in_both_orders():
    """The middleware that asks a person holds the payment back, before ours and after it."""
    for first in (True, False):
        paid = []

        def act(order: int, paid=paid) -> str:
            """Pay."""
            paid.append(order)
            return "paid"

        with Effects("memory:") as effects:
            ours = Failures(effects=effects)
            asks = HumanInTheLoopMiddleware(interrupt_on={"act": True})
            agent = create_agent(
                scripted(1),
                [StructuredTool.from_function(act, name="act", args_schema=Order)],
                middleware=[ours, asks] if first else [asks, ours],
                checkpointer=InMemorySaver(),
            )
            thread = {"configurable": {"thread_id": "1"}}
            state = agent.invoke({"messages": [{"role": "user", "content": "act"}]}, thread)
            assert state["__interrupt__"]
            assert paid == []
            agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
            assert paid == [17]


class Order(BaseModel):
    """The arguments of a payment."""

    order: int


def test_a_declared_key_identifies_the_payment():
    """The order is paid once, whatever else the model changes; the second call of the model gets the result."""
    paid = []

    def act(order: int, note: str = "") -> str:
        """Pay."""
        paid.append(order)
        return "receipt 1"

    steps = [[{"order": 17}], [{"order": 17}]]
    with Effects("memory:") as effects:
        failures = Failures(ledger=effects, effects={"act": ToolEffect(key="order")}, scope="task")
        texts, _ = run_steps(act, steps, failures)
    assert (texts, paid) == (["receipt 1", "receipt 1"], [17])


def test_a_second_handoff_is_made():
    """A Command that goes to another node is neither recorded nor repeated; one that only updates the state is an effect."""
    done = []

    def act(order: int, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Act."""
        done.append(order)
        told = ToolMessage(f"receipt {len(done)}", tool_call_id=tool_call_id)
        return Command(goto="over" if handing else (), update={"messages": [told]})

    for handing in (True, False):
        done.clear()
        with Effects("memory:") as effects:
            ours = Failures(effects=effects, scope="task")
            node = ToolNode(
                [StructuredTool.from_function(act, name="act")],
                wrap_tool_call=ours.wrap_tool_call,
                awrap_tool_call=ours.awrap_tool_call,
            )
            texts = []
            for number in range(2):
                call = {"name": "act", "args": {"order": 17}, "id": f"call-{number}"}
                asked = AIMessage("", tool_calls=[call])
                graph = StateGraph(MessagesState)
                graph.add_node("ask", lambda state, asked=asked: {"messages": [asked]})
                graph.add_node("tools", node)
                graph.add_node("over", lambda state: {})
                graph.add_edge(START, "ask")
                graph.add_edge("ask", "tools")
                compiled = graph.compile()
                state = compiled.invoke({"messages": [{"role": "user", "content": "act"}]})
                texts.append(state["messages"][-1].content)
            assert [each.state for each in effects.list()] == ([] if handing else ["done"])
        assert done == ([17, 17] if handing else [17])
        if not handing:
            assert "ALREADY_DONE" in texts[1]
            assert "receipt 1" in texts[1]
