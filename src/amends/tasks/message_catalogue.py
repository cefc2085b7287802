"""
What to tell the person (T6): a catalogue of plain sentences by code, with placeholders, in any language.

    [de]
    MCP_NOT_CONNECTED = "Ich komme gerade nicht an {name} heran. Bitte die Verbindung prüfen."

Where a catalogue has no text for a code, the built-in one speaks. Placeholders: `{name}` the thing in question, `{wait}` the
seconds to wait. Nothing else of a failure gets into a sentence, so nothing internal can.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.user_messages import user_message

__all__ = ["Catalogue"]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_KNOWN = frozenset({"name", "wait"})
_SOON = "…"  # said in every language


class Catalogue:
    """Sentences by language and code."""

    def __init__(self, texts: Mapping[str, Any] | None = None, *, default: str | None = None) -> None:
        """
        Args:
            texts: `{code: sentence}` for one language, or `{language: {code: sentence}}`.
            default: the language spoken when none is asked for; the first one without it.

        Raises:
            ValueError: a text is none, or has a placeholder nobody fills.
        """
        texts = texts or {}
        nested = all(isinstance(value, Mapping) for value in texts.values())
        self._languages: dict[str, dict[str, str]] = (
            {language.casefold(): dict(codes) for language, codes in texts.items()}
            if nested
            else {"": dict(texts)}
        )
        for language, codes in self._languages.items():
            for code, text in codes.items():
                _check(language, code, text)
        self._default = (default or next(iter(self._languages), "")).casefold()

    @classmethod
    def read(cls, path: str | Path, *, default: str | None = None) -> Catalogue:
        """
        The catalogue in a TOML or JSON file.

        Raises:
            ValueError: it cannot be understood.
            OSError: it cannot be read.
        """
        content = Path(path).read_bytes()
        if str(path).endswith(".json"):
            import json

            return cls(json.loads(content), default=default)
        import tomllib

        return cls(tomllib.loads(content.decode()), default=default)

    def message(self, fault: Fault, language: str | None = None) -> str:
        """
        One or two sentences for a person about this failure. Of a plan that failed, or a delegation, about its cause.

        >>> Catalogue({"TIMEOUT": "Das dauert länger als gedacht."}).message(Fault(code="TIMEOUT", vocabulary="task"))
        'Das dauert länger als gedacht.'
        """
        while fault.code in {"COORDINATION_FAILED", "DELEGATION_FAILED"} and fault.errors:
            fault = fault.errors[0]
        texts = self._texts(language)
        if texts and fault.user_message is not None:
            # Written by whoever raised it, in their language: ours is the one asked for.
            fault = replace(fault, user_message=None) if fault.code in texts else fault
        return user_message(fault, texts).replace("{wait}", _wait(fault))

    def _texts(self, language: str | None) -> dict[str, str]:
        """The texts of a language: of `de-AT` those of `de` where there are none of its own."""
        wanted = self._default if language is None else language.casefold()
        found: dict[str, str] = {}
        for name in (wanted.partition("-")[0], wanted):
            found |= self._languages.get(name, {})
        return found


def _check(language: str, code: str, text: Any) -> None:
    where = f"{language}.{code}" if language else code
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"the message {where} is a sentence, not {text!r}")
    for name in _PLACEHOLDER.findall(text):
        if name not in _KNOWN:
            raise ValueError(
                f"the message {where} has a placeholder {{{name}}}; there are {{name}} and {{wait}}"
            )


def _wait(fault: Fault) -> str:
    if fault.retry_after is None or not 0 < fault.retry_after < 86400:
        return _SOON
    return str(math.ceil(fault.retry_after))
