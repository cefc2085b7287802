"""The typed errors of failed A2A calls: events in unusual orders, incomplete responses, exceptions of every kind."""

import json

import httpx
import pytest
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import InternalError, InvalidParamsError, TaskNotFoundError
from google.protobuf.json_format import ParseDict

import amends.bindings.a2a as binding
from amends import FaultError
from amends.bindings.a2a.faults import Progress, failure
from amends.bindings.a2a.http_recorder import Recording, install_recorder
from amends.errors import (
    InternalError as BrokenError,
)
from amends.errors import (
    NotFoundError,
    RateLimitedError,
    ServiceUnavailableError,
    TimeoutError,  # noqa: A004
    ValidationError,
)

ERROR = {"code": "RATE_LIMITED", "message": "Slow down", "retry_after": 3, "recovery": "transient"}


def data(value):
    part = Part()
    ParseDict(value, part.data)
    return part


def artifact(*parts):
    return StreamResponse(
        artifact_update=TaskArtifactUpdateEvent(task_id="t", artifact=Artifact(artifact_id="a", parts=parts))
    )


def status(state, *parts):
    value = TaskStatus(state=state)
    if parts:
        value.message.CopyFrom(Message(message_id="m", parts=parts))
    return StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t", status=value))


def test_an_artifact_is_held_back_until_its_task_has_failed():
    """Two events of one failure; the error has both."""
    progress = Progress()
    events = [artifact(Part(text="x"), data({"adcp_error": ERROR})), status(TaskState.TASK_STATE_FAILED)]
    assert progress.accept(events[0]) is False
    assert not progress.content
    with pytest.raises(RateLimitedError) as caught:
        progress.accept(events[1])
    assert caught.value.events == tuple(events)
    assert (progress.failed, progress.is_ended(), progress.task_id) == (True, True, "t")


def test_an_error_without_a_failed_state_is_a_failure():
    """The stream ended after the artifact with the error."""
    progress = Progress()
    progress.accept(artifact(data({"adcp_error": ERROR})))
    with pytest.raises(RateLimitedError):
        progress.finish()
    progress = Progress()
    progress.accept(artifact(data({"adcp_error": {"code": 5}})))
    with pytest.raises(BrokenError):
        progress.finish()
    Progress().finish()


def failing_task(state, text=""):
    artifacts = [Artifact(parts=[data({"adcp_error": ERROR})])]
    if text:
        artifacts.append(Artifact(parts=[Part(text=text)]))
    return StreamResponse(task=Task(id="t", status=TaskStatus(state=state), artifacts=artifacts))


def test_a_task_with_an_error_has_failed_whatever_its_state():
    """AdCP: the key `adcp_error` is the signal."""
    with pytest.raises(RateLimitedError):
        Progress().accept(failing_task(TaskState.TASK_STATE_COMPLETED))
    progress = Progress()
    seen = failing_task(TaskState.TASK_STATE_WORKING)
    assert progress.accept(seen) is False
    assert (progress.is_failing(), progress.is_ended(), progress.content) == (True, False, False)
    with pytest.raises(RateLimitedError) as caught:
        progress.finish()
    assert caught.value.events == (seen,)


def test_a_task_read_between_its_error_and_its_state_is_held_back():
    """The failed task replaces it."""
    progress = Progress()
    for text in ("", "half", "more"):
        assert progress.accept(failing_task(TaskState.TASK_STATE_WORKING, text)) is False
    last = failing_task(TaskState.TASK_STATE_FAILED, "more")
    with pytest.raises(RateLimitedError) as caught:
        progress.accept(last)
    assert caught.value.events == (last,)
    progress = Progress()
    events = (failing_task(TaskState.TASK_STATE_WORKING), status(TaskState.TASK_STATE_FAILED))
    progress.accept(events[0])
    with pytest.raises(RateLimitedError) as caught:
        progress.accept(events[1])
    assert caught.value.events == events


def test_the_events_that_are_held_back_are_bounded():
    """An agent that sends errors without end has failed."""
    progress = Progress()
    with pytest.raises(RateLimitedError) as caught:
        for _ in range(100):
            progress.accept(artifact(data({"adcp_error": ERROR})))
    assert len(caught.value.events) < 20


def test_the_error_may_be_in_the_status_message():
    """Without an artifact, or with an artifact that is not an error."""
    progress = Progress()
    assert progress.accept(artifact(data({"errors": "none"}), data(["x"]), Part(raw=b"x")))
    with pytest.raises(RateLimitedError):
        progress.accept(status(TaskState.TASK_STATE_FAILED, data({"adcp_error": ERROR})))


def test_states_are_not_content():
    """A repeat of the message does not contradict them; text and messages are content."""
    progress = Progress()
    for event in (
        StreamResponse(task=Task(id="t")),
        status(TaskState.TASK_STATE_WORKING),
        StreamResponse(),
    ):
        assert progress.accept(event)
        assert not progress.content
    progress.accept(status(TaskState.TASK_STATE_WORKING, Part(text="half way")))
    assert progress.content
    progress = Progress()
    progress.accept(StreamResponse(message=Message(message_id="m")))
    assert (progress.content, progress.is_ended()) == (True, True)


def recording(response=None, *chunks):
    made = Recording()
    made.response = response
    for chunk in chunks:
        made.keep(chunk)
    return made


def rpc(error):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()


REQUEST = httpx.Request("POST", "http://agent.invalid/")


def caused(exc, cause):
    exc.__cause__ = cause
    return exc


def google(kind, **members):
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **members}


@pytest.mark.parametrize("status", [200, 400])
def test_the_details_of_google_rpc_are_read(status):
    """A2A 1.0: the field of a BadRequest, the wait of a RetryInfo, the reason of an ErrorInfo."""
    bad = google("BadRequest", fieldViolations=[{"field": "message.parts", "description": "empty"}])
    error = {"code": -32602, "message": "Bad", "data": [bad, google("RetryInfo", retryDelay="7s")]}
    fault = failure(A2AClientError("x"), recording(httpx.Response(status, content=rpc(error)))).fault
    assert (fault.field, fault.retry_after, fault.executed) == ("message.parts", 7, "no")
    info = google("ErrorInfo", reason="TASK_NOT_FOUND", domain="a2a-protocol.org")
    error = {"code": -32099, "message": "None", "data": [info]}
    if status == 200:
        fault = failure(A2AClientError("x"), recording(httpx.Response(status, content=rpc(error)))).fault
        assert (fault.code, fault.details["reason"]) == ("NOT_FOUND", "TASK_NOT_FOUND")


@pytest.mark.parametrize(
    ("exc", "recorded", "kind"),
    [
        (RateLimitedError("x"), recording(), RateLimitedError),
        (TaskNotFoundError(), recording(), NotFoundError),
        (InvalidParamsError(), recording(), ValidationError),
        (InternalError("text"), recording(), BrokenError),
        (NotImplementedError("not in 0.3"), recording(), ValidationError),
        (A2AClientTimeoutError("x"), recording(), TimeoutError),
        (caused(A2AClientTimeoutError("x"), httpx.ReadTimeout("x")), recording(), TimeoutError),
        (caused(A2AClientError("x"), httpx.ConnectError("x")), recording(), ServiceUnavailableError),
        (caused(A2AClientError("x"), json.JSONDecodeError("x", "", 0)), recording(), ServiceUnavailableError),
        (ValueError("no task"), recording(), ServiceUnavailableError),
        (KeyError("result"), recording(httpx.Response(200, content=b"[]")), ServiceUnavailableError),
        (A2AClientError("x"), recording(httpx.Response(429)), RateLimitedError),
        (
            A2AClientError("x"),
            recording(httpx.Response(200, content=rpc({"code": -32029}))),
            RateLimitedError,
        ),
        (
            A2AClientError("x"),
            recording(httpx.Response(200, content=rpc({"code": -32099}))),
            ServiceUnavailableError,
        ),
        (
            InternalError(),
            recording(httpx.Response(200, content=rpc({"data": {"adcp_error": ERROR}}))),
            RateLimitedError,
        ),
    ],
)
def test_every_exception_is_a_typed_error(exc, recorded, kind):
    """The recorded response comes first, then the SDK's class, then the cause; other exceptions are lost responses."""
    error = failure(exc, recorded)
    assert isinstance(error, kind)
    assert isinstance(error, FaultError)


def test_without_a_recorder_the_exception_is_read():
    """A client that the SDK made: the response of the cause, and the data of a protocol error."""
    response = httpx.Response(429, headers={"retry-after": "9"}, request=REQUEST)
    status = httpx.HTTPStatusError("x", request=REQUEST, response=response)
    assert failure(caused(A2AClientError("x"), status), recording()).fault.retry_after == 9
    assert failure(InternalError("x", {"adcp_error": ERROR}), recording()).fault.retry_after == 3


def test_the_end_of_a_stream_is_kept():
    """Enough of it to find the last event, and no more."""
    event = b"event: error\r\ndata: " + rpc({"data": {"adcp_error": ERROR}}) + b"\r\n\r\n"
    response = httpx.Response(200)
    before = b'data: {"jsonrpc": "2.0", "result": {}}\n\n'
    assert recording(response, before, event).fault().retry_after == 3
    assert recording(response, *[before] * 9000, event).fault().retry_after == 3
    cut = recording(response, *[b"x" * 40000] * 5, b"\n\n", event)
    assert cut.fault().retry_after == 3
    assert sum(len(chunk) for chunk in cut._tail) < 70000
    split = recording(response, event[:30], event[30:60], event[60:])
    assert split.fault().retry_after == 3
    assert recording(response, b"data: {\n\n", b"data: [1]\n\ndata:\n\n").fault() is None


async def test_the_recorder_does_not_affect_other_users_of_the_http_client():
    """It records only inside of `with recording:`, and is installed once."""

    async def app(request):
        return httpx.Response(200, content=b"hello")

    async with httpx.AsyncClient(transport=httpx.MockTransport(app)) as http:
        install_recorder(http)
        install_recorder(http)
        assert len(http.event_hooks["response"]) == 1
        assert (await http.get("http://x.invalid/")).text == "hello"
        made = Recording()
        with made:
            assert (await http.get("http://x.invalid/")).text == "hello"
            assert made.response.text == "hello"
            async with http.stream("GET", "http://x.invalid/"):
                # The body is not read, and the recorder does not read it.
                assert made.fault() is None


def test_the_names_of_the_binding():
    """They are imported when they are first used."""
    assert set(binding.__all__) <= set(dir(binding))
    assert all(getattr(binding, name) for name in binding.__all__)
    with pytest.raises(AttributeError):
        binding.nonsense  # noqa: B018
