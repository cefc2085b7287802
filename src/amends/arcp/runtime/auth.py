"""Who is speaking: bearer tokens compared in constant time, or a function of your own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest

__all__ = ["Authenticate", "authenticator"]

Authenticate = Callable[[str], str | Awaitable[str | None] | None]
"""Takes a bearer token, gives the principal it stands for, or None. May be a coroutine function."""


def authenticator(
    tokens: Mapping[str, str] | Iterable[str] | str | None, authenticate: Authenticate | None
) -> Callable[[str], Awaitable[str | None]]:
    """
    One asynchronous question for every way to configure it.

    Args:
        tokens: from token to principal; or tokens alone, each of which is a principal of its own (named by its digest,
            so that the token itself is stored nowhere).
        authenticate: asked instead of a table.

    Raises:
        ValueError: neither or both are given, or there is no token.

    """
    if (tokens is None) == (authenticate is None):
        raise ValueError(
            "say who may connect: tokens={token: principal}, or authenticate=a function, not both"
        )
    if authenticate is not None:
        return _asking(authenticate)
    if isinstance(tokens, str):
        tokens = [tokens]
    known = tokens if isinstance(tokens, Mapping) else {token: _name(token) for token in tokens or ()}
    if not known or not all(isinstance(token, str) and token for token in known):
        raise ValueError("tokens= needs at least one token, and none of them empty")
    table = [(_digest(token), str(principal)) for token, principal in known.items()]

    async def look_up(token: str) -> str | None:
        found = None
        given = _digest(token)
        # Every row is compared, so that the time says nothing about which one it was.
        for digest, principal in table:
            if compare_digest(digest, given):
                found = principal
        return found

    return look_up


def _asking(authenticate: Authenticate) -> Callable[[str], Awaitable[str | None]]:
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
