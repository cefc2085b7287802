"""Guarded agents on the SDK's server, with the SDK's client, over every binding and version of the protocol."""

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
    events_of,
    failing,
    guarded_server,
    http_client,
    plain_client,
    request,
    works,
)
from tests.foreign.test_leaks import POISONS, poisoned
from tests.http.serving import serve


@pytest.fixture(scope="module")
def running():
    with guarded_server(guard) as found:
        yield found


@pytest.fixture(scope="module")
def bare():
    with agent_server(Agent(works)) as base:
        yield base


@pytest.fixture
def server(running):
    return running.does(works)


every_path = pytest.mark.parametrize("path", PATHS, ids=str)
some_paths = pytest.mark.parametrize("path", SOME, ids=str)
JSONRPC, STREAM = PATHS[0], PATHS[1]
CUT = Path("HTTP+JSON", "0.3", True)


def error_in(events):
    """The text and the adcp_error of the last event."""
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
async def test_a_typed_error_is_a_failed_task(path, opening, server):
    """A4: an artifact with a text part and a data part that holds the error alone; the status message has both too."""
    error = RateLimitedError("Too many quotes", retry_after=4.2, details={"limit": 5})
    server.does(failing(error), opening=opening)
    async with server.client(path) as client:
        events = await events_of(client)
    text, sent = error_in(events)
    assert text == "Too many quotes. Retry in 5 s."
    assert len(sent.pop("trace_id")) == 32
    assert sent == {
        "code": "RATE_LIMITED",
        "message": "Too many quotes",
        "recovery": "transient",
        "retry_after": 5,
        "details": {"limit": 5},
    }
    fault = extract(events[-1])
    assert (fault.code, fault.retry_after, fault.executed) == ("RATE_LIMITED", 5, "no")
    message = events[-1].get("task", events[-1].get("statusUpdate"))["status"]["message"]
    assert message["role"] == "ROLE_AGENT"
    assert [part.get("text") for part in message["parts"]] == [text, None]


@every_path
async def test_a_foreign_exception_is_unavailable_and_logged_with_its_trace(path, caplog, server):
    """SERVICE_UNAVAILABLE with a standard message; answer and log line have the same trace id."""
    caplog.set_level(logging.ERROR, "amends.a2a")
    exc = ValueError("password of db.internal is hunter2")
    server.does(failing(exc))
    async with server.client(path) as client:
        events = await events_of(client)
    _, sent = error_in(events)
    assert (sent["code"], sent["recovery"]) == ("SERVICE_UNAVAILABLE", "terminal")
    assert "hunter2" not in json.dumps(events)
    (record,) = [each for each in caplog.records if each.name == "amends.a2a"]
    assert sent["trace_id"] in record.getMessage()
    assert record.exc_info[1] is exc


@every_path
async def test_successful_tasks_are_not_changed(path, bare, server):
    """The events are those without a guard, except for ids and times."""
    seen = []
    for base in (bare, server.base):
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
async def test_tasks_that_need_input_are_not_changed(path, state, server):
    """Input-required and auth-required are not failures; the next message continues the task."""

    async def work(context, updater):
        if context.current_task is None:
            await getattr(updater, state)(updater.new_agent_message([Part(text="Which day?")]))
        else:
            raise ValidationError("No such day", field="/day", suggestions=["Name a weekday"])

    server.does(work)
    async with server.client(path) as client:
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
        text, sent = error_in(await events_of(client, request("Someday", **ids)))
    assert (text, sent["field"]) == ("No such day. Name a weekday", "day")


async def test_the_mime_type_is_optional():
    """A4: `mime_type=True` sets it."""
    for mime_type in (True, False):
        with agent_server(guard(Agent(failing(NotFoundError("None"))), mime_type=mime_type)) as base:
            async with plain_client(base, JSONRPC) as client:
                (event,) = await events_of(client)
        data = event["task"]["artifacts"][0]["parts"][1]
        assert data.get("mediaType") == (MIME_TYPE if mime_type else None)


async def test_the_trace_id_is_the_callers(server):
    """The id of the request's traceparent."""
    server.does(failing(OSError("x")))
    async with server.client(JSONRPC) as client:
        client._transport.httpx_client.headers["traceparent"] = f"00-{'ab' * 16}-{'cd' * 8}-01"
        assert error_in(await events_of(client))[1]["trace_id"] == "ab" * 16


@every_path
@pytest.mark.parametrize("count", [40, pytest.param(126, marks=pytest.mark.soak)])
async def test_poisoned_exceptions_leak_nothing(path, count, server, caplog):
    """A19: hosts, SQL, paths, tokens, prompts, in every attribute of an exception: 1,008 over all paths in `make soak`."""
    for name in ("amends.a2a", "a2a"):
        # Without a thousand tracebacks in the log.
        caplog.set_level(logging.CRITICAL, name)
    await _poison(server, path, count)


async def _poison(server, path, count):
    """Raised by the executor before and after it has a task, concurrently; and by the task store, one by one."""
    raised = [_poisoned(number) for number in range(count)]

    async def work(context, updater):
        raise raised[int(context.get_user_input())][0]

    async with http_client() as http:

        async def send(number):
            exc, poison = raised[number]
            raw = await _raw(http, server.base, path, str(number))
            visible = poison.encode("ascii", "ignore").decode()
            assert "acme" not in raw, (exc, raw)
            assert visible[:8] not in raw, (exc, raw)
            assert '"message"' in raw or path == CUT, raw

        half = count // 2
        for opening in (True, False):
            server.does(work, opening=opening)
            await asyncio.gather(*(send(number + half * opening) for number in range(half)))
        for number in range(0, count, 10):
            server.store.error = raised[number][0]
            await send(number)


def _poisoned(number):
    poison = POISONS[number % len(POISONS)]
    if number % 5 == 4:
        return (InternalError, InvalidParamsError, A2AError)[number % 3](poison, {"x": poison}), poison
    return poisoned(f"acme_{number}.Own", poison), poison


async def _raw(http, base, path, text="hi"):
    """The headers and the body of a response, as text."""
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
            # REST in 0.3 uses the JSON of its protobuf messages.
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
            # The SDK's REST routes of 0.3 close the connection if a stream fails.
            assert path == CUT
    return "".join(raw)


# Around the executor ---------------------------------------------------------------------------------------------


DOWN = ConnectionError("db-7.acme.internal:5432 refused")


@some_paths
async def test_a_broken_store_is_an_error_without_its_text(path, server):
    """The SDK sends the exception's text; the guard sends an error with the object in its data."""
    server.store.error = DOWN
    async with http_client() as http:
        raw = await _raw(http, server.base, path)
    assert "acme" not in raw
    # The SDK's routes for 0.3 drop the object.
    assert "unavailable for now" in raw or path == CUT
    assert "SERVICE_UNAVAILABLE" in raw or path.version == "0.3"


async def test_other_requests_fail_without_text_of_exceptions_too(server):
    """GetTask and CancelTask use the same store."""
    server.store.error = DOWN
    async with server.client(JSONRPC) as client:
        for call in (client.get_task(GetTaskRequest(id="x")), client.cancel_task(CancelTaskRequest(id="x"))):
            with pytest.raises(InternalError) as caught:
                await call
            assert "acme" not in str(caught.value)


async def test_protocol_errors_of_the_sdk_are_not_changed(server):
    """An unknown task, and a message without parts."""
    server.does(works)
    async with server.client(JSONRPC) as client:
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id="nowhere"))
        with pytest.raises(InvalidParamsError):
            await events_of(client, SendMessageRequest(message=Message(role=Role.ROLE_USER)))


@some_paths
async def test_an_agents_protocol_error_keeps_its_class_and_not_its_text(path, server):
    """An executor may raise protocol errors; their text may contain internals."""
    work = failing(UnsupportedOperationError("not on db-7.acme.internal", {"host": "acme"}))
    server.does(work, opening=False)
    async with http_client() as http:
        raw = await _raw(http, server.base, path)
    assert "acme" not in raw
    assert UnsupportedOperationError.message in raw or path == CUT


async def test_an_upstreams_protocol_error_is_translated(bare, server):
    """An agent that calls another: the caller cannot act on the other agent's "task not found"."""

    async def work(context, updater):
        async with plain_client(bare, JSONRPC) as client:
            await client.get_task(GetTaskRequest(id="x"))

    server.does(work)
    async with server.client(JSONRPC) as client:
        assert error_in(await events_of(client))[1]["code"] == "SERVICE_UNAVAILABLE"


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_invalid_requests_leak_nothing(version, server):
    """No JSON, no method, wrong parameters, half a body: the responses have no path and no traceback."""
    method = "SendMessage" if version == "1.0" else "message/send"
    bodies = [
        b"{",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "nope"}).encode(),
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": 5}}).encode(),
        json.dumps({"jsonrpc": "1.0", "id": {}, "method": method}).encode(),
    ]
    prefix = "" if version == "1.0" else "/v1"
    async with httpx.AsyncClient(base_url=server.base, timeout=100, headers={"A2A-Version": version}) as http:
        responses = [await http.post("/rpc", content=body) for body in bodies]
        responses += [await http.post(f"{prefix}/message:send", content=body) for body in bodies]
    for response in responses:
        for internal in ("Traceback", "site-packages", "File ", "/usr", "/home"):
            assert internal not in response.text


async def test_a_guarded_context_builder_leaks_nothing():
    """A session store that is down, an invalid token."""

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


async def test_the_legacy_request_handler():
    """LegacyRequestHandler runs a guarded executor too."""
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


async def _cancelled(server, stop, path=STREAM):
    """The task after it was cancelled, and the exceptions that its executor got."""
    raised = []

    async def work(context, updater):
        await updater.start_work()
        try:
            await asyncio.Event().wait()
        except BaseException as exc:
            raised.append(type(exc))
            raise

    server.does(work, stop=stop)
    async with server.client(path) as client:
        events = client.send_message(request())
        task_id = (await anext(events)).task.id
        while (await client.get_task(GetTaskRequest(id=task_id))).status.state != 2:
            await asyncio.sleep(0.01)
        try:
            return await client.cancel_task(CancelTaskRequest(id=task_id)), raised
        finally:
            await events.aclose()


async def test_a_cancelled_task_is_canceled(server):
    """The agent gets a CancelledError, and the task's state is canceled."""

    async def stop(context, updater):
        await updater.cancel()

    task, raised = await _cancelled(server, stop)
    assert task.status.state == 5
    assert raised == [asyncio.CancelledError]


async def test_a_task_whose_agent_does_not_publish_the_state_is_canceled(server):
    """The SDK would leave it in the state working."""

    async def stop(context, updater):
        return None

    task, _ = await _cancelled(server, stop)
    assert task.status.state == 5


async def test_an_agent_without_cancellation_is_not_cancelable(server):
    """It raises NotImplementedError, as in the SDK's examples."""
    with pytest.raises(TaskNotCancelableError):
        await _cancelled(server, None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(OSError("db-7.acme"), InternalError), (TaskNotCancelableError("acme"), TaskNotCancelableError)],
)
async def test_a_cancellation_that_fails_leaks_nothing(error, kind, server):
    """An exception that the agent raises in `cancel`."""

    async def stop(context, updater):
        raise error

    with pytest.raises(kind) as caught:
        await _cancelled(server, stop)
    assert "acme" not in str(caught.value)


async def test_a_cancelled_future_of_the_agent_is_a_failure(server):
    """The task itself was not cancelled, and its caller still waits."""

    async def work(context, updater):
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    server.does(work)
    async with server.client(JSONRPC) as client:
        assert error_in(await events_of(client))[1]["code"] == "SERVICE_UNAVAILABLE"


# Unusual agents --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("final", ["complete", "message"])
async def test_a_failure_after_the_final_event_is_only_logged(final, caplog, server):
    """The protocol allows one final event."""

    async def work(context, updater):
        if final == "complete":
            await updater.complete()
        else:
            await updater.event_queue.enqueue_event(updater.new_agent_message([Part(text="hello")]))
        raise OSError("too late")

    server.does(work, opening=final == "complete")
    async with server.client(JSONRPC) as client:
        (event,) = await events_of(client)
    assert final == "complete" or event["message"]["parts"] == [{"text": "hello"}]
    assert "adcp_error" not in json.dumps(event)
    assert [each.exc_info[1].args for each in caplog.records if each.name == "amends.a2a"] == [("too late",)]


async def test_details_that_are_not_json_become_plain(server):
    """A value without a plain form is replaced, NaN is null, a lone surrogate is "?"; the others are kept."""
    details = {"setup_url": object(), "n": float("nan"), "s": "\ud800", "kept": 1}
    server.does(failing(BudgetTooLowError("Low \ud800", details=details)))
    for path in PATHS:
        async with server.client(path) as client:
            sent = error_in(await events_of(client))[1]
            assert sent["details"] == {"setup_url": "[redacted]", "n": None, "s": "?", "kept": 1}


async def test_details_that_cannot_be_sent_are_left_out(server):
    """Nested too deeply or too large: the error is sent without them."""
    nested: dict = {}
    for _ in range(31):
        nested = {"n": nested}
    for details in (nested, {"x": "y" * 5000}):
        server.does(failing(BudgetTooLowError("Low \ud800", details=details)))
        for path in PATHS:
            async with server.client(path) as client:
                sent = error_in(await events_of(client))[1]
                assert sent["code"] == "BUDGET_TOO_LOW"
                assert "details" not in sent


class Broken(RateLimitedError):
    """An error whose `fault` raises."""

    fault = property(lambda self: 1 / 0, lambda self, value: None)


async def test_an_exception_that_cannot_be_examined_is_service_unavailable(server):
    """Its `fault` raises."""
    server.does(failing(Broken("acme")))
    async with server.client(JSONRPC) as client:
        assert error_in(await events_of(client))[1]["code"] == "SERVICE_UNAVAILABLE"


class BrokenQueue:
    """A queue that raises."""

    async def enqueue_event(self, event):
        raise OSError("queue.acme.internal")


async def test_a_failure_that_cannot_be_published_is_raised():
    """As a protocol error, which the SDK sends to the caller."""
    context = RequestContext(ServerCallContext(), request=request())
    with pytest.raises(InternalError) as caught:
        await guard(Agent(failing(RateLimitedError()), opening=False)).execute(context, BrokenQueue())
    assert "acme" not in repr(caught.value.data)
    assert caught.value.data["adcp_error"]["code"] == "RATE_LIMITED"


def test_guard_takes_parts_of_a_server():
    """A guarded part is returned as it is; other objects raise TypeError."""
    executor = guard(Agent(works))
    assert guard(executor) is executor
    assert executor.work is works
    handler = guard(LegacyRequestHandler(Agent(works), InMemoryTaskStore(), card()))
    assert guard(handler) is handler
    assert handler.task_store is not None
    with pytest.raises(TypeError, match="not dict"):
        guard({})


# Rejections ------------------------------------------------------------------------------------------------------


class Check:
    """Rejects every request."""

    error: Exception = RateLimitedError("Slow down", retry_after=7)

    def __call__(self, scope):
        raise self.error


@pytest.fixture(scope="module")
def rejecting():
    check = Check()
    with serve(reject(None, check)) as base:
        check.base = base
        yield check


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
async def test_a_rejection_before_the_agent(path, error, number, status, rejecting):
    """A3: the reserved numbers with the error in data; over REST the status; the wait is a header too."""
    rejecting.error = error
    async with http_client() as http:
        raw = await _raw(http, rejecting.base, path)
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


async def test_requests_that_pass_are_not_changed():
    """With an async check; ASGI scopes other than HTTP are not checked."""
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
async def test_any_body_is_rejected(body):
    """Empty, invalid, with an invalid id, too large."""
    with serve(reject(None, Check(), collapse=True)) as base:
        async with http_client() as http:
            answer = await http.post(f"{base}/rpc", content=body)
            assert (await http.get(f"{base}/tasks")).status_code == 429
    if b"jsonrpc" in body:
        assert (answer.json()["id"], answer.json()["error"]["code"]) == (None, -32000)
    else:
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


async def test_a_caller_that_disconnects_while_it_is_rejected():
    """The rest of its request does not come."""

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


# Closed queues ---------------------------------------------------------------------------------------------------


class ClosedQueue:
    """A queue that the SDK has shut down because no client is connected any more."""

    closed = True

    async def enqueue_event(self, event):
        raise QueueShutDown


async def test_queue_shut_down_is_raised_unchanged():
    """The SDK ends a task with it; it is not a failure of the agent."""

    async def publishes(context, updater):
        assert updater.event_queue.closed
        await updater.start_work()

    context = RequestContext(ServerCallContext(), request=request())
    for work in (publishes, failing(RateLimitedError())):
        agent = guard(Agent(work, opening=False, stop=publishes))
        with pytest.raises(QueueShutDown):
            await agent.execute(context, ClosedQueue())
        with pytest.raises(QueueShutDown):
            await agent.cancel(context, ClosedQueue())


async def test_the_current_span_has_the_error(server):
    """T10: the span has the code, and no text of the exception."""
    span = TracerProvider().get_tracer("t").start_span("s")
    with trace.use_span(span):
        context = RequestContext(ServerCallContext(), request=request())
        queue = EventQueueSource()
        await guard(Agent(failing(OSError("acme")))).execute(context, queue)
        await queue.close(immediate=True)
    assert span.attributes["error.type"] == "SERVICE_UNAVAILABLE"
    assert "acme" not in str(span.attributes)
