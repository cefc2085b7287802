"""
Watch a stream of a model while it arrives: the first output, and a failure among the events.

Server-sent events and lines of JSON are looked at line by line, so that a failure is seen as soon as its line is complete.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.vendors.streams import FAILED, QUIET, failure_in, fault_of, is_after_output

__all__ = ["StreamWatch"]

_MAX_LINE = 1024 * 1024
_MARKS = (b'"error"', b"response.failed", b'"error_type"', b'"ERROR', b'"TIMEOUT"')


class StreamWatch:
    r"""
    The events of one stream.

    >>> watch = StreamWatch()
    >>> watch.feed(b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n')[1], watch.delivered
    (None, 1)
    >>> watch.feed(b'data: {"error": {"type": "overloaded_error", "message": "x"}}\n\n')[1].code
    'OVERLOADED'
    """

    def __init__(self, vendor: str | None = None, now: Callable[[], float] | None = None) -> None:
        self.vendor, self.now = vendor, now
        self.delivered = 0
        """The events with output so far."""
        self._line = b""
        self._event = "message"
        self._loose: list[bytes] = []

    def feed(self, part: bytes) -> tuple[bytes, Fault | None]:
        """Take a part of the stream; return what comes before a failure, and the failure."""
        *lines, rest = (self._line + part).split(b"\n")
        begun = len(self._line)
        self._line = rest[-_MAX_LINE:]
        end = start = -begun
        for line in lines:
            end += len(line) + 1
            fault = self._look(line.rstrip(b"\r"))
            if fault is not None:
                return part[: max(0, start)], fault
            if not line.strip():
                start = end
        return part, None

    def end(self) -> Fault | None:
        """Return the failure in what is left at the end: a last line, or a document that was appended to the stream."""
        line, self._line = self._line, b""
        found = self._look(line) if line else None
        if found is not None or not self._loose:
            return found
        return self._judge("message", b"\n".join(self._loose).strip().rstrip(b","))

    def _look(self, line: bytes) -> Fault | None:
        if line.startswith(b"event:"):
            self._event = line[6:].strip().decode("utf-8", "replace")
        elif line.startswith(b"data:"):
            return self._judge(self._event, line[5:].strip())
        elif not line:
            self._event = "message"
        elif self._loose or line[:1] in b"{[":
            if not self._loose and line[-1:] in b"}]":
                return self._judge("message", line)
            self._loose.append(line)
        return None

    def _judge(self, event: str, data: bytes) -> Fault | None:
        """Return the failure of one event; count it if it has output."""
        suspect = event in FAILED or any(mark in data for mark in _MARKS)
        if not suspect and self.delivered:
            self.delivered += event not in QUIET
            return None
        try:
            value = read_json(data)
        except Unreadable:
            value = data.decode("utf-8", "replace") if event == "error" else None
        error = failure_in(event, value) if suspect else None
        fault = None if error is None else fault_of(error, self.vendor, self.now)
        if fault is None:
            self.delivered += _is_output(event, value)
            return None
        executed = Executed.MAYBE if self.delivered or is_after_output(value) else fault.executed
        dialect = fault.origin.dialect if fault.origin else "vendor"
        return replace(fault, executed=executed, origin=Origin(dialect, "stream"))


def _is_output(event: str, value: object) -> bool:
    """Whether an event has output: one that announces a message, or a role without content, has none."""
    if event in QUIET or not isinstance(value, dict):
        return False
    kind = value.get("type")
    if isinstance(kind, str) and kind in QUIET:
        return False
    choices = value.get("choices")
    if isinstance(choices, list):
        return any(_has_content(choice) for choice in choices)
    return True


def _has_content(choice: object) -> bool:
    if not isinstance(choice, dict):
        return False
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return bool(choice.get("finish_reason")) or any(
            value for name, value in delta.items() if name != "role"
        )
    return True
