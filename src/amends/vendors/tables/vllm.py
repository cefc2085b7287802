"""vLLM and other OpenAI-compatible servers."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONTEXT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    NOT_READY,
    OVERLOADED,
    RATE,
)
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="vllm",
    title="vLLM and other OpenAI-compatible servers",
    docs="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    words=words(
        (OVERLOADED, "ServiceUnavailableError EngineDeadError"),
        (NOT_FOUND, "NotFoundError"),
        (CONTEXT, "exceed_context_size_error"),
        (NOT_READY, "unavailable_error"),
        (INVALID, "not_supported_error"),
    ),
    unless={
        "BadRequestError": INVALID,
        "InternalServerError": INTERNAL,
        "UnprocessableEntityError": INVALID,
        "AuthenticationError": BAD_KEY,
        "PermissionDeniedError": FORBIDDEN,
        "RateLimitError": RATE,
    },
    computes=CHAT,
)
