"""The option `--store` of commands that read an existing store."""

from __future__ import annotations

from pathlib import Path

from amends.errors.cli import ValidationError

__all__ = ["require_file", "require_store"]


def require_store(url: str | None, example: str) -> str:
    """
    Return the store's URL.

    Raises:
        ValidationError: if none is given, or the path of a file.

    """
    if not url:
        raise ValidationError(
            "no store is given",
            field="--store",
            suggestions=[f"Give --store {example}, or set AMENDS_STORE"],
        )
    if ":" not in url:
        raise ValidationError(
            f"{url!r} is not a store URL", field="--store", suggestions=[f"Did you mean sqlite:///{url}?"]
        )
    return url


def require_file(url: str) -> None:
    """Refuse a SQLite file that does not exist: opening it would create it."""
    from amends.stores.address import parse

    address = parse(url)
    if address.scheme == "sqlite" and not Path(address.path).exists():
        raise ValidationError(
            f"there is no file {address.path}",
            field="--store",
            suggestions=["Correct the path in --store"],
        )
