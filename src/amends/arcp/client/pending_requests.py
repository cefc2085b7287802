"""Requests and their answers: matched by id where the answer names one, by order where it does not."""

from __future__ import annotations

import asyncio
from asyncio import Future
from typing import Any

from amends.arcp.client.session_faults import error_of, lost
from amends.arcp.wire import Envelope
from amends.core.enums import Executed
from amends.core.fault import Fault

__all__ = ["Request", "Requests"]


class Request:
    """A question on its way."""

    __slots__ = ("answer", "deadline", "job_id", "message", "repeatable")

    def __init__(
        self, message: Envelope, answer: Future[Any], deadline: float, *, repeatable: bool, job_id: str | None
    ) -> None:
        self.message = message
        self.answer = answer
        self.deadline = deadline
        self.repeatable = repeatable
        """Whether it may be asked again when nobody knows if it arrived."""
        self.job_id = job_id


class Requests:
    """Those that have no answer yet, in the order they were asked."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, Request] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def any(self, type: str) -> bool:
        """Whether a request of a type waits."""
        return any(request.message.type == type for request in self._waiting.values())

    def add(self, message: Envelope, *, repeatable: bool, job_id: str | None = None) -> Future[Any]:
        """A request that is about to be sent; what is given is its answer."""
        answer: Future[Any] = self._loop.create_future()
        deadline = self._loop.time() + self._timeout
        self._waiting[message.id] = Request(message, answer, deadline, repeatable=repeatable, job_id=job_id)
        if self._sweeper is None:
            # One timer for all: most answers come long before it.
            self._sweeper = self._loop.call_later(self._timeout / 4, self._sweep)
        return answer

    def forget(self, message: Envelope) -> None:
        """Nobody waits for this answer any more."""
        self._waiting.pop(message.id, None)

    def answer(self, value: Any, type: str, request_id: object = None, job_id: str | None = None) -> bool:
        """Give an answer to the request it names, else to the oldest of its type (and job); whether there was one."""
        request = self._find(type, request_id, job_id)
        if request is None:
            return False
        if not request.answer.done():
            request.answer.set_result(value)
        return True

    def refuse(
        self, fault: Fault, request_id: object, type: str | None = None, job_id: str | None = None
    ) -> bool:
        """The same with a failure. Without a type any request may be meant, the oldest first."""
        request = self._find(type, request_id, job_id)
        if request is None:
            return False
        _fail(request, fault)
        return True

    def settle(self, type: str, job_id: str, value: Any) -> None:
        """Answer every request of a type about a job."""
        while self.answer(value, type, job_id=job_id):
            pass

    def again(self) -> list[Envelope]:
        """After a resumption: those to ask again. Of the others nobody knows whether they arrived."""
        messages = []
        for id, request in list(self._waiting.items()):
            if request.repeatable:
                messages.append(request.message)
            else:
                del self._waiting[id]
                _fail(request, lost("in_doubt"))
        return messages

    def fail_all(self, fault: Fault) -> None:
        """There will be no answers."""
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            _fail(request, fault)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _find(self, type: str | None, request_id: object, job_id: str | None) -> Request | None:
        if isinstance(request_id, str):
            return self._waiting.pop(request_id, None)
        for id, request in self._waiting.items():
            if (type is None or request.message.type == type) and (
                job_id is None or request.job_id == job_id
            ):
                return self._waiting.pop(id)
        return None

    def _sweep(self) -> None:
        now = self._loop.time()
        for id, request in list(self._waiting.items()):
            if request.deadline <= now:
                del self._waiting[id]
                _fail(request, lost("no_answer", executed=Executed.MAYBE))
        self._sweeper = self._loop.call_later(self._timeout / 4, self._sweep) if self._waiting else None


def _fail(request: Request, fault: Fault) -> None:
    if not request.answer.done():
        request.answer.set_exception(error_of(fault))
