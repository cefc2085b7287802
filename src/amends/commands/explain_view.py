"""The text of `amends explain`: vocabularies in which a code has the same meaning are shown together."""

from __future__ import annotations

from typing import Any

from amends.cli.colour import Painter
from amends.core.enums import Executed, Recovery
from amends.core.explanation import EFFECT, MEANING
from amends.core.vocabulary import vocabulary
from amends.core.wrapping import UNLIMITED, wrapped

__all__ = ["code_text", "word_text"]

# What decides about the next step. Messages and suggestions differ in wording only.
_MEANING = ("recovery", "executed", "actor", "status", "exit", "alias")


def code_text(entries: list[dict[str, Any]], paint: Painter, width: int = UNLIMITED) -> str:
    """
    Return the entries of one code as text.

    >>> from amends.core.explanation import facts
    >>> entry = facts("arcp", vocabulary("arcp").rows["CANCELLED"])
    >>> print(code_text([entry], Painter(on=False)).splitlines()[0])
    CANCELLED (Agent Runtime Control Protocol errors)
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for entry in entries:
        groups.setdefault(tuple(entry.get(key) for key in _MEANING), []).append(entry)
    return "\n".join(_group(group, paint, width) for group in groups.values())


def _group(group: list[dict[str, Any]], paint: Painter, width: int = UNLIMITED) -> str:
    names = [entry["vocabulary"] for entry in group]
    entry = {**group[-1], **group[0]}
    titles = ", ".join(vocabulary(name).title for name in names)
    shown = wrapped(f"{entry['code']} ({titles})", width, 2)
    lines = [shown.replace(entry["code"], paint(entry["code"], "bold"), 1), *_meaning(entry, paint, width)]
    if "wait" in entry:
        lines.append(_fact("wait", f"{entry['wait']:g} s if none is named", paint, width))
    numbers = [("HTTP status", "status"), ("exit code", "exit"), ("JSON-RPC", "jsonrpc")]
    lines += [_fact(label, entry[key], paint, width) for label, key in numbers if key in entry]
    others = ", ".join(
        f"{target} {code}"
        for target, code in entry["elsewhere"].items()
        if target not in names and code != entry["code"]
    )
    if others:
        lines.append(_fact("other names", others, paint, width))
    if "alias" in entry:
        lines.append(_fact("deprecated", f"use {entry['alias']}", paint, width))
    return "\n".join([*lines, ""])


def word_text(entry: dict[str, Any], title: str, paint: Painter, width: int = UNLIMITED) -> str:
    """Return the entry of a vendor's code word as text."""
    where = f" with status {entry['status']}" if "status" in entry else ""
    lines = [f"{paint(entry['word'], 'bold')} ({title}){where}", *_meaning(entry, paint, width)]
    lines.append(_fact("means", entry["means"], paint, width))
    if "wait" in entry:
        lines.append(_fact("wait", f"{entry['wait']:g} s, as documented", paint, width))
    lines.append(_fact("reference", entry["docs"], paint, width))
    if "only_without_status" in entry:
        lines.append(
            _fact("note", "a broad word: it counts only without an HTTP status of a failure", paint, width)
        )
    return "\n".join([*lines, ""])


def _meaning(entry: dict[str, Any], paint: Painter, width: int = UNLIMITED) -> list[str]:
    recovery, executed = Recovery(entry["recovery"]), entry["executed"]
    effect = (
        EFFECT[Executed(executed)] if executed in set(Executed) else "the status says whether it happened"
    )
    summary = f"{entry['message']}. {entry['suggestion']}."
    return [
        f"  {wrapped(summary, width, 2)}",
        _fact("recovery", f"{recovery}: {MEANING[recovery]}", paint, width),
        _fact("executed", f"{executed}: {effect}" if executed in set(Executed) else effect, paint, width),
        _fact("next to act", f"the {entry['actor']}", paint, width),
        _fact("to the user", entry["user_message"], paint, width),
    ]


def _fact(label: str, value: object, paint: Painter, width: int = UNLIMITED) -> str:
    return f"  {paint(f'{label:<12}', 'dim')} {wrapped(str(value), width, 15)}"
