"""
The error for an idempotency key whose first request may or may not have had its effect.

EFFECT_UNKNOWN is registered like an application's own code, so it has a documentation page and a table row. A client
that receives it verifies the effect instead of retrying.
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
        """Set `max_retries` to 0, so that clients do not retry, and the way out as the first suggestion."""
        more.setdefault("max_retries", 0)
        more.setdefault("executed", Executed.MAYBE)
        more.setdefault("in_doubt", True)
        more.setdefault("suggestions", (EffectUnknownError.suggestion,))
        super().__init__(message, **more)
