"""The types of the vendor tables: kinds of failures, idempotency keys, and a vendor with its words."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from amends.core.enums import Actor, Executed, Recovery

__all__ = ["Key", "Kind", "Vendor", "words"]


class Kind(msgspec.Struct, frozen=True, gc=False):
    """What a code word means: the code of the http vocabulary and the facts that decide."""

    code: str
    recovery: Recovery
    actor: Actor = Actor.CALLER
    executed: Executed | None = None
    """None: the HTTP status decides."""
    wait: float | None = None
    """Seconds that the vendor documents, if the response names no wait."""


class Key(msgspec.Struct, frozen=True, gc=False):
    """How a service takes idempotency keys."""

    header: str | None = None
    """The request header that carries the key."""
    field: str | None = None
    """The member of the request body that carries it, for services without such a header."""
    hours: float | None = None
    """How long a key is honoured; None: the reference does not say."""
    replay: str | None = None
    """The response header that marks a replayed answer."""


class Vendor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The facts about one service."""

    name: str
    title: str
    docs: str
    """Address of the published error reference that the table follows."""
    words: Mapping[str, Kind | Mapping[int, Kind]] = {}
    """Code word → kind; where the status matters, status → kind, with 0 for any other status, and with the negative status
    for a response that names a wait."""
    unless: Mapping[str, Kind] = {}
    """Broad words, used only if there is no HTTP status of a failure: in streams, and inside successful answers."""
    headers: tuple[str, ...] = ()
    """Response headers that only this service sends; one that ends with `-` is a prefix."""
    statuses: Mapping[int, Kind] = {}
    """Statuses that mean something else here than in general."""
    closes: Mapping[int, Kind] = {}
    """WebSocket close codes of its sockets."""
    keys: Key | None = None
    computes: tuple[str, ...] = ()
    """Ends of the paths of routes that only compute (chat, embeddings, search), and with a slash at the end, parts of them."""
    numbers: bool = False
    """Whether numeric codes are words. They are used only if the vendor was recognised."""


def words(*groups: tuple[Kind | Mapping[int, Kind], str]) -> dict[str, Kind | Mapping[int, Kind]]:
    """Return a table from (kind, words separated by spaces)."""
    return {word: kind for kind, text in groups for word in text.split()}
