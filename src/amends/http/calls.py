"""
What every HTTP client binding decides the same way: keys, headers, which answers failed, and what may be sent again.

- POST and PATCH carry an `Idempotency-Key`, the same on every attempt: that of the operation around the call, one the
  caller set, or a fresh one. A key makes a repeat safe only where the server honours it: `keys=False` sends none, and
  then a call that may have happened is not repeated.
- `Accept` asks for problem details beside what the caller asked for.
- A body that can be read only once is sent only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from amends.carriers.extraction import extract
from amends.core.decision import Decision
from amends.core.enums import Action
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.dialects.problem import MEDIA_TYPE
from amends.errors.base import FaultError
from amends.http.effect_unknown import EFFECT_UNKNOWN
from amends.recovery.scope import current_operation, time_left
from amends.recovery.upstream import Upstream

__all__ = ["ENCODED_LIMIT", "LIMIT", "Calls", "accepting", "failure"]

LIMIT = 1024 * 1024
"""Bytes of a failed answer's body that are read; a larger one says nothing structured."""
ENCODED_LIMIT = 64 * 1024
"""The same for a compressed one, which may be a thousand times larger than it looks."""

KEY = "Idempotency-Key"
DEADLINE = "Request-Timeout"
"""Our header: seconds the caller will still wait. A server that knows it stops working then."""
_UNSAFE = frozenset({"POST", "PATCH"})


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """
    How the calls through one transport are made. The names are those of `recover`.

    Every binding writes these options out in its own signature: that is what `help` and editors show.
    """

    policy: Policy = DEFAULT
    upstream: Upstream | None = None
    keys: bool = True
    """Send an `Idempotency-Key` with POST and PATCH."""
    errors: str = "raise"
    """"raise" typed errors, or "return" the last response (and raise the client's own exceptions)."""
    headers: Callable[[], Mapping[str, str]] | None = None
    """Headers for every attempt, asked for each time: credentials that `refresh` renews."""
    refresh: Callable[..., Any] | None = None
    verify: Callable[..., Any] | None = None
    pinned: list[str] = []
    """The first origin that was called: `headers` are for it alone, wherever redirects lead."""

    def __post_init__(self) -> None:
        if self.errors not in {"raise", "return"}:
            raise ValueError(f'errors is "raise" or "return", not {self.errors!r}')

    def operation(self, method: str, given: str | None, name: str) -> Operation:
        """What this request promises, with the key that travels with every attempt."""
        around = current_operation()
        key = given or None  # an empty header is none
        if key is None and around is not None and method.upper() in _UNSAFE:
            key = around.key
        if key is None and self.keys and method.upper() in _UNSAFE:
            key = str(uuid4())
        found = Operation.of_http(method, name=name, key=key)
        if around is not None and (around.read_only or around.idempotent):
            # Whoever calls knows better than the method: a POST that only searches, say.
            found = replace(found, read_only=around.read_only, idempotent=around.idempotent)
        return found

    def options(self, operation: Operation, *, replayable: bool) -> dict[str, Any]:
        """The keyword arguments of `recover` for one request."""
        policy = self.policy
        if not replayable:
            # One attempt, whatever a rule says.
            policy = replace(policy, attempts=1, rules={})
        return {
            "policy": policy,
            "upstream": self.upstream,
            "operation": operation,
            "refresh": self.refresh if replayable else None,
            "verify": self.verify if replayable else None,
        }

    def settled(
        self, error: FaultError, headers: MutableMapping[str, Any], again: Callable[[Calls], Any]
    ) -> Any:
        """
        What comes of a call that recovery gave up on: its response, where the caller wants that, or the error.

        A server that cannot tell whether an earlier attempt happened is not asked again: somebody who can tell is,
        once. Where it did not happen, `again` sends the request anew, under another key.
        """
        if not in_doubt(error) or self.verify is None:
            return ended(error, self.errors)
        return self._seen(self.verify(error.fault), error, headers, again)

    async def asettled(
        self, error: FaultError, headers: MutableMapping[str, Any], again: Callable[[Calls], Any]
    ) -> Any:
        """The same where hooks may be async; what `again` returns is awaited."""
        if not in_doubt(error) or self.verify is None:
            return ended(error, self.errors)
        seen = self.verify(error.fault)
        found = self._seen(await seen if hasattr(seen, "__await__") else seen, error, headers, again)
        return await found if hasattr(found, "__await__") else found

    def _seen(
        self,
        seen: Any,
        error: FaultError,
        headers: MutableMapping[str, Any],
        again: Callable[[Calls], Any],
    ) -> Any:
        if seen is False:
            headers[KEY] = str(uuid4())
            return again(replace(self, verify=None))
        return ended(error, self.errors) if seen is None else seen

    def dressing(self, accept: str | None, key: str | None, origin: str) -> dict[str, str]:
        """The headers one attempt gets. `origin` is whom it goes to: scheme, host and port."""
        found = {"Accept": accepting(accept)}
        if key is not None:
            found[KEY] = key
        left = time_left()
        if left is not None:
            found[DEADLINE] = f"{left:.3f}"
        if self.headers is not None:
            if not self.pinned:
                self.pinned.append(origin)
            if self.pinned[0] == origin:
                found.update(self.headers())
        return found


def accepting(given: str | None) -> str:
    """
    `Accept` with problem details in it.

    >>> accepting("*/*"), accepting("text/csv")
    ('application/json, application/problem+json, */*;q=0.8', 'text/csv, application/problem+json;q=0.9')
    """
    if not given or given.strip() == "*/*":
        return f"application/json, {MEDIA_TYPE}, */*;q=0.8"
    if MEDIA_TYPE in given:
        return given
    return f"{given}, {MEDIA_TYPE};q=0.9"


def failure(status: int, headers: Mapping[str, str], body: bytes | None, response: Any) -> FaultError:
    """The typed error of an answer that failed, with the answer as its `response`."""
    fault = extract({"status": status, "headers": dict(headers), "body": body}, "http")
    error = FaultError.from_fault(fault or Fault(code="INTERNAL_ERROR", status=status))
    error.response = response  # type: ignore[attr-defined]
    return error


def in_doubt(error: FaultError) -> bool:
    """Whether the server says that an earlier attempt with this key may have happened, and cannot tell (design 8)."""
    if error.fault.code != EFFECT_UNKNOWN:
        return False
    error.decision = Decision(action=Action.VERIFY, delay=None, reason="effect-unknown")
    return True


def ended(error: FaultError, errors: str) -> Any:
    """The response to return instead of raising, where the caller wants that; raises otherwise."""
    if errors == "return":
        response = getattr(error, "response", None)
        if response is not None:
            return response
        if error.__cause__ is not None:
            raise error.__cause__
    raise error
