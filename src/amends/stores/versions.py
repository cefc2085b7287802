"""The version of what is stored, for all durable backends, and what to do with a store of another version."""

from __future__ import annotations

__all__ = ["VERSION", "other_version"]

VERSION = 5
"""Increase it with every change of what the backends store, or of what the packages above store in them."""


def other_version(found: str | None, remove: str) -> str | None:
    """
    The sentence for a store with the version `found` (None: written before versions were recorded).

    `remove` says how to remove the store. Returns None if the version is this one.

    >>> print(other_version("4", "remove the file"))
    the store was written by an earlier amends (format 4; this version uses 5): finish its work with the version that wrote it, then remove the file or choose another name
    """
    if found == str(VERSION):
        return None
    if found is not None and not (found.isdecimal() and int(found) < VERSION):
        return f"the store was written by a newer amends (format {found}; this version uses {VERSION}): upgrade amends"
    return (
        f"the store was written by an earlier amends (format {found or 'without a number'}; this version uses {VERSION}): "
        f"finish its work with the version that wrote it, then {remove} or choose another name"
    )
