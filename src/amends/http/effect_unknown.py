"""
A key whose first request died in the middle: nobody knows whether it had its effect.

Registered like any code of one's own, so it has its page and its row; every side that knows the word verifies.
"""

from __future__ import annotations

from typing import Any

from amends.core.enums import Executed
from amends.errors.base import FaultError

__all__ = ["EFFECT_UNKNOWN", "EffectUnknownError"]

EFFECT_UNKNOWN = "EFFECT_UNKNOWN"


class EffectUnknownError(FaultError):
    """An earlier request with this key may have had its effect"""

    code = EFFECT_UNKNOWN
    recovery = "uncertain"
    executed = "maybe"
    actor = "caller"
    status = 500
    message = "An earlier request with this key may have had its effect"
    suggestion = "Find out whether it happened; if it did not, send it again with a new key"
    user_message = "That may or may not have gone through. I'll check before trying again."

    def __init__(self, message: str | None = None, **more: Any) -> None:
        """Nobody repeats it blindly: no retries are left, and the way out is the first suggestion."""
        more.setdefault("max_retries", 0)
        more.setdefault("executed", Executed.MAYBE)
        more.setdefault("suggestions", (EffectUnknownError.suggestion,))
        super().__init__(message, **more)
