"""What travels between a simulated client and a simulated service."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """One call as the server sees it."""

    operation: int  # which logical operation it belongs to
    number: int  # the how-manieth call of that operation, from 1
    key: str | None = None  # idempotency key, if the client sent one
    token: int = 0  # generation of the credential it was sent with


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. Everything below 400 is a success."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status < 400


class LostError(TimeoutError):
    """No answer within the client's time-out; the request may or may not have been carried out."""


class RefusedError(Exception):
    """What a client that turns bad answers into exceptions raises; `status` and `headers` as received."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status}")
        self.response = response
        self.status = self.status_code = response.status
        self.headers = response.headers
