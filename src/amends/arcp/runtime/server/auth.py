"""Authentication: a table of bearer tokens compared in constant time, or a function of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest

__all__ = ["Authenticate", "authenticator"]

Authenticate = Callable[[str], str | Awaitable[str | None] | None]
"""Takes a bearer token and returns its principal, or None to reject it. May be a coroutine function."""


def authenticator(
    tokens: Mapping[str, str] | Iterable[str] | str | None, authenticate: Authenticate | None
) -> Callable[[str], Awaitable[str | None]]:
    """
    Return an async function from bearer token to principal, for either way to configure it.

    Args:
        tokens: a mapping from token to principal, or tokens alone. A token without a principal gets one named after the
            token's digest, so that the token itself is never stored.
        authenticate: the function to use instead of a table.

    Raises:
        ValueError: neither or both arguments are given, or there is no usable token.

    """
    if (tokens is None) == (authenticate is None):
        raise ValueError(
            "pass tokens= with a principal for each, or authenticate=function, or set AMENDS_RUNTIME_TOKEN, to define who "
            "may connect"
        )
    if authenticate is not None:
        return _wrap_function(authenticate)
    if isinstance(tokens, str):
        tokens = [tokens]
    known = tokens if isinstance(tokens, Mapping) else {token: _name(token) for token in tokens or ()}
    if not known or not all(isinstance(token, str) and token for token in known):
        raise ValueError("tokens= needs at least one token, and no token may be empty")
    table = [(_digest(token), str(principal)) for token, principal in known.items()]

    async def look_up(token: str) -> str | None:
        found = None
        given = _digest(token)
        # Compare every row, so that the duration does not depend on which row matches.
        for digest, principal in table:
            if compare_digest(digest, given):
                found = principal
        return found

    return look_up


def _wrap_function(authenticate: Authenticate) -> Callable[[str], Awaitable[str | None]]:
    async def ask(token: str) -> str | None:
        answer = authenticate(token)
        if inspect.isawaitable(answer):
            answer = await answer
        return answer if isinstance(answer, str) and answer else None

    return ask


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _name(token: str) -> str:
    return f"token-{_digest(token).hex()[:16]}"
