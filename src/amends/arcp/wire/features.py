"""The features of v1.1 (section 6.2). Nobody uses one that both sides did not name."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["FEATURES", "negotiated"]

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
"""All there are. A runtime without a provisioner does not offer `provisioned_credentials`."""


def negotiated(ours: Iterable[str], theirs: Iterable[str]) -> frozenset[str]:
    """
    What both sides have.

    >>> sorted(negotiated(FEATURES, ["ack", "telepathy"]))
    ['ack']
    """
    return frozenset(ours) & frozenset(theirs)
