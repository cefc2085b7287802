"""Routes that only compute and that several model services share: the ends of their paths."""

from __future__ import annotations

__all__ = ["CHAT", "GENERATION"]

CHAT = ("/chat/completions", "/completions", "/embeddings", "/chat", "/embed", "/rerank", "/generate")
GENERATION = ("/chat/completions", "/embeddings", "/generation")
