"""
What all HTTP client bindings decide the same way: keys, headers, failed responses, and which requests may be repeated.

- POST and PATCH carry an `Idempotency-Key`, the same on every attempt: the key of the operation around the call, one
  that the caller set, or a new one. A key makes a repeat safe only if the server honours it: `keys=False` sends none,
  and then a call that may have had its effect is not repeated.
- `Accept` asks for problem details in addition to what the caller asked for.
- A request whose body can be read only once is sent only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from inspect import isawaitable
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

__all__ = [
    "ENCODED_LIMIT",
    "KEY",
    "LIMIT",
    "CallOptions",
    "accept_header",
    "error_from_response",
    "return_or_raise",
]

LIMIT = 1024 * 1024
"""Bytes of a failed response's body that are read; a larger body is not parsed."""
ENCODED_LIMIT = 64 * 1024
"""The same for a compressed body, which may be a thousand times larger when decompressed."""

KEY = "Idempotency-Key"
DEADLINE = "Request-Timeout"
"""Our own header: the seconds that the caller will still wait. A server that supports it stops after that time."""
_UNSAFE = frozenset({"POST", "PATCH"})


class CallOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    The options of the calls through one transport, with the same names as those of `recover`.

    Every binding repeats these options in its own signature, because that is what `help` and editors show.
    """

    policy: Policy = DEFAULT
    upstream: Upstream | None = None
    keys: bool = True
    """Send an `Idempotency-Key` with POST and PATCH."""
    errors: str = "raise"
    """"raise" typed errors, or "return" the last response (and raise the client library's own exceptions)."""
    headers: Callable[[], Mapping[str, str]] | None = None
    """Returns headers, called for every attempt: credentials that `refresh` renews."""
    refresh: Callable[..., Any] | None = None
    verify: Callable[..., Any] | None = None
    pinned: list[str] = []
    """The first origin that was called. `headers` are sent to it only, also when it redirects elsewhere."""

    def __post_init__(self) -> None:
        if self.errors not in {"raise", "return"}:
            raise ValueError(f'errors is "raise" or "return", not {self.errors!r}')

    def operation(self, method: str, given: str | None, name: str) -> Operation:
        """
        Return the operation of a request, with the key that every attempt carries.

        Args:
            method: the request's method.
            given: the key that the caller set, if any; an empty header counts as none.
            name: the operation's name.

        """
        around = current_operation()
        key = given or None
        if key is None and around is not None and method.upper() in _UNSAFE:
            key = around.key
        if key is None and self.keys and method.upper() in _UNSAFE:
            key = str(uuid4())
        operation = Operation.of_http(method, name=name, key=key)
        if around is not None and (around.read_only or around.idempotent):
            # The surrounding operation decides over the method, for example for a POST that only searches.
            operation = replace(operation, read_only=around.read_only, idempotent=around.idempotent)
        return operation

    def recover_options(self, operation: Operation, *, replayable: bool) -> dict[str, Any]:
        """Return the keyword arguments of `recover` for one request; one attempt if it is not replayable."""
        policy = self.policy if replayable else replace(self.policy, attempts=1, rules={})
        return {
            "policy": policy,
            "upstream": self.upstream,
            "operation": operation,
            "refresh": self.refresh if replayable else None,
            "verify": self.verify if replayable else None,
        }

    def resolve(
        self, error: FaultError, headers: MutableMapping[str, Any], resend: Callable[[CallOptions], Any]
    ) -> Any:
        """
        Return the result of a call that recovery gave up on, or raise.

        If the server answered that the effect of an earlier attempt is unknown, `verify` is called once. If it returns
        False, the effect did not happen and the request is sent again with a new key.

        Args:
            error: the last failure.
            headers: the request's headers, changed in place before it is sent again.
            resend: sends the request with the given options and returns the response.

        Returns:
            The response, or the value that `verify` returned.

        Raises:
            FaultError: the failure, unless `errors` is "return".

        """
        if not is_effect_unknown(error) or self.verify is None:
            return return_or_raise(error, self.errors)
        return self._after_verify(self.verify(error.fault), error, headers, resend)

    async def aresolve(
        self, error: FaultError, headers: MutableMapping[str, Any], resend: Callable[[CallOptions], Any]
    ) -> Any:
        """Same as `resolve`, but `verify` may be async, and the result of `resend` is awaited."""
        if not is_effect_unknown(error) or self.verify is None:
            return return_or_raise(error, self.errors)
        verified = self.verify(error.fault)
        result = self._after_verify(
            await verified if isawaitable(verified) else verified, error, headers, resend
        )
        return await result if isawaitable(result) else result

    def _after_verify(
        self,
        verified: Any,
        error: FaultError,
        headers: MutableMapping[str, Any],
        resend: Callable[[CallOptions], Any],
    ) -> Any:
        if verified is False:
            headers[KEY] = str(uuid4())
            return resend(replace(self, verify=None))
        return return_or_raise(error, self.errors) if verified is None else verified

    def attempt_headers(self, accept: str | None, key: str | None, origin: str) -> dict[str, str]:
        """
        Return the headers that one attempt adds to the request.

        Args:
            accept: the request's own `Accept`.
            key: the operation's key.
            origin: the scheme, host and port that the request goes to.

        """
        added = {"Accept": accept_header(accept)}
        if key is not None:
            added[KEY] = key
        left = time_left()
        if left is not None:
            added[DEADLINE] = f"{left:.3f}"
        if self.headers is not None:
            if not self.pinned:
                self.pinned.append(origin)
            if self.pinned[0] == origin:
                added.update(self.headers())
        return added


def accept_header(given: str | None) -> str:
    """
    Return an `Accept` header with problem details added.

    >>> accept_header("*/*"), accept_header("text/csv")
    ('application/json, application/problem+json, */*;q=0.8', 'text/csv, application/problem+json;q=0.9')
    """
    if not given or given.strip() == "*/*":
        return f"application/json, {MEDIA_TYPE}, */*;q=0.8"
    if MEDIA_TYPE in given:
        return given
    return f"{given}, {MEDIA_TYPE};q=0.9"


def error_from_response(
    status: int, headers: Mapping[str, str], body: bytes | None, response: Any
) -> FaultError:
    """
    Return the typed error of a failed response.

    Args:
        status: the response's status.
        headers: the response's headers.
        body: the response's body, or None if it is too large or incomplete.
        response: the client library's response, which becomes the error's attribute `response`.

    """
    fault = extract({"status": status, "headers": dict(headers), "body": body}, "http")
    error = FaultError.from_fault(fault or Fault(code="INTERNAL_ERROR", status=status))
    error.response = response  # type: ignore[attr-defined]
    return error


def is_effect_unknown(error: FaultError) -> bool:
    """
    Return whether the server does not know if an earlier attempt with this key had its effect (design, section 8).

    If so, the error's decision becomes `verify`.
    """
    if error.fault.code != EFFECT_UNKNOWN:
        return False
    error.decision = Decision(action=Action.VERIFY, delay=None, reason="effect-unknown")
    return True


def return_or_raise(error: FaultError, errors: str) -> Any:
    """Return the error's response if `errors` is "return" and there is one; otherwise raise the error or its cause."""
    if errors == "return":
        response = getattr(error, "response", None)
        if response is not None:
            return response
        if error.__cause__ is not None:
            raise error.__cause__
    raise error
