"""
Asking about a call that is nearly identical to a recent one: a model that plans again often writes a text differently.

The calls of a tool in a scope within the window are one row of a table. A call adds itself before it runs, and is asked about
if an earlier entry is similar and its effect is still in the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from difflib import SequenceMatcher

import msgspec

from amends.durable.keys import Keys
from amends.effects.arguments import digest
from amends.effects.durations import seconds
from amends.effects.records import TABLE, EffectRecord
from amends.stores.errors import ConflictError

__all__ = ["Similar", "are_similar", "find_similar"]

_RATIO = 0.8
"""The share of equal characters from which two texts count as nearly identical."""
_LONGEST = 4096
_KEPT = 50
_COMPARED = 400
"""Characters of two texts that are compared one by one, which takes up to 40 ms. Two texts of 3,900 characters took 10 minutes."""
_SETTLING = 5.0
"""Seconds in which an entry counts although its effect is not in the ledger yet."""


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """
    When a call counts as nearly identical to an earlier one.

    >>> Similar.of(600).within
    600.0
    """

    within: float
    """Seconds after the earlier call."""
    on: tuple[str, ...] = ()
    """The arguments that are compared; the others may differ. Without them all arguments are compared."""

    @classmethod
    def of(cls, value: Similar | float | timedelta | None) -> Similar | None:
        """
        Return what `once(similar=...)` means: None, seconds, a timedelta or a `Similar`.

        Raises:
            TypeError, ValueError: it is none of these.

        """
        if value is None or isinstance(value, Similar):
            return value
        return cls(within=seconds("similar", value))


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A call in the window."""

    name: str
    started: float
    arguments: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Entry]).decode


def are_similar(first: dict[str, object], second: dict[str, object], on: Collection[str] = ()) -> bool:
    """
    Return whether two calls are nearly identical: equal numbers, and texts that differ in a few characters.

    >>> are_similar({"to": "Ann", "text": "Hello Ann!"}, {"to": "ann", "text": "Hello, Ann"})
    True
    >>> are_similar({"amount": 5}, {"amount": 6})
    False
    """
    names = set(on) or first.keys() | second.keys()
    return all(_near(first.get(name), second.get(name)) for name in names)


def _near(first: object, second: object) -> bool:
    if first == second:
        return True
    if isinstance(first, str) and isinstance(second, str):
        one, other = _words(first), _words(second)
        if one == other:
            return bool(one)
        # A number inside a text identifies something: another number is another call.
        if [each for each in one if each.isdigit()] != [each for each in other if each.isdigit()]:
            return False
        return _share(one, other) >= _RATIO
    if isinstance(first, dict) and isinstance(second, dict):
        return are_similar(first, second)
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return all(_near(one, other) for one, other in zip(first, second, strict=True))
    return False


def _share(one: list[str], other: list[str]) -> float:
    """
    Return the share of equal characters of two texts; of long ones, that of the words that both have.

    The time of a comparison by characters grows with the third power of the length.
    """
    length = len(" ".join(one)) + len(" ".join(other))
    if length <= _COMPARED:
        return SequenceMatcher(None, " ".join(one), " ".join(other), autojunk=False).ratio()
    common = Counter(one) & Counter(other)
    return 2 * sum((len(word) + 1) * count for word, count in common.items()) / (length + 2)


def _words(text: str) -> list[str]:
    return "".join(each if each.isalnum() else " " for each in text.casefold()).split()


async def find_similar(
    keys: Keys[EffectRecord],
    name: str,
    record: EffectRecord,
    arguments: bytes,
    rule: Similar,
    *,
    ask: bool,
) -> tuple[str, EffectRecord] | None:
    """
    Add a call to the window of its tool, or return the effect that it is nearly identical to.

    Args:
        keys: the ledger.
        name: the call's effect.
        record: its record.
        arguments: its canonical arguments.
        rule: when calls are similar.
        ask: whether to look for a similar one; False if the caller said that this is another call.

    """
    table, row_key = keys.store.table(f"{TABLE}.recent"), digest(record.tool, record.scope)
    mine = Entry(name, record.started, arguments[:_LONGEST].decode("utf-8", "replace"))
    while True:
        row = await table.get(row_key)
        recent = [] if row is None else _decode(row.value)
        recent = [each for each in recent if record.started - each.started < rule.within]
        if any(each.name == name for each in recent):
            return None
        for each in recent if ask else ():
            if _matches(each, mine, rule):
                found = await keys.get(each.name)
                if found is not None:
                    return each.name, found
                if record.started - each.started < _SETTLING:
                    return each.name, EffectRecord(
                        state="running",
                        fingerprint="",
                        tool=record.tool,
                        arguments=each.arguments,
                        started=each.started,
                    )
        value = _encode([*recent[-_KEPT + 1 :], mine])
        try:
            await table.put(
                row_key, value, revision=0 if row is None else row.revision, expires_in=rule.within
            )
        except ConflictError:
            continue
        return None


def _matches(entry: Entry, mine: Entry, rule: Similar) -> bool:
    try:
        first, second = msgspec.json.decode(entry.arguments), msgspec.json.decode(mine.arguments)
    except msgspec.DecodeError:
        return False  # a long call that was cut
    return are_similar(first, second, rule.on)
