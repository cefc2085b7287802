"""LlamaIndex's FunctionAgent with a scripted model."""

import asyncio
import json
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool

from amends import extract
from amends.bindings.llama_index import Failures
from amends.errors import NotFoundError
from tests.frameworks import catalogue


class Scripted(FunctionCallingLLM):
    """A model that calls the tool a number of times and then answers."""

    left: int = 0
    steps: list[list[dict[str, Any]]] = []

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    def _response(self) -> ChatResponse:
        if self.left == 0:
            return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content="the end"))
        self.left -= 1
        return ChatResponse(
            message=ChatMessage(
                role=MessageRole.ASSISTANT, content="", additional_kwargs={"call": f"c{self.left}"}
            )
        )

    async def achat(self, *args: Any, **options: Any) -> ChatResponse:
        return self._response()

    async def astream_chat(self, *args: Any, **options: Any) -> Any:
        async def once() -> Any:
            yield self._response()

        return once()

    async def astream_chat_with_tools(self, *args: Any, **options: Any) -> Any:
        return await self.astream_chat()

    async def achat_with_tools(self, *args: Any, **options: Any) -> ChatResponse:
        return self._response()

    def get_tool_calls_from_response(self, response: ChatResponse, **options: Any) -> list[ToolSelection]:
        call = response.message.additional_kwargs.get("call")
        if call and self.steps:
            asked = self.steps[len(self.steps) - 1 - self.left]
            return [
                ToolSelection(tool_id=f"{call}-{index}", tool_name="act", tool_kwargs=arguments)
                for index, arguments in enumerate(asked)
            ]
        return [ToolSelection(tool_id=call, tool_name="act", tool_kwargs={"order": 17})] if call else []

    def _prepare_chat_with_tools(self, *args: Any, **options: Any) -> dict[str, Any]:
        return {}

    def chat(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    stream_chat = complete = stream_complete = chat

    async def acomplete(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    astream_complete = acomplete


def runner(failures=None, *, asynchronous=False):
    async def work(tool, times):
        made = failures or Failures()
        function = {"async_fn": tool} if asynchronous else {"fn": tool}
        guarded = made.guard(FunctionTool.from_defaults(**function, name="act", description="Act"))
        agent = FunctionAgent(tools=[guarded], llm=Scripted(left=times))
        handler = agent.run("act", max_iterations=20)
        texts = []
        async for event in handler.stream_events():
            output = getattr(event, "tool_output", None)
            if output is not None:
                texts.append(output.content)
        return texts, str(await handler) == "the end"

    return lambda tool, times: asyncio.run(work(tool, times))


def test_the_catalogue():
    """The model reads the same facts as everywhere, and the run goes on."""
    catalogue.check(runner())


def test_loops_and_success():
    """Loops are broken; results pass; the next run of the same object starts anew."""
    failures = Failures()
    catalogue.check_loop(runner(failures))
    catalogue.check_success(runner(failures))


def test_recovery_and_ledger():
    """A tool that only reads is repeated; another one has its effect once."""
    catalogue.check_recovery_and_ledger(lambda **options: runner(Failures(**options)))


def test_the_ledger_hands_out_an_outcome():
    """Two equal calls at once have one effect, and each an output; a repeat on purpose needs a reason."""

    async def work(function, steps, failures):
        guarded = failures.guard(FunctionTool.from_defaults(fn=function, name="act", description="Act"))
        outputs = []
        for calls in steps:
            outputs += await asyncio.gather(*(guarded.acall(**each) for each in calls))
        return [output.content for output in outputs], True

    catalogue.check_ledger_answers(
        lambda function, steps, **options: asyncio.run(work(function, steps, Failures(**options))),
        parallel=False,
    )


async def test_a_failure_in_a_stored_context():
    """The context of a workflow can be stored after a failure, and the fault can be read from the event."""

    def act(order: int) -> str:
        raise NotFoundError("There is no such order")

    guarded = Failures().guard(FunctionTool.from_defaults(fn=act, name="act", description="Act"))
    handler = FunctionAgent(tools=[guarded], llm=Scripted(left=2)).run("act")
    codes = []
    async for event in handler.stream_events():
        json.dumps(handler.ctx.to_dict())
        output = json.loads(event.model_dump_json()).get("tool_output")
        if output is not None:
            codes.append(extract(output["raw_output"]).code)
    await handler
    assert codes == ["NOT_FOUND", "NOT_FOUND"]


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options), asynchronous=True))


async def steps_of(function, steps, failures):
    """Return the texts that the model got from calls with these arguments."""
    made = (
        function
        if isinstance(function, FunctionTool)
        else FunctionTool.from_defaults(fn=function, name="act", description="Act")
    )
    guarded = failures.guard(made)
    handler = FunctionAgent(tools=[guarded], llm=Scripted(left=len(steps), steps=steps)).run("act")
    texts = []
    async for event in handler.stream_events():
        output = getattr(event, "tool_output", None)
        if output is not None:
            texts.append(output.content)
    return texts, str(await handler) == "the end"


def test_a_replanned_call_is_the_same_payment():
    """A default written out, an argument too many, a number as text: the model means the same order."""
    catalogue.check_replanned(
        lambda function, steps, **options: asyncio.run(steps_of(function, steps, Failures(**options)))
    )
    catalogue.check_replanned_values(
        lambda function, steps, **options: asyncio.run(steps_of(function, steps, Failures(**options)))
    )


def test_a_ledger_needs_a_scope():
    """One ledger never spans all users."""
    catalogue.check_scope(Failures)


def test_refused_arguments_are_no_doubt():
    """Wrong arguments did not reach the tool, so nothing is in doubt."""
    catalogue.check_refused_arguments(
        lambda function, steps, **options: asyncio.run(steps_of(function, steps, Failures(**options)))
    )


def test_a_returned_error_is_no_success():
    """An output with `is_error`: the ledger does not record it as done."""

    class Declined(FunctionTool):
        def call(self, *args, **kwargs):
            output = super().call(*args, **kwargs)
            output.is_error = True
            return output

        async def acall(self, *args, **kwargs):
            return self.call(*args, **kwargs)

    def declined(calls):
        def act(order: int) -> str:
            """Act on an order."""
            calls.append(order)
            return "declined"

        return Declined.from_defaults(fn=act, name="act", description="Act")

    def bind(**options):
        return lambda made, steps: asyncio.run(steps_of(made, steps, Failures(**options)))

    catalogue.check_returned_errors(bind, declined)
