"""A store on NATS JetStream, shared by many machines."""

from __future__ import annotations

from amends.stores.nats.store import NatsStore, open_nats

__all__ = ["NatsStore", "open_nats"]
