"""A store in the memory of this process: nothing survives it. For tests, and for trying things out."""

from __future__ import annotations

from amends.stores.memory.store import MemoryStore, open_memory

__all__ = ["MemoryStore", "open_memory"]
