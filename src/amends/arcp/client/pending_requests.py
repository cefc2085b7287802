"""Pending requests, matched with their answers by id if the answer has one, else by order."""

from __future__ import annotations

import asyncio
from asyncio import Future
from dataclasses import dataclass
from typing import Any

from amends.arcp.client.session_faults import connection_lost, error_of
from amends.arcp.wire import Envelope
from amends.core.fault import Fault

__all__ = ["PendingRequest", "PendingRequests"]


@dataclass(slots=True)
class PendingRequest:
    """A request without an answer."""

    message: Envelope
    answer: Future[Any]
    repeatable: bool
    """Whether it may be sent again if it is unknown whether it arrived."""
    job_id: str | None


class PendingRequests:
    """The requests without an answer, in the order in which they were sent."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, PendingRequest] = {}

    def any(self, type: str, job_id: str | None = None) -> bool:
        """Whether there is one of a type, about a job if one is named."""
        return any(
            request.message.type == type and (job_id is None or request.job_id == job_id)
            for request in self._waiting.values()
        )

    def add(self, message: Envelope, *, repeatable: bool, job_id: str | None = None) -> Future[Any]:
        """Add a request that is being sent, and return the future of its answer."""
        answer: Future[Any] = self._loop.create_future()
        self._waiting[message.id] = PendingRequest(message, answer, repeatable, job_id)
        return answer

    def remove(self, message: Envelope) -> None:
        """Remove a request, answered or not."""
        self._waiting.pop(message.id, None)

    def answer(self, value: Any, type: str, request_id: object = None, job_id: str | None = None) -> bool:
        """Answer the request with this id, else the oldest of its type (and job); returns whether there was one."""
        request = self._find(type, request_id, job_id)
        if request is None:
            return False
        if not request.answer.done():
            request.answer.set_result(value)
        return True

    def reject(
        self, fault: Fault, request_id: object, type: str | None = None, job_id: str | None = None
    ) -> bool:
        """Answer a request with a failure. Without a type, the oldest request of any type."""
        request = self._find(type, request_id, job_id)
        if request is None:
            return False
        _fail(request, fault)
        return True

    def answer_all(self, type: str, job_id: str, value: Any) -> None:
        """Answer every request of a type about a job."""
        while self.answer(value, type, job_id=job_id):
            pass

    def take_repeatable(self) -> list[Envelope]:
        """The requests to send again after a resumption. The others fail, because it is unknown whether they arrived."""
        messages = []
        for id, request in list(self._waiting.items()):
            if request.repeatable:
                messages.append(request.message)
            else:
                del self._waiting[id]
                _fail(request, connection_lost("in_doubt"))
        return messages

    def fail_all(self, fault: Fault) -> None:
        """Answer all requests with a failure."""
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            _fail(request, fault)

    def _find(self, type: str | None, request_id: object, job_id: str | None) -> PendingRequest | None:
        if isinstance(request_id, str):
            return self._waiting.pop(request_id, None)
        for id, request in self._waiting.items():
            if (type is None or request.message.type == type) and (
                job_id is None or request.job_id == job_id
            ):
                return self._waiting.pop(id)
        return None


def _fail(request: PendingRequest, fault: Fault) -> None:
    if not request.answer.done():
        request.answer.set_exception(error_of(fault))
