"""What a service of the stage that answers successes has to do, and what most of them have in common."""

from __future__ import annotations

from typing import Protocol

from amends.rehearse.examples import Example
from amends.rehearse.exchange import SAFE_METHODS, Answer, Request

__all__ = ["Fake", "FakeService"]


class Fake(Protocol):
    """A service of the stage that answers successes."""

    model: bool
    """Whether it is a model: what is sent to it is read by a model."""

    def counts(self, request: Request) -> bool:
        """Return whether a request is a call of the program, and not a handshake of its client."""

    def acts(self, request: Request) -> bool:
        """Return whether a request has an effect beyond its answer."""

    def answer(self, request: Request) -> Answer:
        """Return the ordinary answer, and do what the request asks for."""

    def failed(self, request: Request, example: Example, answer: Answer) -> Answer:
        """Return the answer of an example in the form in which this service sends it."""

    def events(self, request: Request, answer: Answer) -> tuple[bytes, ...]:
        """Return the events of a stream that report the failure of an answer."""

    def reset(self) -> None:
        """Forget everything."""


class FakeService:
    """What most fakes have in common."""

    model = False

    def counts(self, request: Request) -> bool:
        """Every request is a call."""
        return True

    def acts(self, request: Request) -> bool:
        """Requests act by their method."""
        return request.method not in SAFE_METHODS

    def answer(self, request: Request) -> Answer:
        """Each fake has its own answers."""
        raise NotImplementedError

    def failed(self, request: Request, example: Example, answer: Answer) -> Answer:
        """Failures are sent as their examples are."""
        return answer

    def events(self, request: Request, answer: Answer) -> tuple[bytes, ...]:
        """An example of a stream is its events."""
        return (answer.body,)

    def reset(self) -> None:
        """Nothing is kept."""
