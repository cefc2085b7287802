"""ElevenLabs."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, NOT_FOUND, OVERLOADED, QUOTA, RATE, TOO_LARGE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="elevenlabs",
    title="ElevenLabs",
    docs="https://elevenlabs.io/docs/developer-guides/errors",
    words=words(
        (QUOTA, "quota_exceeded"),
        (RATE, "too_many_concurrent_requests"),
        (OVERLOADED, "system_busy"),
        (TOO_LARGE, "max_character_limit_exceeded"),
        (BAD_KEY, "invalid_api_key needs_authorization missing_permissions"),
        (NOT_FOUND, "voice_not_found model_not_found"),
        (FORBIDDEN, "detected_unusual_activity only_for_creator subscription_required"),
    ),
    computes=("/text-to-speech/", "/speech-to-text"),
)
