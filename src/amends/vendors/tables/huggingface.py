"""Hugging Face."""

from __future__ import annotations

from amends.vendors.kinds import FORBIDDEN, INTERNAL, INVALID, NOT_FOUND, NOT_READY, OVERLOADED
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="huggingface",
    title="Hugging Face",
    docs="https://huggingface.co/docs/text-generation-inference/reference/api_reference",
    words=words(
        (OVERLOADED, "overloaded"),
        (INVALID, "validation"),
        ({424: INTERNAL, 0: INTERNAL}, "generation incomplete_generation"),
        (NOT_READY, "loading"),
        (FORBIDDEN, "GatedRepo DisabledRepo"),
        (NOT_FOUND, "RepoNotFound RevisionNotFound EntryNotFound"),
    ),
    headers=("x-error-code", "x-error-message", "x-repo-commit", "x-compute-type", "x-inference-id"),
    computes=("/models/", *CHAT),
)
