"""What failed in an A2A call, read from values: events in odd orders, answers half read, exceptions of every kind."""

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
from amends.bindings.a2a.http_recorder import HEARD, Heard, listen
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
    spoken = TaskStatus(state=state)
    if parts:
        spoken.message.CopyFrom(Message(message_id="m", parts=parts))
    return StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t", status=spoken))


def test_an_artifact_is_held_back_until_its_task_has_failed():
    """Two events, one failure; both are there for who wants events."""
    progress = Progress()
    events = [artifact(Part(text="x"), data({"adcp_error": ERROR})), status(TaskState.TASK_STATE_FAILED)]
    assert progress.take(events[0]) is False
    assert not progress.content
    with pytest.raises(RateLimitedError) as caught:
        progress.take(events[1])
    assert caught.value.events == tuple(events)
    assert (progress.failed, progress.over(), progress.task_id) == (True, True, "t")


def test_an_error_without_a_state_is_an_error_too():
    """The stream ended after the artifact: its presence alone means that the task failed."""
    progress = Progress()
    progress.take(artifact(data({"adcp_error": ERROR})))
    with pytest.raises(RateLimitedError):
        progress.ended()
    progress = Progress()
    progress.take(artifact(data({"adcp_error": {"code": 5}})))
    with pytest.raises(BrokenError):
        progress.ended()
    Progress().ended()


def failing_task(state, text=""):
    artifacts = [Artifact(parts=[data({"adcp_error": ERROR})])]
    if text:
        artifacts.append(Artifact(parts=[Part(text=text)]))
    return StreamResponse(task=Task(id="t", status=TaskStatus(state=state), artifacts=artifacts))


def test_a_task_with_an_error_in_it_has_failed_whatever_its_state():
    """S4: the key is the signal."""
    with pytest.raises(RateLimitedError):
        Progress().take(failing_task(TaskState.TASK_STATE_COMPLETED))
    progress = Progress()
    seen = failing_task(TaskState.TASK_STATE_WORKING)
    assert progress.take(seen) is False
    assert (progress.failing(), progress.over(), progress.content) == (True, False, False)
    with pytest.raises(RateLimitedError) as caught:
        progress.ended()
    assert caught.value.events == (seen,)


def test_a_task_seen_between_its_error_and_its_state_is_held_back():
    """It is said by what it is in the end."""
    progress = Progress()
    for text in ("", "half", "more"):
        assert progress.take(failing_task(TaskState.TASK_STATE_WORKING, text)) is False
    last = failing_task(TaskState.TASK_STATE_FAILED, "more")
    with pytest.raises(RateLimitedError) as caught:
        progress.take(last)
    assert caught.value.events == (last,)
    progress = Progress()
    events = (failing_task(TaskState.TASK_STATE_WORKING), status(TaskState.TASK_STATE_FAILED))
    progress.take(events[0])
    with pytest.raises(RateLimitedError) as caught:
        progress.take(events[1])
    assert caught.value.events == events


def test_an_agent_that_only_says_errors_has_failed():
    """What is held back is bounded."""
    progress = Progress()
    with pytest.raises(RateLimitedError) as caught:
        for _ in range(100):
            progress.take(artifact(data({"adcp_error": ERROR})))
    assert len(caught.value.events) < 20


def test_the_status_message_speaks_for_itself():
    """Where there is no artifact, and where the artifact is no error."""
    progress = Progress()
    assert progress.take(artifact(data({"errors": "none"}), data(["x"]), Part(raw=b"x")))
    with pytest.raises(RateLimitedError):
        progress.take(status(TaskState.TASK_STATE_FAILED, data({"adcp_error": ERROR})))


def test_what_counts_as_content():
    """States alone are none; a repeat contradicts nothing then."""
    progress = Progress()
    for event in (
        StreamResponse(task=Task(id="t")),
        status(TaskState.TASK_STATE_WORKING),
        StreamResponse(),
    ):
        assert progress.take(event)
        assert not progress.content
    progress.take(status(TaskState.TASK_STATE_WORKING, Part(text="half way")))
    assert progress.content
    progress = Progress()
    progress.take(StreamResponse(message=Message(message_id="m")))
    assert (progress.content, progress.over()) == (True, True)


def heard(response=None, *chunks):
    found = Heard()
    found.response = response
    for chunk in chunks:
        found.keep(chunk)
    return found


def rpc(error):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()


REQUEST = httpx.Request("POST", "http://agent.invalid/")


def caused(exc, cause):
    exc.__cause__ = cause
    return exc


@pytest.mark.parametrize(
    ("exc", "what", "kind"),
    [
        (RateLimitedError("x"), heard(), RateLimitedError),
        (TaskNotFoundError(), heard(), NotFoundError),
        (InvalidParamsError(), heard(), ValidationError),
        (InternalError("text"), heard(), BrokenError),
        (NotImplementedError("not in 0.3"), heard(), ValidationError),
        (A2AClientTimeoutError("x"), heard(), TimeoutError),
        (caused(A2AClientTimeoutError("x"), httpx.ReadTimeout("x")), heard(), TimeoutError),
        (caused(A2AClientError("x"), httpx.ConnectError("x")), heard(), ServiceUnavailableError),
        (caused(A2AClientError("x"), json.JSONDecodeError("x", "", 0)), heard(), ServiceUnavailableError),
        (ValueError("no task"), heard(), ServiceUnavailableError),
        (KeyError("result"), heard(httpx.Response(200, content=b"[]")), ServiceUnavailableError),
        (A2AClientError("x"), heard(httpx.Response(429)), RateLimitedError),
        (A2AClientError("x"), heard(httpx.Response(200, content=rpc({"code": -32029}))), RateLimitedError),
        (
            A2AClientError("x"),
            heard(httpx.Response(200, content=rpc({"code": -32099}))),
            ServiceUnavailableError,
        ),
        (
            InternalError(),
            heard(httpx.Response(200, content=rpc({"data": {"adcp_error": ERROR}}))),
            RateLimitedError,
        ),
    ],
)
def test_every_exception_is_a_typed_error(exc, what, kind):
    """What was heard comes first, then the protocol's kind, then how the line failed; everything else is no answer."""
    error = failure(exc, what)
    assert isinstance(error, kind)
    assert isinstance(error, FaultError)


def test_the_end_of_a_stream_is_kept():
    """Enough of it to find the event that failed, and no more."""
    event = b"event: error\r\ndata: " + rpc({"data": {"adcp_error": ERROR}}) + b"\r\n\r\n"
    response = httpx.Response(200)
    before = b'data: {"jsonrpc": "2.0", "result": {}}\n\n'
    assert heard(response, before, event).fault().retry_after == 3
    assert heard(response, *[before] * 9000, event).fault().retry_after == 3
    cut = heard(response, *[b"x" * 40000] * 5, b"\n\n", event)
    assert cut.fault().retry_after == 3
    assert sum(len(chunk) for chunk in cut._tail) < 70000
    split = heard(response, event[:30], event[30:60], event[60:])
    assert split.fault().retry_after == 3
    assert heard(response, b"data: {\n\n", b"data: [1]\n\ndata:\n\n").fault() is None


async def test_other_users_of_the_same_http_client_notice_nothing():
    """The hook listens only while a call of ours is being made, and is there once."""

    async def app(request):
        return httpx.Response(200, content=b"hello")

    async with httpx.AsyncClient(transport=httpx.MockTransport(app)) as http:
        listen(http)
        listen(http)
        assert len(http.event_hooks["response"]) == 1
        assert (await http.get("http://x.invalid/")).text == "hello"
        found = Heard()
        token = HEARD.set(found)
        assert (await http.get("http://x.invalid/")).text == "hello"
        async with http.stream("GET", "http://x.invalid/"):
            # Not read: it says nothing, and nothing is fetched to find out.
            assert found.fault() is None
        HEARD.reset(token)


def test_the_binding_offers_what_it_says():
    """Each half is loaded when it is asked for."""
    assert set(binding.__all__) <= set(dir(binding))
    assert all(getattr(binding, name) for name in binding.__all__)
    with pytest.raises(AttributeError):
        binding.nonsense  # noqa: B018
