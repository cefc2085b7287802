"""A guarded agent on the SDK's own server, read by the SDK's own client, over every path the protocol has."""

import asyncio
import json
import logging

import httpx
import pytest
from a2a.server.agent_execution import RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import QueueShutDown
from a2a.server.events.event_queue_v2 import EventQueueSource
from a2a.server.request_handlers import LegacyRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
)
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from starlette.applications import Starlette

from amends import extract
from amends.bindings.a2a import guard, reject
from amends.carriers.a2a import MIME_TYPE
from amends.errors import (
    NotFoundError,
    RateLimitedError,
    ServiceUnavailableError,
    UnauthenticatedError,
    ValidationError,
)
from amends.errors.adcp import AuthInvalidError, BudgetTooLowError
from tests.bindings.agents import (
    PATHS,
    SOME,
    Agent,
    Path,
    agent_server,
    application,
    card,
    desk_server,
    events_of,
    failing,
    http_client,
    plain_client,
    request,
    works,
)
from tests.foreign.test_leaks import POISONS, poisoned
from tests.http.serving import serve


@pytest.fixture(scope="module")
def served():
    with desk_server(guard) as found:
        yield found


@pytest.fixture(scope="module")
def bare():
    with agent_server(Agent(works)) as base:
        yield base


@pytest.fixture
def desk(served):
    return served.does(works)


every_path = pytest.mark.parametrize("path", PATHS, ids=str)
some_paths = pytest.mark.parametrize("path", SOME, ids=str)
JSONRPC, STREAM = PATHS[0], PATHS[1]
CUT = Path("HTTP+JSON", "0.3", True)


def error_in(events):
    """The adcp_error of the last event, with the parts it stands beside."""
    last = events[-1]
    if "task" in last:
        (artifact,) = last["task"]["artifacts"]
        assert last["task"]["status"]["state"] == "TASK_STATE_FAILED"
    else:
        assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_FAILED"
        artifact = events[-2]["artifactUpdate"]["artifact"]
    text, data = artifact["parts"]
    assert list(data["data"]) == ["adcp_error"]
    return text["text"], data["data"]["adcp_error"]


@every_path
@pytest.mark.parametrize("opening", [True, False], ids=["in-its-task", "before-any-task"])
async def test_a_typed_error_is_a_failed_task(path, opening, desk):
    """A4: an artifact with a text part and a data part that holds the error alone; the status message says it too."""
    error = RateLimitedError("Too many quotes", retry_after=4.2, details={"limit": 5})
    desk.does(failing(error), opening=opening)
    async with desk.client(path) as client:
        events = await events_of(client)
    text, said = error_in(events)
    assert text == "Too many quotes. Retry in 5 s."
    assert said == {
        "code": "RATE_LIMITED",
        "message": "Too many quotes",
        "recovery": "transient",
        "retry_after": 5,
        "details": {"limit": 5},
    }
    fault = extract(events[-1])
    assert (fault.code, fault.retry_after, fault.executed) == ("RATE_LIMITED", 5, "no")
    spoken = events[-1].get("task", events[-1].get("statusUpdate"))["status"]["message"]
    assert spoken["role"] == "ROLE_AGENT"
    assert [part.get("text") for part in spoken["parts"]] == [text, None]


@every_path
async def test_a_foreign_exception_shows_nothing_and_is_logged_with_its_trace(path, caplog, desk):
    """SERVICE_UNAVAILABLE in our words; the id in the answer finds the log line."""
    caplog.set_level(logging.ERROR, "amends.a2a")
    exc = ValueError("password of db.internal is hunter2")
    desk.does(failing(exc))
    async with desk.client(path) as client:
        events = await events_of(client)
    _, said = error_in(events)
    assert (said["code"], said["recovery"]) == ("SERVICE_UNAVAILABLE", "transient")
    assert "hunter2" not in json.dumps(events)
    (record,) = [each for each in caplog.records if each.name == "amends.a2a"]
    assert said["trace_id"] in record.getMessage()
    assert record.exc_info[1] is exc


@every_path
async def test_what_goes_well_is_untouched(path, bare, desk):
    """The same events as without a guard, but for ids and times."""
    seen = []
    for base in (bare, desk.base):
        async with plain_client(base, path) as client:
            seen.append([_shape(event) for event in await events_of(client)])
    assert seen[0] == seen[1]


def _shape(value):
    if isinstance(value, dict):
        moving = {"id", "taskId", "contextId", "timestamp", "messageId"}
        return {name: _shape(item) for name, item in value.items() if name not in moving}
    return [_shape(item) for item in value] if isinstance(value, list) else value


@some_paths
@pytest.mark.parametrize("state", ["requires_input", "requires_auth"])
async def test_turns_that_ask_back_are_untouched(path, state, desk):
    """Input-required and auth-required are no failures; the next message goes on with the task."""

    async def work(context, updater):
        if context.current_task is None:
            await getattr(updater, state)(updater.new_agent_message([Part(text="Which day?")]))
        else:
            raise ValidationError("No such day", field="/day", suggestions=["Name a weekday"])

    desk.does(work)
    async with desk.client(path) as client:
        first = (await events_of(client))[-1]
        task = first.get("task") or first["statusUpdate"]
        assert (
            task["status"]["state"]
            == {
                "requires_input": "TASK_STATE_INPUT_REQUIRED",
                "requires_auth": "TASK_STATE_AUTH_REQUIRED",
            }[state]
        )
        ids = {"task_id": task.get("id", task.get("taskId")), "context_id": task["contextId"]}
        text, said = error_in(await events_of(client, request("Someday", **ids)))
    assert (text, said["field"]) == ("No such day. Name a weekday", "/day")


async def test_the_mime_type_is_written_where_it_is_asked_for():
    """A4: optional."""
    for asked in (True, False):
        with agent_server(guard(Agent(failing(NotFoundError("None"))), mime_type=asked)) as base:
            async with plain_client(base, JSONRPC) as client:
                (event,) = await events_of(client)
        data = event["task"]["artifacts"][0]["parts"][1]
        assert data.get("mediaType") == (MIME_TYPE if asked else None)


async def test_the_callers_trace_is_kept(desk):
    """One id from end to end."""
    desk.does(failing(OSError("x")))
    async with desk.client(JSONRPC) as client:
        client._transport.httpx_client.headers["traceparent"] = f"00-{'ab' * 16}-{'cd' * 8}-01"
        assert error_in(await events_of(client))[1]["trace_id"] == "ab" * 16


@every_path
async def test_poisoned_exceptions_leak_nothing(path, desk, caplog):
    """A19: hosts, SQL, paths, tokens, prompts, in every place of an exception a text can be: 1,008 over all paths."""
    for name in ("amends.a2a", "a2a"):
        # A thousand stack traces are nothing to keep.
        caplog.set_level(logging.CRITICAL, name)
    await _poison(desk, path, 126)


async def _poison(desk, path, count):
    """Raised by the executor before its task and in it, many at once; and by the task store, in turn."""
    raised = [_poisoned(number) for number in range(count)]

    async def work(context, updater):
        raise raised[int(context.get_user_input())][0]

    async with http_client() as http:

        async def send(number):
            exc, poison = raised[number]
            raw = await _raw(http, desk.base, path, str(number))
            visible = poison.encode("ascii", "ignore").decode()
            assert "acme" not in raw, (exc, raw)
            assert visible[:8] not in raw, (exc, raw)
            assert '"message"' in raw or path == CUT, raw

        half = count // 2
        for opening in (True, False):
            desk.does(work, opening=opening)
            await asyncio.gather(*(send(number + half * opening) for number in range(half)))
        for number in range(0, count, 10):
            desk.store.error = raised[number][0]
            await send(number)


def _poisoned(number):
    poison = POISONS[number % len(POISONS)]
    if number % 5 == 4:
        return (InternalError, InvalidParamsError, A2AError)[number % 3](poison, {"x": poison}), poison
    return poisoned(f"acme_{number}.Own", poison), poison


async def _raw(http, base, path, text="hi"):
    """The bytes a server answers with, its headers too."""
    message = {"messageId": "m", "parts": [{"text": text}], "role": "ROLE_USER"}
    if path.version == "0.3":
        message = {
            "messageId": "m",
            "kind": "message",
            "parts": [{"kind": "text", "text": text}],
            "role": "user",
        }
    headers = {"A2A-Version": path.version}
    blocking = {"configuration": {"blocking": True}} if path.version == "0.3" else {}
    if path.binding == "JSONRPC":
        method = {
            ("1.0", False): "SendMessage",
            ("1.0", True): "SendStreamingMessage",
            ("0.3", False): "message/send",
            ("0.3", True): "message/stream",
        }[path.version, path.streaming]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message, **blocking}}
        address = f"{base}/rpc"
    else:
        if path.version == "0.3":
            # REST in 0.3 spoke protobuf's JSON.
            message = {"messageId": "m", "content": [{"text": text}], "role": "ROLE_USER"}
        body = {"message": message, **blocking}
        verb = "stream" if path.streaming else "send"
        address = f"{base}{'/v1' if path.version == '0.3' else ''}/message:{verb}"
    raw = []
    async with http.stream("POST", address, json=body, headers=headers) as answer:
        raw.append(str(answer.headers))
        try:
            async for part in answer.aiter_text():
                raw.append(part)
        except httpx.RemoteProtocolError:
            # All that the SDK's REST routes of 0.3 can do once they have begun to stream.
            assert path == CUT
    return "".join(raw)


# Around the executor ---------------------------------------------------------------------------------------------


DOWN = ConnectionError("db-7.acme.internal:5432 refused")


@some_paths
async def test_a_broken_store_is_told_in_our_words(path, desk):
    """The SDK would answer with the exception's text; guarded it is an error with the object in its data."""
    desk.store.error = DOWN
    async with http_client() as http:
        raw = await _raw(http, desk.base, path)
    assert "acme" not in raw
    # The object itself is lost where the SDK's compatibility routes drop it.
    assert "unavailable for now" in raw or path == CUT
    assert "SERVICE_UNAVAILABLE" in raw or path.version == "0.3"


async def test_other_requests_fail_in_our_words_too(desk):
    """Looking up and cancelling go through the same store."""
    desk.store.error = DOWN
    async with desk.client(JSONRPC) as client:
        for call in (client.get_task(GetTaskRequest(id="x")), client.cancel_task(CancelTaskRequest(id="x"))):
            with pytest.raises(InternalError) as caught:
                await call
            assert "acme" not in str(caught.value)


async def test_errors_of_the_protocol_stay_what_they_are(desk):
    """An unknown task is still an unknown task, and says so in the SDK's words."""
    desk.does(works)
    async with desk.client(JSONRPC) as client:
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id="nowhere"))
        with pytest.raises(InvalidParamsError):
            await events_of(client, SendMessageRequest(message=Message(role=Role.ROLE_USER)))


@some_paths
async def test_an_agents_own_protocol_error_keeps_its_kind_and_not_its_words(path, desk):
    """An executor may answer with the protocol's errors; what it wrote into them may have come from inside."""
    work = failing(UnsupportedOperationError("not on db-7.acme.internal", {"host": "acme"}))
    desk.does(work, opening=False)
    async with http_client() as http:
        raw = await _raw(http, desk.base, path)
    assert "acme" not in raw
    assert UnsupportedOperationError.message in raw or path == CUT


async def test_an_upstreams_protocol_error_is_not_this_agents(bare, desk):
    """An agent that calls another: its "task not found" is nothing our caller could act on."""

    async def work(context, updater):
        async with plain_client(bare, JSONRPC) as client:
            await client.get_task(GetTaskRequest(id="x"))

    desk.does(work)
    async with desk.client(JSONRPC) as client:
        assert error_in(await events_of(client))[1]["code"] == "SERVICE_UNAVAILABLE"


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_bad_requests_say_nothing_of_the_inside(version, desk):
    """No JSON, no method, wrong parameters, half a body: answered by the protocol's numbers, without a path or a trace."""
    if True:
        async with httpx.AsyncClient(
            base_url=desk.base, timeout=20, headers={"A2A-Version": version}
        ) as http:
            method = "SendMessage" if version == "1.0" else "message/send"
            bad = [
                b"{",
                b"[]",
                b'"x"',
                b"\xff\xfe",
                json.dumps({"jsonrpc": "2.0", "id": 1, "method": "nope"}).encode(),
                json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": 5}}).encode(),
                json.dumps({"jsonrpc": "1.0", "id": {}, "method": method}).encode(),
            ]
            answers = [await http.post("/rpc", content=body) for body in bad]
            prefix = "" if version == "1.0" else "/v1"
            answers += [await http.post(f"{prefix}/message:send", content=body) for body in bad]
    for answer in answers:
        for word in ("Traceback", "site-packages", "File ", "/usr", "/home"):
            assert word not in answer.text


async def test_a_context_that_cannot_be_built_shows_nothing():
    """Where servers look who is calling: a session store that is down, a token that cannot be read."""

    class Contexts(DefaultServerCallContextBuilder):
        error: Exception = OSError("sessions.acme.internal")

        def build(self, request):
            raise self.error

    builder = Contexts()
    once = guard(builder)
    assert guard(once) is once
    handler = guard(LegacyRequestHandler(Agent(works), InMemoryTaskStore(), card()))
    app = Starlette(routes=create_jsonrpc_routes(handler, "/rpc", context_builder=guard(builder)))
    with serve(app) as base:
        async with http_client() as http:
            raw = await _raw(http, base, JSONRPC)
            assert "acme" not in raw
            assert "SERVICE_UNAVAILABLE" in raw
            builder.error = UnauthenticatedError("No token")
            assert "AUTH_MISSING" in await _raw(http, base, JSONRPC)
            builder.error = UnsupportedOperationError("at /srv/acme/x.py")
            raw = await _raw(http, base, JSONRPC)
            assert "-32004" in raw
            assert "acme" not in raw


async def test_the_older_request_handler_too():
    """LegacyRequestHandler runs the same executor in another way."""
    for error, code in (
        (BudgetTooLowError("Too little"), "BUDGET_TOO_LOW"),
        (OSError("x"), "SERVICE_UNAVAILABLE"),
    ):
        handler = guard(LegacyRequestHandler(guard(Agent(failing(error))), InMemoryTaskStore(), card()))
        with serve(Starlette(routes=create_jsonrpc_routes(handler, "/rpc"))) as base:
            for path in (JSONRPC, STREAM):
                async with plain_client(base, path) as client:
                    assert error_in(await events_of(client))[1]["code"] == code


# Cancellation ----------------------------------------------------------------------------------------------------


async def _cancelled(desk, stop, path=STREAM):
    """The task after it was cancelled, and what its executor saw."""
    saw = []

    async def work(context, updater):
        await updater.start_work()
        try:
            await asyncio.Event().wait()
        except BaseException as exc:
            saw.append(type(exc))
            raise

    desk.does(work, stop=stop)
    async with desk.client(path) as client:
        events = client.send_message(request())
        task_id = (await anext(events)).task.id
        while (await client.get_task(GetTaskRequest(id=task_id))).status.state != 2:
            await asyncio.sleep(0.01)
        try:
            return await client.cancel_task(CancelTaskRequest(id=task_id)), saw
        finally:
            await events.aclose()


async def test_a_cancelled_task_is_cancelled(desk):
    """The cancellation reaches the agent as such, and the task says so."""

    async def stop(context, updater):
        await updater.cancel()

    task, saw = await _cancelled(desk, stop)
    assert task.status.state == 5
    assert saw == [asyncio.CancelledError]


async def test_a_task_whose_agent_forgets_to_say_so_is_cancelled_too(desk):
    """The SDK would leave it at work for ever."""

    async def stop(context, updater):
        return None

    task, _ = await _cancelled(desk, stop)
    assert task.status.state == 5


async def test_an_agent_that_cannot_be_cancelled_says_so(desk):
    """NotImplementedError is the SDK's own example."""
    with pytest.raises(TaskNotCancelableError):
        await _cancelled(desk, None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(OSError("db-7.acme"), InternalError), (TaskNotCancelableError("acme"), TaskNotCancelableError)],
)
async def test_a_cancellation_that_fails_shows_nothing(error, kind, desk):
    """What the agent raises while it stops."""

    async def stop(context, updater):
        raise error

    with pytest.raises(kind) as caught:
        await _cancelled(desk, stop)
    assert "acme" not in str(caught.value)


async def test_something_else_that_was_cancelled_is_a_failure(desk):
    """A future of the agent's own: nobody cancelled the task, and its caller still waits."""

    async def work(context, updater):
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    desk.does(work)
    async with desk.client(JSONRPC) as client:
        assert error_in(await events_of(client))[1]["code"] == "SERVICE_UNAVAILABLE"


# Odd agents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["complete", "message"])
async def test_a_failure_after_the_last_word_is_only_logged(word, caplog, desk):
    """The caller has its answer; a second one would be a breach of the protocol."""

    async def work(context, updater):
        if word == "complete":
            await updater.complete()
        else:
            await updater.event_queue.enqueue_event(updater.new_agent_message([Part(text="hello")]))
        raise OSError("too late")

    desk.does(work, opening=word == "complete")
    async with desk.client(JSONRPC) as client:
        (event,) = await events_of(client)
    assert word == "complete" or event["message"]["parts"] == [{"text": "hello"}]
    assert "adcp_error" not in json.dumps(event)
    assert [each.exc_info[1].args for each in caplog.records if each.name == "amends.a2a"] == [("too late",)]


async def test_details_no_carrier_takes_are_left_out(desk):
    """Nested without end, no JSON, too large: the error still arrives."""
    nested: dict = {}
    for _ in range(31):
        nested = {"n": nested}
    for details in (nested, {"setup_url": object()}, {"x": "y" * 5000}, {"n": float("nan"), "s": "\ud800"}):
        desk.does(failing(BudgetTooLowError("Low \ud800", details=details)))
        for path in PATHS:
            async with desk.client(path) as client:
                said = error_in(await events_of(client))[1]
                assert said["code"] == "BUDGET_TOO_LOW"
                assert "details" not in said


class Untellable(RateLimitedError):
    """An error whose fault cannot be had."""

    fault = property(lambda self: 1 / 0, lambda self, value: None)


async def test_an_error_that_cannot_be_told_is_an_unavailable_service(desk):
    """Whatever an exception does when it is looked at."""
    desk.does(failing(Untellable("acme")))
    async with desk.client(JSONRPC) as client:
        assert error_in(await events_of(client))[1]["code"] == "SERVICE_UNAVAILABLE"


class Refusing:
    """A queue that breaks."""

    async def enqueue_event(self, event):
        raise OSError("queue.acme.internal")


async def test_a_queue_that_breaks_shows_nothing():
    """Then there is no task to say it in; the SDK gets an error it can show."""
    context = RequestContext(ServerCallContext(), request=request())
    with pytest.raises(InternalError) as caught:
        await guard(Agent(failing(RateLimitedError()), opening=False)).execute(context, Refusing())
    assert "acme" not in repr(caught.value.data)
    assert caught.value.data["adcp_error"]["code"] == "RATE_LIMITED"


def test_only_parts_of_a_server_are_guarded_and_only_once():
    """A mistake is told at once."""
    executor = guard(Agent(works))
    assert guard(executor) is executor
    assert executor.work is works
    handler = guard(LegacyRequestHandler(Agent(works), InMemoryTaskStore(), card()))
    assert guard(handler) is handler
    assert handler.task_store is not None
    with pytest.raises(TypeError, match="not dict"):
        guard({})


# The gate --------------------------------------------------------------------------------------------------------


class Gate:
    error: Exception = RateLimitedError("Slow down", retry_after=7)

    def __call__(self, scope):
        raise self.error


@pytest.fixture(scope="module")
def gated():
    gate = Gate()
    with serve(reject(None, gate)) as base:
        gate.base = base
        yield gate


@every_path
@pytest.mark.parametrize(
    ("error", "number", "status"),
    [
        (RateLimitedError("Slow down", retry_after=7), -32029, 429),
        (UnauthenticatedError("Who are you?"), -32028, 401),
        (ServiceUnavailableError("Closed"), -32027, 503),
        (AuthInvalidError("That token is old"), -32000, 401),
        (OSError("limiter.acme.internal"), -32027, 503),
    ],
    ids=["rate", "auth", "down", "other", "foreign"],
)
async def test_a_rejection_before_the_agent(path, error, number, status, gated):
    """A3: the reserved numbers with the error in data; over REST the status, and the wait as a header too."""
    gated.error = error
    async with http_client() as http:
        raw = await _raw(http, gated.base, path)
    assert "acme" not in raw
    headers, _, body = raw.partition("})")
    body = json.loads(body)
    if path.binding == "JSONRPC":
        assert (body["id"], body["error"]["code"]) == (1, number)
        fault = extract(body, "jsonrpc")
    else:
        assert body["error"]["code"] == status
        fault = extract({"status": status, "headers": {}, "body": body}, "http")
    code = getattr(error, "code", "SERVICE_UNAVAILABLE").replace("UNAUTHENTICATED", "AUTH_MISSING")
    assert fault.code == code
    assert ("'retry-after': '7'" in headers) == (code == "RATE_LIMITED")


async def test_who_is_let_in_notices_nothing():
    """Also with an async check; other connections than HTTP are none of its business."""
    checked = []

    async def check(scope):
        checked.append(scope["path"])

    app = reject(application(guard(Agent(works))), check)
    with serve(app) as base:
        async with plain_client(base, JSONRPC) as client:
            (event,) = await events_of(client)
    assert event["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert checked == ["/rpc"]
    seen = []

    async def inner(scope, receive, send):
        seen.append(scope["type"])

    await reject(inner, failing(OSError()))({"type": "lifespan"}, None, None)
    assert seen == ["lifespan"]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"jsonrpc":"2.0","id":{}}', b"x" * 2_000_000])
async def test_whatever_is_sent_is_rejected(body):
    """Nothing, nonsense, an id that is none, too much."""
    with serve(reject(None, Gate(), collapse=True)) as base:
        async with http_client() as http:
            answer = await http.post(f"{base}/rpc", content=body)
            assert (await http.get(f"{base}/tasks")).status_code == 429
    if b"jsonrpc" in body:
        assert (answer.json()["id"], answer.json()["error"]["code"]) == (None, -32000)
    else:
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


async def test_a_caller_that_goes_away_while_it_is_rejected():
    """The rest of its request never comes."""

    async def receive():
        return {"type": "http.disconnect"}

    sent = []

    async def send(message):
        sent.append(message)

    def check(scope):
        raise RateLimitedError

    scope = {"type": "http", "method": "POST", "headers": []}
    await reject(None, check)(scope, receive, send)
    assert sent[0]["status"] == 429


# Nobody listens --------------------------------------------------------------------------------------------------


class Shut:
    """A queue that is shut, as the SDK shuts it when nobody listens any more."""

    closed = True

    async def enqueue_event(self, event):
        raise QueueShutDown


async def test_a_queue_that_is_shut_is_the_sdks_own_business():
    """It is how the SDK ends what nobody waits for: no failure, and nothing to log."""

    async def publishes(context, updater):
        assert updater.event_queue.closed
        await updater.start_work()

    context = RequestContext(ServerCallContext(), request=request())
    for work in (publishes, failing(RateLimitedError())):
        agent = guard(Agent(work, opening=False, stop=publishes))
        with pytest.raises(QueueShutDown):
            await agent.execute(context, Shut())
        with pytest.raises(QueueShutDown):
            await agent.cancel(context, Shut())


async def test_the_current_span_is_marked(desk):
    """T10: the code on the span, never what an exception said."""
    span = TracerProvider().get_tracer("t").start_span("s")
    with trace.use_span(span):
        context = RequestContext(ServerCallContext(), request=request())
        queue = EventQueueSource()
        await guard(Agent(failing(OSError("acme")))).execute(context, queue)
        await queue.close(immediate=True)
    assert span.attributes["error.type"] == "SERVICE_UNAVAILABLE"
    assert "acme" not in str(span.attributes)
