"""The features of v1.1 (section 6.2). A feature is used only if both sides offer it."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["FEATURES", "STEPS", "negotiate"]

FEATURES = (
    "heartbeat",
    "ack",
    "list_jobs",
    "subscribe",
    "lease_expires_at",
    "cost.budget",
    "model.use",
    "provisioned_credentials",
    "progress",
    "result_chunk",
    "agent_versions",
)
"""All features. A runtime without a credential provider does not offer `provisioned_credentials`."""

STEPS = "x-vendor.amends.steps"
"""An extension of amends: signals, and the steps of jobs with their questions and answers (`x-vendor.amends.job`)."""


def negotiate(ours: Iterable[str], theirs: Iterable[str]) -> frozenset[str]:
    """
    The features that both sides offer.

    >>> sorted(negotiate(FEATURES, ["ack", "telepathy"]))
    ['ack']
    """
    return frozenset(ours) & frozenset(theirs)
