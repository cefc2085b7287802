"""A2A agents as agents: skills, artifacts, questions."""

from contextlib import asynccontextmanager

from amends.bindings import a2a as a2a_binding
from amends.errors import RateLimitedError
from amends.tasks.remote.a2a import A2aAgent
from tests.bindings import agents as a2a_agents
from tests.http.serving import serve
from tests.ports import free_port
from tests.tasks.remote.orchestrated import SOON, orchestrated


@asynccontextmanager
async def a2a_server(work, **options):
    with serve(a2a_agents.application(a2a_binding.guard(a2a_agents.Agent(work, **options)))) as base:
        yield a2a_agents.card(base)


async def test_an_a2a_agents_skills():
    """Data in, artifacts out; failures become task errors, questions become the task's."""
    from a2a.types.a2a_pb2 import Part
    from google.protobuf.json_format import MessageToDict, ParseDict

    seen = []

    async def work(context, updater):
        parts = context.message.parts
        seen.append((MessageToDict(context.message.metadata), context.message.message_id))
        skill = context.message.metadata["skill"]
        await updater.start_work()
        if skill == "fail":
            raise RateLimitedError("slow down", retry_after=600)
        if skill == "ask" and len(parts) < 2:
            await updater.requires_input(updater.new_agent_message([Part(text="Which city?")]))
            return
        data = MessageToDict(parts[0].data) if parts and parts[0].WhichOneof("content") == "data" else None
        answers = [part.text for part in parts[1:]]
        await updater.add_artifact(
            [ParseDict({"data": {"got": data, "answers": answers, "n": 3}}, Part())], artifact_id="r"
        )
        await updater.complete()

    async with a2a_server(work) as card:
        agent = A2aAgent("travel-agent", card, read_only=["plan", "fail", "ask"])
        async with orchestrated(agent) as orchestrator:
            done = await orchestrator.run("plan", {"to": "Rome"}, agent="travel-agent", id="p")
            assert done.result == {"got": {"to": "Rome"}, "answers": [], "n": 3}
            assert seen[0] == ({"skill": "plan", "idempotencyKey": "p/plan"}, "p/plan")
            failed = await orchestrator.run("fail", {}, agent="travel-agent")
            assert failed.error.code == "RATE_LIMITED"
            assert failed.error.retry_after == 600
            handle = await orchestrator.submit("ask", {"x": 1}, agent="travel-agent")
            asked = await handle.wait()
            assert asked.input["question"] == "Which city?"
            await handle.answer("Rome")
            assert (await handle.wait()).result["answers"] == ["Rome"]


async def test_an_a2a_agent_that_does_not_run():
    """The call had no effect, so it is retried, then AGENT_UNAVAILABLE."""
    card = a2a_agents.card(f"http://127.0.0.1:{free_port()}")
    async with orchestrated(A2aAgent("travel-agent", card)) as orchestrator:
        gone = await orchestrator.run("plan", "as text", agent="travel-agent", retry_policy=SOON)
        assert gone.error.code == "AGENT_UNAVAILABLE"


async def test_artifacts_in_pieces_files_and_several_questions():
    """Each part becomes one value of the result; all answers are sent again."""
    from a2a.types.a2a_pb2 import Part

    async def work(context, updater):
        parts, skill = context.message.parts, context.message.metadata["skill"]
        await updater.start_work()
        if skill == "asks" and len(parts) < 3:
            await updater.requires_input(updater.new_agent_message([Part(text=f"Question {len(parts)}")]))
            return
        if skill == "pieces":
            await updater.add_artifact([Part(text="one")], artifact_id="r", last_chunk=False)
            await updater.add_artifact([Part(text="two")], artifact_id="r", append=True, last_chunk=True)
            await updater.add_artifact([Part(url="https://files.example/x", filename="x")], artifact_id="f")
        else:
            await updater.add_artifact(
                [Part(text=" ".join(part.text for part in parts[1:]))], artifact_id="r"
            )
        await updater.complete()

    async with a2a_server(work) as card:
        agent = A2aAgent("travel-agent", card, read_only=["asks", "pieces"])
        async with orchestrated(agent) as orchestrator:
            pieces = await orchestrator.run("pieces", agent="travel-agent")
            assert pieces.result == ["one", "two", {"url": "https://files.example/x", "filename": "x"}]
            handle = await orchestrator.submit("asks", agent="travel-agent")
            for number, answer in ((1, "Rome"), (2, {"nights": 3})):
                assert (await handle.wait()).input["question"] == f"Question {number}"
                await handle.answer(answer)
            assert (await handle.wait()).result == 'Rome {"nights":3}'


async def test_an_a2a_agent_that_answers_without_a_task():
    """A message is a result, too. A task without a payload sends one part."""
    from a2a.types.a2a_pb2 import Part

    async def work(context, updater):
        (part,) = context.message.parts
        message = updater.new_agent_message([Part(text=f"hello {part.WhichOneof('content')}")])
        await updater.event_queue.enqueue_event(message)

    async with a2a_server(work, opening=False) as card, orchestrated(A2aAgent("host", card)) as orchestrator:
        assert (await orchestrator.run("greet", agent="host", deadline=30)).result == "hello data"
