"""
Problem documents that differ only in their trace id and their path, written once.

Most failures of an application are the same few sentences over and over. Such a document is kept as the three pieces
around the two values that change, so that answering costs little more than joining them. Only faults that are a code,
a sentence and numbers are kept; anything with structure is written anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from amends.core.fault import Fault

__all__ = ["PATH", "TRACE", "Template", "key_of", "template"]

TRACE, PATH = "amends:trace:4f1d2c", "amends:path:9b07e3"
"""What stands in the pieces' gaps while a template is made."""
_MOST = 512


class Template(NamedTuple):
    """A document with two gaps, and what else of it an answer needs."""

    status: int
    wait: int | None
    pieces: tuple[bytes, bytes, bytes]

    def filled(self, path: str, trace: str) -> bytes:
        """The document. Both values are plain: nothing in them has to be escaped."""
        first, second, third = self.pieces
        return b"%b%b%b%b%b" % (first, path.encode(), second, trace.encode(), third)


def key_of(fault: Fault) -> tuple[Any, ...] | None:
    """What a plain fault consists of; None for one with more than a sentence and numbers."""
    if (
        fault.details is not None
        or fault.errors
        or fault.suggestions
        or fault.extensions
        or fault.intent is not None
        or fault.origin is not None
        or fault.trace_id is not None
        or fault.instance is not None
        or fault.field is not None
        or fault.type is not None
        or fault.doc_uri is not None
        or fault.title is not None
        or fault.user_message is not None
        or fault.strategy is not None
        or fault.max_retries is not None
        or fault.attempt is not None
        or fault.max_attempts is not None
        or len(fault.message) > 500
    ):
        return None
    return (
        fault.vocabulary,
        fault.code,
        fault.message,
        fault.status,
        fault.retry_after,
        # Members of an enum are the same objects everywhere, and slow to hash.
        id(fault.recovery),
        id(fault.actor),
    )


_TEMPLATES: dict[Any, Template | None] = {}
_ABSENT: Any = object()


def template(key: tuple[Any, ...], make: Callable[[], tuple[dict[str, Any], bytes]]) -> Template | None:
    """The template under `key`, made by writing the document once; None where it cannot be cut into pieces."""
    found: Template | None = _TEMPLATES.get(key, _ABSENT)
    if found is _ABSENT:
        if len(_TEMPLATES) >= _MOST:
            # Sentences that never come twice; those that do are back at once.
            _TEMPLATES.clear()
        found = _TEMPLATES[key] = _cut(*make())
    return found


def _cut(document: dict[str, Any], raw: bytes) -> Template | None:
    first, _, rest = raw.partition(PATH.encode())
    second, _, third = rest.partition(TRACE.encode())
    if raw.count(PATH.encode()) != 1 or raw.count(TRACE.encode()) != 1 or not second:
        return None
    return Template(document["status"], document.get("retry_after_ms"), (first, second, third))
