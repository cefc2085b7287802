"""The record of an effect in the ledger, and what a reader of the ledger gets."""

from __future__ import annotations

from datetime import UTC, datetime
from shlex import quote as shell_quote
from typing import Literal

import msgspec

from amends.core.redaction import redact
from amends.durable.keys import Claim, KeyRecord, Keys

__all__ = ["TABLE", "Effect", "EffectRecord", "call_text", "effect_of", "free", "instant"]

TABLE = "amends.effects"
"""The table of the ledger in its store."""
SHOWN = 400
"""Characters of the arguments that are stored, so that a person can tell which call it was."""


class EffectRecord(KeyRecord, frozen=True, kw_only=True, omit_defaults=True):
    """The state of an effect, and its outcome."""

    tool: str = ""
    scope: str = ""
    arguments: str = ""
    """The arguments as canonical JSON, cut to `SHOWN` characters."""
    derived: bool = False
    """Whether the key was derived from the arguments."""
    started: float = 0.0
    ended: float = 0.0
    outcome: str | None = None
    """The result as JSON text; None if it is not known or cannot be stored."""
    delivered: bool = False
    """Whether a caller got the outcome."""
    reasons: tuple[str, ...] = ()
    """Why it was done once more, for each time after the first."""
    times: tuple[float, ...] = ()
    """When it was done before."""
    failed: dict[str, object] | None = None
    """The fault of a call that failed after it had its effect."""
    previous: EffectRecord | None = None
    """The effect that is done once more, until the repeat is done: what is left if the repeat did not happen."""


async def free(keys: Keys[EffectRecord], claim: Claim[EffectRecord]) -> EffectRecord | None:
    """End a claim whose call did not happen: free the key, or restore and return the effect that it was to repeat."""
    before = claim.record.previous
    if before is None:
        await keys.release(claim)
    else:
        # All members but those that describe the row.
        await keys.complete(
            claim,
            **{name: getattr(before, name) for name in before.__struct_fields__ if name not in _OF_THE_ROW},
        )
    return before


_OF_THE_ROW = frozenset({"state", "holder", "lease", "owner", "call"})


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """
    An effect as `Effects.pending`, `Effects.get` and `amends effects` show it.

    >>> from amends.effects import Effects
    >>> effects = Effects("memory:")
    >>> effects.call("pay", lambda: "receipt 17", {"order": 17}, key="17")
    'receipt 17'
    >>> effect = effects.get("pay:17")
    >>> effect.state, effect.call, effect.outcome
    ('done', 'pay({"order":17})', 'receipt 17')
    """

    key: str
    """The name of the effect in the ledger: the tool and its key."""
    tool: str
    scope: str
    state: Literal["running", "done", "doubt"]
    call: str
    """The call, without what looks like a secret."""
    started: str
    ended: str | None = None
    delivered: bool = False
    times: int = 1
    """How often it was done, the last time included."""
    question: str | None = None
    """What a person or a model has to find out, if the effect is in doubt."""
    outcome: object = None


def instant(seconds: float) -> str:
    """
    Return a time as text.

    >>> instant(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


def call_text(record: EffectRecord) -> str:
    """Return the call of a record, without what looks like a secret."""
    return f"{record.tool}({redact(record.arguments)})"


def shortened(text: str, limit: int = 120) -> str:
    """
    Return a call as it fits into a message.

    >>> shortened("pay(17)"), len(shortened("x" * 500))
    ('pay(17)', 120)
    """
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def answer_text(name: str) -> str:
    """Return the command that answers the question of an effect in doubt."""
    return f"amends effects verify {shell_quote(name)} --happened or --not-happened"


def question_text(name: str, record: EffectRecord) -> str:
    """Return the question that decides a doubt."""
    return (
        f"{call_text(record)} began at {instant(record.started)} and its outcome is not known. Did it happen? "
        f"Look it up where it would show, then answer: {answer_text(name)}"
    )


def effect_of(name: str, record: EffectRecord) -> Effect:
    """Return what a reader of the ledger gets for a record."""
    outcome = None if record.outcome is None else msgspec.json.decode(record.outcome)
    return Effect(
        key=name,
        tool=record.tool,
        scope=record.scope,
        state=record.state,
        call=call_text(record),
        started=instant(record.started),
        ended=instant(record.ended) if record.ended else None,
        delivered=record.delivered,
        times=len(record.times) + 1,
        question=question_text(name, record) if record.state == "doubt" else None,
        outcome=outcome,
    )
