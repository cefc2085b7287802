"""
LlamaIndex: a tool's failure becomes a text that the model can act on, and does not end the run.

    from llama_index.core.agent.workflow import FunctionAgent
    from amends.bindings.llama_index import Failures

    failures = Failures(read_only=["search"])
    agent = FunctionAgent(tools=[failures.guard(search)], llm=llm)

Failures are counted per run of the workflow.
The `raw_output` of a failure is the fault as plain values; `amends.extract(output.raw_output)` returns the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

try:
    from llama_index.core.llms.llm import LLM
    from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput
    from llama_index.core.workflow import Context
    from llama_index_instrumentation.dispatcher import active_instrument_tags
except ImportError as missing:
    raise ImportError(
        "amends.bindings.llama_index needs LlamaIndex: pip install llama-index-core"
    ) from missing

from amends.bindings.tool_arguments import accepts, by_function, by_model, lacks_required
from amends.bindings.tool_calls import (
    AGAIN,
    Caller,
    OneRun,
    ReturnedError,
    Run,
    ToolFailure,
    check_description,
)
from amends.dialects import encode
from amends.errors import ValidationError

__all__ = ["Failures"]


class Failures(OneRun):
    """Makes tools whose failures are texts for the model."""

    def guard(self, tool: FunctionTool | Callable[..., object]) -> FunctionTool:
        """Return a function or a FunctionTool as a tool that returns the text of its failures."""
        made = tool if isinstance(tool, FunctionTool) else FunctionTool.from_defaults(fn=tool)
        return _Guarded(made, self)

    def model(self, llm: LLM) -> LLM:
        """Return a copy of a model whose calls are recovered within bounds: `FunctionAgent(llm=failures.model(llm), ...)`."""
        return self.calls.models.recovered(
            llm,
            plain=["chat", "complete", "chat_with_tools"],
            awaited=["achat", "acomplete", "achat_with_tools"],
            streams=["astream_chat", "astream_complete", "astream_chat_with_tools"],
        )

    def check(self, tool: FunctionTool) -> FunctionTool:
        """
        Return a tool that finds out whether an earlier call of `tool` happened: `tools=[pay, failures.check(pay)]`.

        The effect of the tool is declared with a verification.
        """
        name = str(tool.metadata.get_name())
        metadata = ToolMetadata(
            name=self.calls.offer_check(name),
            description=check_description(name),
            fn_schema=tool.metadata.fn_schema,
        )

        async def find_out(**arguments: object) -> str:
            received = _received(tool, _named(arguments))
            return await self.run(arguments).acheck(name, received)

        def find_out_plain(**arguments: object) -> str:
            return self.run(arguments).check(name, _received(tool, _named(arguments)))

        return FunctionTool(fn=find_out_plain, metadata=metadata, async_fn=find_out)

    def run(self, arguments: Mapping[str, object]) -> Run:
        """Return the run of a call."""
        context = next((each for each in arguments.values() if isinstance(each, Context)), None)
        found = self.current
        return (
            found
            if context is None
            else found.called_by(msgspec.structs.replace(found.caller, context=context))
        )

    def running(self) -> Caller:
        """Return the run of the workflow that this code is in."""
        return Caller(run=active_instrument_tags.get().get("llamaindex.run_id"))


class _Guarded(FunctionTool):
    """A tool that calls another one. It is a FunctionTool, because agents pass their Context only to those."""

    def __init__(self, tool: FunctionTool, failures: Failures) -> None:
        super().__init__(
            fn=tool.fn, metadata=tool.metadata, async_fn=tool.async_fn, partial_params=tool.partial_params
        )
        # An agent passes its Context to the argument of this name. A tool with a coroutine only has another signature in `fn`.
        self.requires_context, self.ctx_param_name = tool.requires_context, tool.ctx_param_name
        self._guarded, self._failures = tool, failures

    def call(self, *args: object, **kwargs: object) -> ToolOutput:
        """Call the tool."""
        given = self._arguments(args, kwargs)
        received = _received(self._guarded, given)
        result = self._failures.run(kwargs).call(
            self._name,
            received,
            lambda: self._call(args, kwargs),
            asking=_waiting(),
            restore=lambda value: self._restored(value, given),
            failure_of=_returned_error,
            takes_again=AGAIN in received,
        )
        return self._output(result, given)

    async def acall(self, *args: object, **kwargs: object) -> ToolOutput:
        """Call the tool in an event loop."""
        given = self._arguments(args, kwargs)
        received = _received(self._guarded, given)
        result = await self._failures.run(kwargs).acall(
            self._name,
            received,
            lambda: self._acall(args, kwargs),
            asking=_waiting(),
            restore=lambda value: self._restored(value, given),
            failure_of=_returned_error,
            takes_again=AGAIN in received,
        )
        return self._output(result, given)

    def _call(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> ToolOutput:
        try:
            return self._guarded.call(*args, **kwargs)
        except TypeError as error:
            if self._is_refused(args, kwargs):
                raise ValidationError("The tool does not take these arguments", executed="no") from error
            raise

    async def _acall(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> ToolOutput:
        try:
            return await self._guarded.acall(*args, **kwargs)
        except TypeError as error:
            if self._is_refused(args, kwargs):
                raise ValidationError("The tool does not take these arguments", executed="no") from error
            raise

    def _is_refused(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        """Return whether the function was not called, because a required argument is missing, or it does not have one."""
        bound = {**self._guarded.partial_params, **kwargs}
        if not args and lacks_required(self._guarded.metadata.get_parameters_dict(), bound):
            return True
        return not accepts(self._guarded.real_fn, args, bound)

    @property
    def _name(self) -> str:
        return str(self._guarded.metadata.get_name())

    @staticmethod
    def _arguments(args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        return {**_named(kwargs), **({"args": list(args)} if args else {})}

    def _restored(self, value: object, given: dict[str, object]) -> ToolOutput:
        """Return the output of a call whose outcome the ledger has: a stored output, or a value that a person gave."""
        raw = value["raw_output"] if isinstance(value, Mapping) and "raw_output" in value else value
        return ToolOutput(tool_name=self._name, content=str(raw), raw_input=given, raw_output=raw)

    def _output(self, result: object, given: dict[str, object]) -> ToolOutput:
        if not isinstance(result, ToolFailure):
            output: ToolOutput = result
            return output
        return ToolOutput(
            tool_name=self._name,
            content=result.text,
            raw_input=given,
            # Plain values, because a workflow's context is stored with them.
            raw_output=encode(result.fault, "envelope"),
            is_error=True,
        )


def _received(tool: FunctionTool, arguments: dict[str, object]) -> dict[str, object]:
    """Return the arguments that the tool receives: those of its schema, and those that its author gave in advance."""
    return by_function(tool.real_fn, {**by_model(tool.metadata.fn_schema, arguments), **tool.partial_params})


def _named(arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in arguments.items() if not isinstance(value, Context)}


def _returned_error(output: object) -> Exception | None:
    return ReturnedError() if getattr(output, "is_error", False) is True else None


def _waiting() -> tuple[type[BaseException], ...]:
    """The exception with which a workflow waits for an event; it passes through."""
    try:
        from workflows.runtime.types.results import WaitingForEvent
    except ImportError:
        return ()
    return (WaitingForEvent,)
