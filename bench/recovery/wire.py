"""The requests and responses between a simulated client and a simulated service."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """One call, as the server receives it."""

    operation: int  # the logical operation it belongs to
    number: int  # the number of the call within that operation, from 1
    key: str | None = None  # idempotency key, if the client sent one
    token: int = 0  # generation of the credential it was sent with


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. Every status below 400 is a success."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status < 400


class LostError(TimeoutError):
    """No answer within the client's time-out; the request may or may not have been carried out."""


class RefusedError(Exception):
    """Raised by clients that turn failed responses into exceptions; with the received `status` and `headers`."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status}")
        self.response = response
        self.status = self.status_code = response.status
        self.headers = response.headers
