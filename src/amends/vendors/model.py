"""The types of the tables of services at run time: a service with its code words, and how it takes idempotency keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from amends.core.meanings import Meaning
from amends.vendors.conditions import Condition, every

__all__ = ["Acts", "Key", "Rule", "Vendor"]

Word = Meaning | Mapping[int, Meaning]


class Key(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """How a service takes idempotency keys."""

    header: str | None = None
    """The request header that carries the key."""
    field: str | None = None
    """The member of the request body that carries it, for services without such a header."""
    hours: float | None = None
    """How long a key is honoured; None: the reference does not say."""
    replay: str | None = None
    """The response header that marks a replayed answer."""


class Rule:
    """One rule of a service file: conditions, and what follows. The conditions are prepared on first use."""

    __slots__ = ("certain", "holds", "rank", "spec", "vendor", "when")

    def __init__(
        self,
        vendor: Vendor,
        when: Sequence[str],
        spec: Mapping[str, Any] | None = None,
        *,
        certain: bool = True,
    ) -> None:
        self.vendor, self.when, self.spec = vendor, when, spec or {}
        self.certain = certain
        """Whether the shape is unmistakable, and not a guess."""
        self.rank = (certain, sum(not each.startswith("!") for each in when), 0)
        """The rule with the highest rank decides: a shape before a guess, then the one with more conditions that are not
        negative, then the earlier one."""
        self.holds: Condition = self._prepare
        """Returns whether all conditions hold for a value."""

    def _prepare(self, value: object) -> bool:
        words: tuple[str, ...] = ()
        if any(": word" in each or ":word" in each for each in self.when):
            words = (*self.vendor.words, *self.vendor.broad)
        self.holds = every(self.when, frozenset(words))
        return self.holds(value)


class Acts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """By what a request to a route that computes names something that acts or stays at the service."""

    when: tuple[str, ...] = ()
    """Conditions on its body; `headers.x-name` and `query.name` are its header and a parameter of its address."""
    members: tuple[str, ...] = ()
    """Names of members, anywhere in the body."""
    tools: tuple[str, ...] = ()
    """Types of the tools that the caller runs, without the date of a version; "" is a tool without a type."""
    tool_members: tuple[str, ...] = ()
    """Members of such tools, if they have no type."""


class Vendor(msgspec.Struct, kw_only=True):
    """The facts about one service, from its file."""

    name: str
    title: str
    docs: str = ""
    """Address of the published error reference that the file follows."""
    is_format: bool = False
    """Whether the name stands for a format of answers (GraphQL, gRPC) and not for one service."""
    words: Mapping[str, Word] = {}
    """Code word → meaning; where the status matters, status → meaning, with 0 for any other status, and with the negative
    status for a response that names a wait. Numbers are used only if the service was recognised."""
    own: frozenset[str] = frozenset()
    """Words that others use for other things: they count only if the service was recognised."""
    broad: Mapping[str, Meaning] = {}
    """Broad code words, used only if there is no HTTP status of a failure: in streams, and inside successful answers."""
    statuses: Mapping[int, Meaning] = {}
    """Statuses that mean something else here than in general."""
    closes: Mapping[int, Meaning] = {}
    """WebSocket close codes of its sockets."""
    at: Mapping[str, Any] = {}
    """Places of facts that the general reader does not know."""
    when: tuple[Rule, ...] = ()
    """Conditions with a meaning of their own."""
    failed: tuple[Rule, ...] = ()
    """How a successful answer reports a failure, if the service is known."""
    keys: Key | None = None
    computes: tuple[str, ...] = ()
    """Ends of the paths of routes that only compute (chat, embeddings, search), and with a slash at the end, parts of them."""
    acts: Acts | None = None
    """By what a request to such a route names something that acts or stays at the service."""
