"""Ollama."""

from __future__ import annotations

from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="ollama",
    title="Ollama",
    # Errors are prose only: the status decides.
    docs="https://github.com/ollama/ollama/blob/main/docs/api.md",
    computes=("/api/generate", "/api/chat", "/api/embed"),
)
