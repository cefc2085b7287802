"""
A ledger of effects: a call that an agent makes again does not have its effect again.

    from amends.effects import Effects

    effects = Effects("sqlite:///effects.db")

    @effects.once(key=lambda order: order.number, verify=find_payment)
    async def pay(order): ...

An agent that loses an answer plans again and makes a new call. The ledger recognises it: the key is claimed before the call,
and the outcome is recorded after it. docs/effects.md has the whole picture.
"""

from __future__ import annotations

from amends.effects.errors import (
    AlreadyDoneError,
    EffectRunningError,
    InDoubtError,
    KeyReusedError,
    LedgerUnavailableError,
    SimilarError,
)
from amends.effects.ledger import Effects, Pending, Scope
from amends.effects.records import Effect
from amends.effects.similar import Similar
from amends.recovery.effect_context import current_key

__all__ = [
    "AlreadyDoneError",
    "Effect",
    "EffectRunningError",
    "Effects",
    "InDoubtError",
    "KeyReusedError",
    "LedgerUnavailableError",
    "Pending",
    "Scope",
    "Similar",
    "SimilarError",
    "current_key",
]
