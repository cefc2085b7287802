"""Google ADK's runner with a scripted model."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types

from amends.bindings.google_adk import Failures
from tests.frameworks import catalogue


class Scripted(BaseLlm):
    """A model that calls the tool a number of times and then answers."""

    left: int = 0

    async def generate_content_async(self, llm_request, stream=False):
        if self.left == 0:
            part = types.Part(text="the end")
        else:
            self.left -= 1
            part = types.Part(function_call=types.FunctionCall(name="act", args={"order": 17}))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def runner(failures=None):
    async def work(tool, times):
        tool.__name__ = "act"
        agent = LlmAgent(
            name="helper", model=Scripted(model="scripted", left=times), tools=[FunctionTool(tool)]
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

    return lambda tool, times: asyncio.run(work(tool, times))


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
