"""The client against the SDK's own server, and against servers that are none."""

import asyncio
import gc
import json
from contextlib import aclosing, asynccontextmanager

import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.interceptors import ClientCallInterceptor
from a2a.server.tasks import InMemoryPushNotificationConfigStore
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Part,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict, ParseDict

from amends import FaultError, Operation, Policy, Upstream, arecover, extract
from amends.bindings.a2a import Client, guard, reject
from amends.bindings.a2a.hearing import http_client_of
from amends.errors import (
    ConflictError,
    NotFoundError,
    RateLimitedError,
    ServiceUnavailableError,
    TimeoutError,  # noqa: A004
    UnauthenticatedError,
    ValidationError,
)
from amends.errors.adcp import BudgetTooLowError
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.agents import (
    PATHS,
    SOME,
    Agent,
    Desk,
    Store,
    application,
    card,
    config,
    events_of,
    failing,
    http_client,
    request,
    works,
)
from tests.http.serving import serve

every_path = pytest.mark.parametrize("path", PATHS, ids=str)
some_paths = pytest.mark.parametrize("path", SOME, ids=str)
ONCE, STREAM = PATHS[0], PATHS[1]
STREAMS = [path for path in PATHS if path.streaming]


class Line:
    """What is between the client and the server: by default a wire."""

    def __init__(self, app):
        self.app = app
        self.first = None
        """Done instead of the first requests to messages, one function each."""

    async def __call__(self, scope, receive, send):
        if self.first and ("message" in scope["path"] or scope["path"] in {"/rpc", "/card"}):
            await self.first.pop(0)(self.app, scope, receive, send)
        else:
            await self.app(scope, receive, send)


async def lost(app, scope, receive, send):
    """The request arrives, the answer does not."""

    async def nowhere(message):
        pass

    await app(scope, receive, nowhere)
    await broken(app, scope, receive, send)


async def broken(app, scope, receive, send):
    """A promise of an answer, and then the line is down."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
    await send({"type": "http.response.body", "body": b"{", "more_body": True})
    raise ConnectionResetError


def cut(after):
    """The answer breaks off after some of its pieces."""

    async def line(app, scope, receive, send):
        left = after

        async def some(message):
            nonlocal left
            await send(message)
            if message["type"] == "http.response.body":
                left -= 1
                if left == 0:
                    raise ConnectionResetError

        await app(scope, receive, some)

    return line


def answers(status, body=b"", **headers):
    """Somebody else answers."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def line(app, scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": named})
        await send({"type": "http.response.body", "body": body})

    return line


@pytest.fixture(scope="module")
def served():
    agent, store = Agent(works), Store()
    line = Line(application(guard(agent), store=store, wrap=guard, push_config_store=_push()))
    with serve(line, timeout_graceful_shutdown=1) as base:
        found = Desk(base, agent, store)
        found.line = line
        yield found


def _push():
    return InMemoryPushNotificationConfigStore()


@pytest.fixture
def desk(served):
    served.line.first = []
    return served.does(works)


@pytest.fixture(scope="module")
def bare():
    """The SDK's server without a guard."""
    agent, store = Agent(works), Store()
    with serve(application(agent, store=store), timeout_graceful_shutdown=1) as base:
        yield Desk(base, agent, store)


@asynccontextmanager
async def client_for(base, path, *, patience=100, **options):
    async with (
        http_client(timeout=patience) as http,
        Client(card(base, path), config=config(path, httpx_client=http), **options) as it,
    ):
        yield it


def states(events):
    return [TaskState.Name(event.task.status.state)[11:] for event in events if event.HasField("task")]


def failing_until(number, error):
    """Work that succeeds the nth time."""
    count = 0

    async def work(context, updater):
        nonlocal count
        count += 1
        if count < number:
            raise error
        await works(context, updater)

    return work


# What failed, typed ----------------------------------------------------------------------------------------------


@every_path
async def test_what_goes_well_comes_through(path, bare):
    """The events of the SDK's own client."""
    bare.does(works)
    seen = []
    async with bare.client(path) as plain, client_for(bare.base, path) as ours:
        for client in (plain, ours):
            seen.append([event.WhichOneof("payload") async for event in client.send_message(request())])
    assert seen[0] == seen[1]


@every_path
async def test_a_plain_servers_failed_task_is_a_typed_error(path, bare):
    """The SDK on the other side, with an artifact as S4 has it; a retry cannot help, so there is none."""
    error = {"code": "BUDGET_TOO_LOW", "message": "Below 500", "recovery": "correctable", "field": "budget"}

    async def work(context, updater):
        part = Part()
        ParseDict({"adcp_error": error}, part.data.struct_value)
        await updater.add_artifact([Part(text="Below 500"), part], artifact_id="error-result")
        await updater.failed()

    bare.does(work)
    async with client_for(bare.base, path) as client:
        with pytest.raises(BudgetTooLowError) as caught:
            await events_of(client)
    assert (caught.value.fault.field, caught.value.decision.action) == ("budget", "fix")
    assert caught.value.fault.origin.path == "artifact"
    assert bare.agent.calls == 1


@some_paths
@pytest.mark.parametrize("state", ["failed", "reject"])
async def test_a_failure_in_prose_is_an_error_too(path, state, bare):
    """A task that failed without structure: nobody knows; one that was rejected was not begun."""

    async def work(context, updater):
        await getattr(updater, state)(updater.new_agent_message([Part(text="Not to\u202eday")]))

    bare.does(work)
    async with client_for(bare.base, path) as client:
        with pytest.raises(FaultError) as caught:
            await events_of(client)
    fault = caught.value.fault
    assert (fault.code, fault.message) == ("INTERNAL_ERROR", "Not today")
    assert (fault.recovery, fault.executed) == (
        ("uncertain", "maybe") if state == "failed" else ("terminal", "no")
    )
    assert caught.value.decision.action == ("verify" if state == "failed" else "escalate")
    assert bare.agent.calls == 1


@every_path
async def test_a_bare_servers_exception_is_not_repeated(path, bare):
    """The SDK answers with −32603 and the text; it may have happened."""
    bare.does(failing(OSError("disk")), opening=False)
    async with client_for(bare.base, path) as client:
        with pytest.raises(FaultError) as caught:
            await events_of(client)
    assert caught.value.fault.executed == "maybe"
    assert bare.agent.calls == 1


@every_path
async def test_a_guarded_server_is_waited_for(path, desk):
    """Rate limited twice: two waits as asked for, three tasks, one result."""
    desk.does(failing_until(3, RateLimitedError("Slow down", retry_after=2)))
    with FakeClock() as clock:
        async with client_for(desk.base, path) as client:
            events = [event async for event in client.send_message(request())]
    assert clock.waits == [2, 2]
    assert desk.agent.calls == 3
    last = events[-1]
    final = last.task.status if last.HasField("task") else last.status_update.status
    assert final.state == TaskState.TASK_STATE_COMPLETED
    assert "TASK_STATE_FAILED" not in str(events)


@some_paths
async def test_bounds_end_it(path, desk):
    """A11: three attempts, then the error with everything that was tried."""
    desk.does(failing(RateLimitedError("Slow down", retry_after=2)))
    with FakeClock():
        async with client_for(desk.base, path) as client:
            with pytest.raises(RateLimitedError) as caught:
                await events_of(client)
    assert (len(caught.value.history), caught.value.decision.reason) == (3, "attempts")
    assert desk.agent.calls == 3


@some_paths
@pytest.mark.parametrize("collapse", [False, True])
async def test_rejections_before_the_agent_are_read_and_waited_for(path, collapse, desk):
    """S4's JSON-RPC error: the SDK's client throws its data away, ours has heard it."""
    turns = [RateLimitedError("Slow down", retry_after=3), UnauthenticatedError("Who?")]

    def check(scope):
        if turns:
            raise turns.pop(0)

    async def gate(app, scope, receive, send):
        await reject(app, check, collapse=collapse)(scope, receive, send)

    renewed = []
    desk.line.first = [gate, gate]
    with FakeClock() as clock:
        async with client_for(desk.base, path, refresh=lambda: renewed.append(1)) as client:
            assert await events_of(client)
    assert (clock.waits, renewed, desk.agent.calls) == ([3], [1], 1)


@every_path
async def test_http_answers_are_read_with_their_waits(path, desk):
    """A proxy in front: 429 and 503 with Retry-After, which the SDK's client throws away."""
    desk.line.first = [answers(429, retry_after="4"), answers(503, retry_after="2")]
    with FakeClock() as clock:
        async with client_for(desk.base, path) as client:
            with pytest.raises(FaultError) as caught:
                await events_of(client)
            assert (caught.value.fault.status, caught.value.decision.action) == (503, "verify")
            desk.line.first = [answers(429, retry_after="4"), answers(503, retry_after="2")]
            client._repeatable = True
            assert await events_of(client)
    assert clock.waits == [4, 4, 2]


@some_paths
async def test_a_problem_document_in_front_is_read(path, desk):
    """Not only S4 speaks HTTP."""
    body = json.dumps({"title": "No", "status": 403, "detail": "Not from here"}).encode()
    desk.line.first = [answers(403, body, content_type="application/problem+json")]
    async with client_for(desk.base, path) as client:
        with pytest.raises(FaultError) as caught:
            await events_of(client)
    assert (caught.value.fault.message, caught.value.decision.action) == ("Not from here", "escalate")
    assert desk.agent.calls == 0


async def test_numbers_alone_say_something():
    """A rejection without data: by its number."""

    async def app(scope, receive, send):
        body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32029, "message": "x"}}
        await answers(200, json.dumps(body).encode(), content_type="application/json")(
            None, scope, receive, send
        )

    with serve(app) as base, FakeClock() as clock:
        async with client_for(base, ONCE) as client:
            with pytest.raises(RateLimitedError):
                await events_of(client)
    assert clock.waits


async def test_events_instead_of_an_error(desk):
    """errors="return": recovery as ever, then what the agent said."""
    desk.does(failing(RateLimitedError("Slow down", retry_after=2)))
    with FakeClock() as clock:
        for path in (ONCE, STREAM):
            async with client_for(desk.base, path, errors="return") as client:
                events = await events_of(client)
            assert extract(events[-1]).code == "RATE_LIMITED"
    assert len(clock.waits) == 4


# What may be repeated --------------------------------------------------------------------------------------------


@some_paths
async def test_what_may_have_happened_is_not_repeated(path, desk):
    """A foreign exception on the other side: one call, and the advice to verify."""
    desk.does(failing(OSError("x")))
    async with client_for(desk.base, path) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client)
    assert caught.value.decision.action == "verify"
    assert caught.value.fault.extensions["trace_id"]
    assert desk.agent.calls == 1


@pytest.mark.parametrize("said", ["client", "function", "around"])
async def test_unless_the_agent_is_known_to_take_it_for_one(said, desk):
    """The same message id each time, so that an agent that looks can know it."""
    ids = []

    async def work(context, updater):
        ids.append(context.message.message_id)
        if len(ids) < 3:
            raise OSError
        await works(context, updater)

    desk.does(work)
    options = {"client": {"repeatable": True}, "function": {"repeatable": lambda sent: True}}
    sent = request()
    sent.message.message_id = ""
    with FakeClock():
        async with client_for(desk.base, ONCE, **options.get(said, {})) as client:
            if said == "around":
                around = Operation(idempotent=True, key="k")
                await arecover(events_of, client, sent, operation=around, policy=NONE)
            else:
                await events_of(client, sent)
    assert len(ids) == 3
    assert len(set(ids)) == 1
    assert ids[0]
    assert not sent.message.message_id


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_what_was_handed_on_is_not_taken_back(path, desk):
    """After a piece of content there is no second beginning."""

    async def work(context, updater):
        await updater.add_artifact([Part(text="once upon")], artifact_id="story")
        raise RateLimitedError("Slow down", retry_after=1)

    desk.does(work)
    async with client_for(desk.base, path) as client:
        events = []
        with pytest.raises(RateLimitedError) as caught:
            async for event in client.send_message(request()):
                events.append(event)
    assert [event.WhichOneof("payload") for event in events] == ["task", "artifact_update"]
    assert (desk.agent.calls, caught.value.decision.reason) == (1, "attempts")


async def test_a_message_for_a_task_that_failed_is_not_sent_again(desk):
    """It takes no further one."""

    async def work(context, updater):
        if context.current_task is None:
            await updater.requires_input()
        else:
            raise RateLimitedError("Slow down", retry_after=1)

    desk.does(work)
    async with client_for(desk.base, ONCE) as client:
        (event,) = await events_of(client)
        task = event["task"]
        with pytest.raises(RateLimitedError):
            await events_of(client, request(task_id=task["id"], context_id=task["contextId"]))
    assert desk.agent.calls == 2


# Lost and broken answers -----------------------------------------------------------------------------------------


@every_path
async def test_a_lost_answer_is_looked_for_by_its_task(path, desk):
    """GetTask: the message is in its history, so it arrived; the task says what came of it."""

    async def work(context, updater):
        if context.current_task is None:
            await updater.requires_input()
        else:
            await works(context, updater)

    desk.does(work)
    async with client_for(desk.base, path) as client:
        first = (await events_of(client))[-1]
        task = first.get("task") or first["statusUpdate"]
        desk.line.first = [lost]
        ids = {"task_id": task.get("id", task.get("taskId")), "context_id": task["contextId"]}
        with FakeClock():
            events = [event async for event in client.send_message(request(**ids))]
    assert states(events)[-1] == "COMPLETED"
    assert events[-1].task.artifacts[0].parts[0].text == "done"
    assert desk.agent.calls == 2


@pytest.mark.parametrize("path", [ONCE, STREAM], ids=str)
async def test_a_lost_answer_is_looked_for_by_its_context(path, desk):
    """ListTasks, which 0.3 has not; a failure found that way is raised like any other."""
    desk.line.first = [lost]
    async with client_for(desk.base, path) as client:
        with FakeClock():
            events = [event async for event in client.send_message(request(context_id=f"c-{path}"))]
            assert states(events) == ["COMPLETED"]
            desk.does(failing(ConflictError("Taken"))).line.first = [lost]
            with pytest.raises(FaultError) as caught:
                await events_of(client, request(context_id=f"d-{path}"))
    assert (caught.value.fault.code, caught.value.fault.message) == ("CONFLICT", "Taken")
    assert caught.value.decision is not None
    assert desk.agent.calls == 1


@some_paths
async def test_a_lost_answer_nobody_can_find_is_not_sent_again(path, desk):
    """No task, no context, or a protocol without ListTasks: one call, and the advice to verify."""
    async with client_for(desk.base, path) as client:
        for sent in (request(), request(context_id="c-3") if path.version == "0.3" else request()):
            desk.does(works).line.first = [lost]
            with pytest.raises(ServiceUnavailableError) as caught:
                await events_of(client, sent)
            assert caught.value.decision.action == "verify"
            assert desk.agent.calls == 1


async def test_a_lookup_that_finds_nothing_proves_nothing(desk):
    """The message may still be on its way."""
    desk.line.first = [broken]
    async with client_for(desk.base, ONCE) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client, request(context_id="nobody"))
    assert caught.value.decision.action == "verify"
    assert desk.agent.calls == 0


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_a_stream_that_breaks_is_taken_up_where_the_task_is(path, after, desk):
    """By GetTask and SubscribeToTask: nothing is sent twice, and the end arrives."""
    go = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work(context, updater):
        await updater.start_work()
        await updater.add_artifact([Part(text="half")], artifact_id="a")
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        await updater.add_artifact([Part(text="whole")], artifact_id="b")
        await updater.complete()

    desk.does(work).line.first = [cut(after)]
    async with client_for(desk.base, path) as client:
        events = []
        async with aclosing(client.send_message(request())) as stream:
            async for event in stream:
                events.append(event)
                if event.HasField("task") and len(events) > 1:
                    go.set()
    assert desk.agent.calls == 1
    texts = str(events)
    assert "half" in texts
    assert "whole" in texts
    last = events[-1]
    final = last.task.status if last.HasField("task") else last.status_update.status
    assert final.state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_a_broken_stream_whose_task_failed_says_so(path, desk):
    """The failure is the task's, not the line's."""
    desk.does(failing(ValidationError("Which day?", field="/day"))).line.first = [cut(1)]
    async with client_for(desk.base, path) as client:
        with pytest.raises(ValidationError) as caught:
            await events_of(client)
    assert caught.value.fault.field == "/day"


async def test_a_task_that_cannot_be_found_again_is_the_lines_failure(desk):
    """The stream broke, and the agent knows nothing of its task."""
    desk.line.first = [cut(1), answers(503)]
    async with client_for(desk.base, STREAM, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError) as caught:
            await events_of(client)
    assert caught.value.fault.status is None


async def test_a_stream_that_ends_early_is_looked_after(desk):
    """Closed politely before the agent's turn was over: the task knows more."""

    async def ended(app, scope, receive, send):
        messages = []

        async def kept(message):
            messages.append(message)

        await app(scope, receive, kept)
        await send(messages[0])
        await send({**messages[1], "more_body": False})

    desk.line.first = [ended]
    async with client_for(desk.base, STREAM) as client:
        events = [event async for event in client.send_message(request())]
    assert states(events)[-1] == "COMPLETED"


async def test_an_agent_that_stays_at_work_may(desk):
    """The stream ended politely, and the task is not done: it is looked at once."""

    async def work(context, updater):
        await updater.start_work()

    desk.does(work)
    async with client_for(desk.base, STREAM) as client:
        events = [event async for event in client.send_message(request())]
    assert states(events) == ["SUBMITTED", "WORKING"]


async def test_a_task_without_a_sign_is_given_up_on(desk):
    """The stream broke, and nothing happens any more: looked at with growing pauses, for as long as a sign may take."""

    async def work(context, updater):
        await updater.start_work()
        await asyncio.Event().wait()

    desk.does(work).line.first = [cut(1)]
    with FakeClock() as clock:
        async with client_for(desk.base, STREAM, timeout=0.6) as client:
            with pytest.raises(TimeoutError):
                await events_of(client)
    assert clock.waits == [0.5, 1]


# The other calls -------------------------------------------------------------------------------------------------


@some_paths
async def test_looking_and_stopping_recover(path, desk):
    """Reading again, and cancelling again, do no harm."""

    async def stop(context, updater):
        await updater.cancel()

    go = []

    async def work(context, updater):
        await updater.start_work()
        go.append(context.task_id)
        await asyncio.Event().wait()

    desk.does(work, stop=stop)
    flaky = answers(503)
    async with client_for(desk.base, path) as client:
        sending = asyncio.ensure_future(events_of(client))
        while not await _working(client, go):
            await asyncio.sleep(0.01)
        with FakeClock():
            desk.line.first = [flaky] if path.binding == "JSONRPC" else []
            task = await client.get_task(GetTaskRequest(id=go[0]))
            assert task.status.state == TaskState.TASK_STATE_WORKING
            with pytest.raises(NotFoundError if path.version == "1.0" else FaultError):
                await client.get_task(GetTaskRequest(id="nowhere"))
            desk.line.first = [flaky] if path.binding == "JSONRPC" else []
            task = await client.cancel_task(CancelTaskRequest(id=go[0]))
        assert task.status.state == TaskState.TASK_STATE_CANCELED
        await asyncio.gather(sending, return_exceptions=True)


async def test_a_lost_answer_to_stopping(desk):
    """The agent has stopped, and refuses to stop again: that is what was asked for. What has ended otherwise was not stopped."""

    async def stop(context, updater):
        await updater.cancel()

    go = []

    async def work(context, updater):
        await updater.start_work()
        go.append(context.task_id)
        await asyncio.Event().wait()

    desk.does(work, stop=stop)
    async with client_for(desk.base, ONCE) as client:
        sending = asyncio.ensure_future(events_of(client))
        while not await _working(client, go):
            await asyncio.sleep(0.01)
        with FakeClock():
            desk.line.first = [lost]
            task = await client.cancel_task(CancelTaskRequest(id=go[0]))
            assert task.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(ConflictError):
                await client.cancel_task(CancelTaskRequest(id=go[0]))
        await asyncio.gather(sending, return_exceptions=True)
        desk.does(works)
        done = (await events_of(client))[0]["task"]["id"]
        with FakeClock():
            desk.line.first = [broken]
            with pytest.raises(ConflictError):
                await client.cancel_task(CancelTaskRequest(id=done))


async def _working(client, ids):
    try:
        task = await client.get_task(GetTaskRequest(id=ids[0]))
    except (IndexError, FaultError):
        return False
    return task.status.state == TaskState.TASK_STATE_WORKING


async def test_following_a_task(desk):
    """SubscribeToTask: its state, then what happens; over when it is, and a failure is raised."""
    go = asyncio.Event()
    loop = asyncio.get_running_loop()
    error = None

    async def work(context, updater):
        await updater.start_work()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        if error is not None:
            raise error
        await updater.complete()

    desk.does(work)
    for error in (None, ValidationError("Which day?")):
        for errors in ("raise", "return"):
            go.clear()
            async with client_for(desk.base, STREAM, errors=errors) as client:
                async with aclosing(client.send_message(request())) as stream:
                    task_id = (await anext(stream)).task.id
                seen, raised = [], None
                try:
                    async for event in client.subscribe(SubscribeToTaskRequest(id=task_id)):
                        seen.append(event)
                        go.set()
                except ValidationError as exc:
                    raised = exc
                assert (raised is None) == (error is None or errors == "return")
                assert raised is None or raised.decision.action == "fix"
                assert seen[0].HasField("task")
                if raised is None:
                    # As an event, or seen when looked at.
                    last = seen[-1].status_update if seen[-1].HasField("status_update") else seen[-1].task
                    wanted = "COMPLETED" if error is None else "FAILED"
                    assert last.status.state == TaskState.Value(f"TASK_STATE_{wanted}")
                with pytest.raises(NotFoundError):
                    await anext(client.subscribe(SubscribeToTaskRequest(id="nowhere")))


@pytest.mark.parametrize("errors", ["raise", "return"])
@pytest.mark.parametrize("state", ["failed", None])
async def test_a_task_looked_at_between_its_error_and_its_state(bare, errors, state):
    """Half of a failure is no end: it is followed to the state, or to where nothing more is to be seen."""
    error = {"code": "BUDGET_TOO_LOW", "message": "Below 500", "recovery": "correctable"}
    go = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work(context, updater):
        part = Part()
        ParseDict({"adcp_error": error}, part.data.struct_value)
        await updater.start_work()
        await updater.add_artifact([part], artifact_id="error-result")
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        if state is not None:
            await updater.failed()

    bare.does(work)
    async with http_client() as http:
        plain = ClientFactory(config(STREAM, httpx_client=http)).create(card(bare.base, STREAM))
        async with aclosing(plain.send_message(request())) as events:
            async for event in events:
                if event.HasField("artifact_update"):
                    break
        task_id = event.artifact_update.task_id

        async def looked(response):
            # The answer to GetTask has come, and says that it is at work: only now it goes on.
            await response.aread()
            go.set()
            http.event_hooks["response"].remove(looked)

        http.event_hooks["response"].append(looked)
        seen, raised = [], None
        async with Client(plain, errors=errors, timeout=1 if state is None else 60) as client:
            try:
                async for event in client.subscribe(SubscribeToTaskRequest(id=task_id)):
                    seen.append(event)
            except BudgetTooLowError as exc:
                raised = exc
    assert (raised is None) == (errors == "return")
    if errors == "return":
        assert extract(seen[-1] if state is None else seen[0]).code == "BUDGET_TOO_LOW"
        last = seen[-1].status_update if seen[-1].HasField("status_update") else seen[-1].task
        assert (last.status.state == TaskState.TASK_STATE_FAILED) == (state is not None)
    else:
        assert not seen


async def test_lists_pushes_and_cards(desk):
    """Everything else the SDK's client can do goes through, with recovery; what the agent cannot do is an error."""
    async with client_for(desk.base, ONCE) as client:
        (event,) = await events_of(client)
        task_id = event["task"]["id"]
        listed = await client.list_tasks(ListTasksRequest(context_id=event["task"]["contextId"]))
        assert [task.id for task in listed.tasks] == [task_id]
        for config_id in ("", "c"):
            wanted = TaskPushNotificationConfig(task_id=task_id, id=config_id, url="http://x.invalid/")
            with pytest.raises(FaultError):
                await client.create_task_push_notification_config(wanted)
        for call, asked in (
            (client.get_task_push_notification_config, GetTaskPushNotificationConfigRequest),
            (client.list_task_push_notification_configs, ListTaskPushNotificationConfigsRequest),
            (client.delete_task_push_notification_config, DeleteTaskPushNotificationConfigRequest),
        ):
            with pytest.raises(FaultError):
                await call(asked(task_id=task_id))
        assert (await client.get_extended_agent_card(GetExtendedAgentCardRequest())).name == "agent"
    old = next(path for path in PATHS if path.version == "0.3")
    async with client_for(desk.base, old) as client:
        with pytest.raises(ValidationError):
            await client.list_tasks(ListTasksRequest())


# Ways to have one ------------------------------------------------------------------------------------------------


class Count(ClientCallInterceptor):
    def __init__(self):
        self.calls = 0

    async def before(self, args):
        self.calls += 1

    async def after(self, args):
        pass


async def test_by_address_with_the_card_fetched(desk):
    """The card is fetched at the first call, with recovery too; nothing of it is kept open afterwards."""
    document = json.dumps(MessageToDict(card(desk.base))).encode()
    turns = [answers(503), answers(200, document, content_type="application/json")]
    fetched = []

    async def app(scope, receive, send):
        if scope["path"] == "/.well-known/agent-card.json":
            fetched.append(1)
            await turns.pop(0)(None, scope, receive, send)
        else:
            await desk.line(scope, receive, send)

    count, more = Count(), Count()
    with serve(app) as base, FakeClock():
        async with Client(base, config=ClientConfig(streaming=False), interceptors=[count]) as client:
            assert await client.get_extended_agent_card(GetExtendedAgentCardRequest())
            await client.add_interceptor(more)
            assert await events_of(client)
            inside = client._connection._http
        assert inside.is_closed
    assert (len(fetched), count.calls, more.calls) == (2, 2, 1)
    async with Client(base, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError):
            await events_of(client)


async def test_around_a_client_that_is_there(desk):
    """The SDK's own, also with a tenant; what is lost by it is still heard."""
    desk.does(failing(RateLimitedError("Slow down", retry_after=2)))
    async with http_client() as http:
        factory = ClientFactory(config(ONCE, httpx_client=http))
        described = card(desk.base)
        inner = factory.create(described)
        assert http_client_of(inner) is http
        described.supported_interfaces[0].tenant = "t"
        assert http_client_of(factory.create(described)) is http
        client = Client(inner, policy=NONE, upstream=Upstream("agent"))
        with pytest.raises(RateLimitedError):
            await events_of(client)
        desk.does(works).line.first = [answers(429, retry_after="9")]
        with pytest.raises(RateLimitedError) as caught:
            await events_of(Client(inner, policy=NONE))
        assert caught.value.fault.retry_after == 9
        await client.close()
    assert http_client_of(object()) is None


def test_mistakes_are_told():
    """Options that would be ignored are refused."""
    with pytest.raises(ValueError, match="raise"):
        Client("http://x.invalid", errors="ignore")
    inner = ClientFactory().create(card())
    with pytest.raises(TypeError):
        Client(inner, config=ClientConfig())


# Servers that are none -------------------------------------------------------------------------------------------


HTTP = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s\r\n"


def _document(body):
    return HTTP % (b"application/json", b"content-length: %d\r\n" % len(body)) + body


async def _hang(reader, writer):
    await asyncio.Event().wait()


async def _half(reader, writer):
    writer.write_eof()
    await asyncio.Event().wait()


def _says(raw, *, then=None):
    async def talk(reader, writer):
        writer.write(raw)
        await writer.drain()
        while then is not None:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(0)

    return talk


async def _drip(reader, writer):
    for byte in HTTP % (b"application/json", b""):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.02)


async def _silent_stream(reader, writer):
    writer.write(HTTP % (b"text/event-stream", b"connection: close\r\n"))
    await writer.drain()
    await asyncio.Event().wait()


EVENT = b'data: {"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{}}},"id":1}\n\n'
HOSTILE = {
    "hanging": _hang,
    "half-closing": _half,
    "closing": _says(b""),
    "garbage": _says(b"\x00\xff\x13\x37" * 50),
    "a page": _says(_document(b"<html>welcome</html>")),
    "a list": _says(_document(b"[1]")),
    "a number": _says(_document(b"5")),
    "an empty object": _says(_document(b"{}")),
    "a wrong result": _says(_document(b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":5,"status":"x"}}}')),
    "an error that is none": _says(_document(b'{"jsonrpc":"2.0","id":1,"error":"x"}')),
    "half a body": _says(HTTP % (b"application/json", b"content-length: 99\r\n") + b"{"),
    "dripping": _drip,
    "a silent stream": _silent_stream,
    "an empty stream": _says(HTTP % (b"text/event-stream", b"connection: close\r\n")),
    "a stream of nonsense": _says(HTTP % (b"text/event-stream", b"connection: close\r\n") + b"data: x\n\n"),
    "a stream of nothing": _says(HTTP % (b"text/event-stream", b""), then=b": ping\n\n"),
    "half a stream": _says(HTTP % (b"text/event-stream", b"connection: close\r\n") + EVENT),
}


@asynccontextmanager
async def rude(talk):
    """A server that speaks as it likes; yields its address and those who are connected."""
    connected: set = set()

    async def handle(reader, writer):
        task = asyncio.current_task()
        connected.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            answering = asyncio.ensure_future(talk(reader, writer))
            try:
                # Until it has spoken, or the other side has gone.
                while not answering.done() and await _still_there(reader):
                    await asyncio.sleep(0)
            finally:
                answering.cancel()
                await asyncio.gather(answering, return_exceptions=True)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            connected.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connected
    finally:
        server.close()
        await server.wait_closed()


async def _still_there(reader):
    try:
        async with asyncio.timeout(0.05):
            return bool(await reader.read(65536))
    except builtin_timeout:
        return True


builtin_timeout = (
    __builtins__["TimeoutError"] if isinstance(__builtins__, dict) else __builtins__.TimeoutError
)


@pytest.mark.parametrize("kind", [*HOSTILE, "dead"])
async def test_a_server_that_is_none_ends_within_the_deadline(kind):
    """Typed, in time, on every path at once; no task and no connection stays."""
    gc.collect()
    await asyncio.sleep(0)
    before = asyncio.all_tasks()
    async with rude(HOSTILE.get(kind, _hang)) as (base, connected):
        if kind == "dead":
            base = "http://127.0.0.1:9"

        async def send(path):
            # Nothing but the deadline would end it.
            bounds = {"policy": Policy(deadline=0.5), "timeout": 3600, "patience": None}
            async with client_for(base, path, **bounds) as client:
                with pytest.raises(FaultError) as caught:
                    await events_of(client)
                return caught.value

        errors = await asyncio.gather(*(send(path) for path in PATHS))
        while connected or asyncio.all_tasks() - before:
            gc.collect()
            await asyncio.sleep(0.02)
    for error in errors:
        assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT", "INTERNAL_ERROR"}
        assert error.fault.executed == ("no" if kind == "dead" else "maybe")
        assert error.decision is not None
        assert isinstance(error, ServiceUnavailableError | TimeoutError | FaultError)


@pytest.mark.parametrize("path", [ONCE, STREAM], ids=str)
async def test_an_answer_without_end_is_not_kept(path, monkeypatch):
    """The memory is ours."""
    monkeypatch.setattr("amends.bindings.a2a.hearing.LARGEST", 1024 * 1024)
    kind = b"text/event-stream" if path.streaming else b"application/json"
    endless = _says(HTTP % (kind, b""), then=b"x" * 65536)
    async with rude(endless) as (base, _), client_for(base, path, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError):
            await events_of(client)


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_who_stops_listening_leaves_nothing_behind(path, desk):
    """A consumer that breaks off, and one that is cancelled."""

    async def work(context, updater):
        await updater.start_work()
        await asyncio.Event().wait()

    desk.does(work)
    gc.collect()
    before = asyncio.all_tasks()
    async with client_for(desk.base, path) as client:
        async with aclosing(client.send_message(request())) as events:
            await anext(events)
        waiting = asyncio.ensure_future(events_of(client))
        while desk.agent.calls < 2:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        pool = client._connection._config.httpx_client._transport._pool
        while asyncio.all_tasks() != before or [each for each in pool.connections if not each.is_idle()]:
            gc.collect()
            await asyncio.sleep(0.01)
