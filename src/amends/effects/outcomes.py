"""The result of an effect: stored as JSON, and restored as the type that the function declares to return."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import get_type_hints

import msgspec

from amends.effects.arguments import NoCanonicalForm

__all__ = ["LARGEST", "encode_result", "restore_result", "return_type"]

LARGEST = 512 * 1024
"""Bytes of a result that is stored. NATS has a limit of 1 MB for a message."""


def _hook(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json", by_alias=True)
    raise NoCanonicalForm(type(value).__name__)


_encode = msgspec.json.Encoder(enc_hook=_hook).encode


def encode_result(result: object) -> str | None:
    """
    Return a result as JSON, or None if it cannot be stored.

    >>> encode_result({"paid": 5}), encode_result(object())
    ('{"paid":5}', None)
    """
    try:
        encoded = _encode(result)
    except (TypeError, ValueError, OverflowError, RecursionError, BufferError):
        return None
    return encoded.decode() if len(encoded) <= LARGEST else None


def restore_result(encoded: str, kind: object = None) -> object:
    """
    Return a stored result as the type `kind`, or as plain JSON values if it has none or does not fit it.

    >>> restore_result(encode_result((1, 2)), tuple[int, int])
    (1, 2)
    """
    if kind is not None:
        validate = getattr(kind, "model_validate_json", None)
        with suppress(TypeError, ValueError):
            typed: object = (
                validate(encoded) if callable(validate) else msgspec.json.Decoder(kind).decode(encoded)
            )
            return typed
    plain: object = msgspec.json.decode(encoded)
    return plain


def return_type(function: Callable[..., object]) -> object:
    """Return the type that a function declares to return; None if it declares none that can be found."""
    try:
        return get_type_hints(function).get("return")
    except Exception:  # noqa: BLE001 - an annotation is any expression
        return None
