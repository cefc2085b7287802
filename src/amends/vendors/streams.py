"""
Failures inside streams: server-sent events, lines of JSON, AWS event streams, Connect's end of stream.

A stream's failure that comes after the first output may have had its effect: what was delivered cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.vendors.evidence import Evidence, collect
from amends.vendors.grpc import read_trailers
from amends.vendors.jsonrpc import read_error
from amends.vendors.markup import is_error_document
from amends.vendors.reading import read, read_bare
from amends.vendors.registry import is_service

__all__ = [
    "FAILED",
    "QUIET",
    "failure_in",
    "fault_of",
    "is_after_output",
    "read_binary",
    "read_stream",
    "read_text",
]

_MAX_EVENTS = 100_000
QUIET = frozenset(
    {
        *("ping", "message_start", "content_block_start", "keepalive", "stream-start", "message-start"),
        *("response.created", "response.in_progress", "response.queued", "response.output_item.added"),
        "response.content_part.added",
    }
)
"""Events that come before the first output."""

FAILED = frozenset({"error", "thread.run.failed"})
"""Names of events that report a failure."""

Clock = Callable[[], float]


def read_text(data: bytes | str, *, vendor: str | None = None, now: Clock | None = None) -> Fault | None:
    """Return the fault in a text that is no JSON document: an XML error, a stream, or an AWS event stream. Else None."""
    if isinstance(data, bytes):
        found = read_binary(data, vendor=vendor, now=now)
        if found is not None:
            return found
        text = data.decode("utf-8", "replace")
    else:
        text = data
    if is_error_document(text):
        return read(200, {}, text, vendor=vendor, now=now)
    return read_stream(text, vendor=vendor, now=now)


def read_binary(data: bytes, *, vendor: str | None = None, now: Clock | None = None) -> Fault | None:
    """Return the failure in an AWS event stream or in Connect's envelopes, or None."""
    return _event_stream(data, vendor) or _envelopes(data, now)


def read_stream(text: str, *, vendor: str | None = None, now: Clock | None = None) -> Fault | None:
    """Return the first failure in server-sent events or lines of JSON, or None."""
    delivered = False
    for event, value in _events(text):
        error = failure_in(event, value)
        if error is None:
            delivered = delivered or not _is_quiet(event, value)
            continue
        delivered = delivered or is_after_output(value)
        fault = fault_of(error, vendor, now)
        if fault is None:
            continue
        executed = Executed.MAYBE if delivered else fault.executed
        origin = Origin(fault.origin.dialect if fault.origin else "vendor", "stream")
        return replace(fault, executed=executed, origin=origin)
    return None


def _is_quiet(event: str, value: object) -> bool:
    """Whether an event comes before the first output. Some services name it only inside the data."""
    kind = value.get("type") if isinstance(value, dict) else None
    return event in QUIET or (isinstance(kind, str) and kind in QUIET)


def is_after_output(value: object) -> bool:
    """Whether a value is an array of a stream with elements before the last one."""
    return isinstance(value, list) and len(value) > 1


def fault_of(error: dict[str, object], vendor: str | None, now: Clock | None) -> Fault | None:
    """Return the fault of an event that `failure_in` returned."""
    inner = error.get("error")
    if "jsonrpc" in error and isinstance(inner, dict) and (answer := read_error(inner)) is not None:
        return answer
    found = read_bare(error, vendor=vendor, now=now)
    if found is not None:
        return found
    # The event says that it is an error, but no code word of it is known.
    evidence = collect(error, Evidence(proved=is_service(vendor)))
    from amends.core.meanings import INTERNAL
    from amends.vendors.meaning import first_word
    from amends.vendors.reading import build

    return build(INTERNAL, evidence.status, evidence, vendor, first_word(evidence.words()), None, None)


def failure_in(event: str, value: object) -> dict[str, object] | None:
    """Return the error object of one event, or None."""
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        value = value[-1]
    if not isinstance(value, dict):
        return {"error": {"message": value}} if event == "error" and isinstance(value, str) else None
    if "level" in value and event == "message":
        # A line of a log.
        return None
    given = value.get("type")
    kind = given if isinstance(given, str) else None
    response = value.get("response")
    if kind in {"response.failed", "response.incomplete"} and isinstance(response, dict):
        return response if kind == "response.failed" and isinstance(response.get("error"), dict) else None
    if kind == "ERROR" and isinstance(status := value.get("object"), dict) and "apiVersion" in status:
        # The last event of a watch of Kubernetes.
        return status
    ended = _ended(event, kind, value)
    if ended is not None:
        return ended
    error = value.get("error")
    if isinstance(error, dict) and any(item is not None for item in error.values()):
        return value
    if value.get("object") == "error" and isinstance(value.get("message"), str):
        # Mistral and vLLM.
        return value
    if isinstance(error, str) and error and (event == "error" or set(value) <= _LINE):
        return value
    # Dify names the event inside the data.
    named = kind == "error" or value.get("event") == "error"
    if event == "error" or (named and ("message" in value or "code" in value)):
        return value if "error" in value else {"error": value}
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and isinstance(first.get("error"), dict):
        return {"error": first["error"]}
    return None


def _ended(event: str, kind: str | None, value: dict[str, object]) -> dict[str, object] | None:
    """Return the error of a last event that says why the output ended: OpenAI's assistants, and Cohere's two versions."""
    last = value.get("last_error")
    if event == "thread.run.failed" and isinstance(last, dict):
        return {"error": last}
    delta = value.get("delta")
    if kind == "message-end" and isinstance(delta, dict):
        reason = delta.get("finish_reason")
    elif value.get("event_type") == "stream-end":
        reason = value.get("finish_reason")
    else:
        return None
    failed = isinstance(reason, str) and (reason.startswith("ERROR") or reason == "TIMEOUT")
    return {"error": {"code": reason, "message": ""}} if failed else None


_LINE = frozenset(
    {
        *("error", "error_type", "code", "status", "status_code", "message", "done", "model", "request_id"),
        "errorDetail",
    }
)


def _events(text: str) -> Iterator[tuple[str, object]]:
    """Yield (event name, value) of server-sent events, of lines of JSON, and of JSON that was appended to a stream."""
    name, data, loose = "message", [], []  # type: str, list[str], list[str]
    text = text.lstrip("\ufeff \t\r\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    for number, ended in enumerate(text.split("\n")):
        if number > _MAX_EVENTS:
            return
        line = ended.rstrip("\r")
        if not line:
            if data:
                yield from _parsed(name, "\n".join(data))
            name, data = "message", []
            if loose:
                loose.append("")
        elif line.startswith("data:"):
            data.append(line[5:].lstrip())
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line[0] in "{[" and not loose and line[-1] in "}]":
            found = list(_parsed("message", line))
            if found:
                yield from found
            else:
                loose.append(line)
        elif loose or line[0] in "{[":
            loose.append(line)
    if data:
        yield from _parsed(name, "\n".join(data))
    if loose:
        # Some servers break the framing and append a bare document.
        rest = "\n".join(loose).strip().rstrip(",")
        found = list(_parsed("message", rest))
        if not found and rest[0] == "[":
            # An array that was cut off after an element.
            found = list(_parsed("message", f"{rest}]"))
        yield from found


def _parsed(name: str, text: str) -> Iterator[tuple[str, object]]:
    if text and text != "[DONE]":
        try:
            yield name, read_json(text)
        except Unreadable:
            if name == "error":
                yield name, text


def _event_stream(data: bytes, vendor: str | None) -> Fault | None:
    """Read the exception or error in an AWS event stream: a header names it, the payload of an exception is JSON."""
    for header in (b":exception-type\x07", b":error-code\x07"):
        place = data.find(header)
        if place >= 0:
            break
    else:
        return None
    start = place + len(header)
    length = int.from_bytes(data[start : start + 2])
    word = data[start + 2 : start + 2 + length].decode("utf-8", "replace")
    body: object = None
    begin = data.find(b"{", start)
    end = data.rfind(b"}")
    if 0 < begin < end:
        try:
            body = read_json(data[begin : end + 1])
        except Unreadable:
            body = None
    document = body if isinstance(body, dict) else {}
    error = {**document, "__type": word}
    # A message starts with its length.
    delivered = int.from_bytes(data[:4]) <= place
    return _in_stream(
        read_bare(error, vendor=vendor or "aws", known_by_shape=vendor is None)
        or fault_of(error, "aws", None),
        delivered,
    )


def _in_stream(fault: Fault | None, delivered: bool) -> Fault | None:
    return fault if fault is None or not delivered else replace(fault, executed=Executed.MAYBE)


_END, _TRAILERS = 2, 128
"""Flags of the last envelope: Connect's JSON document, and gRPC-Web's trailers."""


def _envelopes(data: bytes, now: Clock | None) -> Fault | None:
    """Read the last envelope of Connect or gRPC-Web. Each is a flag, a length, and so many bytes."""
    place = 0
    while place + 5 <= len(data):
        flags, length = data[place], int.from_bytes(data[place + 1 : place + 5])
        if flags & ~(_END | _TRAILERS | 1) or place + 5 + length > len(data):
            return None
        content = data[place + 5 : place + 5 + length]
        if flags & _TRAILERS:
            lines = (line.partition(":") for line in content.decode("latin-1").splitlines())
            return _in_stream(
                read_trailers({name.strip().lower(): value.strip() for name, _, value in lines}), place > 0
            )
        if flags & _END:
            try:
                value = read_json(content)
            except Unreadable:
                return None
            found = read_bare(value, vendor="connect", now=now) if isinstance(value, dict) else None
            return _in_stream(found, place > 0)
        place += 5 + length
    return None
