"""
Messages for users (T6): sentences by code, with placeholders, in any language.

    [de]
    MCP_NOT_CONNECTED = "Ich komme gerade nicht an {name} heran. Bitte die Verbindung prüfen."

If a catalogue has no text for a code, the built-in text is used. Placeholders: `{name}`, the thing that is missing or wrong, and
`{wait}`, the seconds to wait. No other part of a fault is put into a message, so messages contain nothing internal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.user_messages import user_message
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["Catalogue"]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_KNOWN = frozenset({"name", "wait"})
_UNKNOWN_WAIT = "…"


class Catalogue:
    """
    User messages by language and code. Use it to show failures to users in their language.

    >>> catalogue = Catalogue({"de": {"TIMEOUT": "Bitte in {wait} Sekunden noch einmal versuchen."}})
    >>> catalogue.message(Fault(code="TIMEOUT", vocabulary="task", retry_after=5), "de-AT")
    'Bitte in 5 Sekunden noch einmal versuchen.'
    """

    @explains_wrong_calls
    def __init__(self, texts: Mapping[str, object] | None = None, *, default: str | None = None) -> None:
        """
        Args:
            texts: `{code: sentence}` for one language, or `{language: {code: sentence}}`.
            default: the language to use when `message` is called without one; by default the first language.

        Raises:
            ValueError: a text is not a string, is empty, or has an unknown placeholder.
        """
        texts = texts or {}
        nested = {name: codes for name, codes in texts.items() if isinstance(codes, Mapping)}
        languages = nested if len(nested) == len(texts) else {"": texts}
        self._languages: dict[str, dict[str, str]] = {
            language.casefold(): {code: _check(language, code, text) for code, text in codes.items()}
            for language, codes in languages.items()
        }
        self._default = (default or next(iter(self._languages), "")).casefold()

    @classmethod
    def read(cls, path: str | Path, *, default: str | None = None) -> Catalogue:
        """
        Read a catalogue from a TOML or JSON file.

        Raises:
            ValueError: the file cannot be parsed.
            OSError: the file cannot be read.
        """
        content = Path(path).read_bytes()
        if str(path).endswith(".json"):
            import json

            return cls(json.loads(content), default=default)
        import tomllib

        return cls(tomllib.loads(content.decode()), default=default)

    def message(self, fault: Fault, language: str | None = None) -> str:
        """
        Return one or two sentences for the user about this fault. For a failed plan or delegation, they describe the cause.

        >>> Catalogue({"TIMEOUT": "Das dauert länger als gedacht."}).message(Fault(code="TIMEOUT", vocabulary="task"))
        'Das dauert länger als gedacht.'
        """
        while fault.code in {"COORDINATION_FAILED", "DELEGATION_FAILED"} and fault.errors:
            fault = fault.errors[0]
        texts = self._texts(language)
        if texts and fault.user_message is not None:
            # The fault's own message is in the language of its producer; the catalogue has the requested language.
            fault = replace(fault, user_message=None) if fault.code in texts else fault
        return user_message(fault, texts).replace("{wait}", _wait(fault))

    def _texts(self, language: str | None) -> dict[str, str]:
        """The texts of a language; `de-AT` uses those of `de` for codes that it does not have."""
        wanted = self._default if language is None else language.casefold()
        found: dict[str, str] = {}
        for name in (wanted.partition("-")[0], wanted):
            found |= self._languages.get(name, {})
        return found


def _check(language: str, code: str, text: object) -> str:
    where = f"{language}.{code}" if language else code
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"the message {where} must be a string that is not empty, not {text!r}")
    for name in _PLACEHOLDER.findall(text):
        if name not in _KNOWN:
            raise ValueError(
                f"the message {where} has an unknown placeholder {{{name}}}: use {{name}} or {{wait}}"
            )
    return text


def _wait(fault: Fault) -> str:
    if fault.retry_after is None or not 0 < fault.retry_after < 86400:
        return _UNKNOWN_WAIT
    return str(math.ceil(fault.retry_after))
