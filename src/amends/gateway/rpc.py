"""What the gateway reads of JSON-RPC messages. The messages themselves pass unchanged."""

from __future__ import annotations

import msgspec

from amends.carriers.extraction import extract
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.proof import Claim, Proof, rests_on
from amends.recovery.incoming import MEMBER as LEFT

__all__ = [
    "READS",
    "Message",
    "Request",
    "answers_in",
    "failure_in",
    "is_response",
    "loses_session",
    "may_have_failed",
    "read_members",
    "read_request",
    "tool_operations",
]

READS = frozenset(
    {
        *("initialize", "ping", "tools/list", "resources/list", "resources/templates/list", "resources/read"),
        *("prompts/list", "prompts/get", "completion/complete", "server/discover", "tasks/get", "tasks/list"),
        *(
            "tasks/result",
            "message/get",
            "agent/getAuthenticatedExtendedCard",
            "tasks/pushNotificationConfig/get",
        ),
        *("GetTask", "ListTasks", "GetExtendedAgentCard", "tasks/resubscribe", "SubscribeToTask"),
    }
)
"""Methods of MCP and A2A that change nothing."""


_ABSENT = msgspec.Raw()


class Request(msgspec.Struct):
    """A request or notification."""

    method: str = ""
    id: msgspec.Raw = _ABSENT
    params: object = None

    @property
    def wants_answer(self) -> bool:
        """Whether it is a request, and no notification."""
        return bytes(self.id) not in {b"", b"null"}

    @property
    def tool(self) -> str | None:
        """The tool that is called."""
        name = self.params.get("name") if isinstance(self.params, dict) else None
        return name if self.method == "tools/call" and isinstance(name, str) else None

    @property
    def left(self) -> object:
        """What the caller states that it has left (`amends.recovery.incoming`); any value."""
        meta = self.params.get("_meta") if isinstance(self.params, dict) else None
        return meta.get(LEFT) if isinstance(meta, dict) else None


_decoder = msgspec.json.Decoder(Request)
_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)


def read_request(body: bytes | bytearray) -> Request | None:
    """
    Return the request in a body, or None: it is none, or several.

    >>> read_request(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}').tool
    'pay'
    """
    try:
        found = _decoder.decode(body)
    except _ERRORS:
        return None
    return found if found.method else None


Message = dict[str, msgspec.Raw]
"""The members of a JSON-RPC message, each as it was written."""
_members = msgspec.json.Decoder(Message)


def read_members(data: bytes) -> Message | None:
    """Return the members of a JSON object, each as it was written; None if it is none."""
    try:
        return _members.decode(data)
    except _ERRORS:
        return None


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
def loses_session(status: int, body: bytes) -> bool:
    """
    Return whether a failed answer says that the server does not know the session, and so executed nothing.

    The protocol demands 404; widespread servers answer with 400 and a message about the session.
    """
    return status == 404 or (status == 400 and b"session" in body[:1000].lower())


def is_response(data: bytes) -> bool:
    """Return whether a message is the response to a request, and not another one before it in the same stream."""
    message = read_members(data)
    return message is not None and ("result" in message or "error" in message)


def may_have_failed(data: bytes) -> bool:
    """Return whether a body can hold an error: a quick look before it is decoded."""
    return any(mark in data for mark in _MARKS)


_MARKS = (
    b'"error"',
    b'"isError"',
    b"adcp_error",
    b'"failed"',
    b'"rejected"',
    b"TASK_STATE_FAILED",
    b"_REJECTED",
)


def failure_in(message: object, *, via: str = "mcp", native: bool = False) -> Fault | None:
    """Return the failure in a response of MCP or A2A; with `native` also one that carries no AdCP error."""
    if not isinstance(message, dict):
        return None
    found = extract(message, via, native=native)
    return found if found is not None and found.fatal else None


def answers_in(data: bytes, *, stream: bool) -> list[object]:
    """Return the JSON documents of an answer: the body itself, or the data of server-sent events."""
    texts = _event_data(data) if stream else [data]
    found = []
    for text in texts:
        try:
            found.append(msgspec.json.decode(text))
        except _ERRORS:
            continue
    return found


def _event_data(data: bytes) -> list[bytes]:
    events = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n")
    joined = (
        b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
        for event in events
    )
    return [each for each in joined if each]


def tool_operations(message: object) -> dict[str, Operation]:
    """Return what a listing of tools says about repeating each of them."""
    result = message.get("result") if isinstance(message, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    found = {}
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str):
            found[name] = Operation.of_tool(tool.get("annotations"), name=f"tools/call {name}")
    return found
