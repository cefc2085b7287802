"""A store in the memory of this process, for tests and experiments; its data ends with the process."""

from __future__ import annotations

from amends.stores.memory.store import MemoryStore, open_memory

__all__ = ["MemoryStore", "open_memory"]
