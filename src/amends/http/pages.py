"""
The page behind `doc_uri`: what a code means, who acts, what to do, and a real body (P4).

Made from the registry, so a code of your own has its page by being registered. Below the prefix: an index, one page per
code of HTTP and of the application (`/errors/rate-limited`), and the other vocabularies under their names
(`/errors/adcp/budget-too-low`). Each as HTML, Markdown (the same as `amends explain`) and JSON, by `Accept` or by
suffix (`.md`, `.json`, `.html`).
"""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from amends.core.explanation import facts, markdown
from amends.core.fault import Fault
from amends.core.vocabulary import APP, EVERYDAY, Row, names, vocabulary
from amends.http.negotiation import CONTENT_TYPES, HTML, JSON, MARKDOWN

__all__ = ["document", "has_page", "page", "slug"]

_SUFFIXES = {".html": HTML, ".md": MARKDOWN, ".json": JSON}
_HERE = (APP, "http")
"""Vocabularies whose codes stand directly below the prefix; of two with the same word the application's."""


def slug(name: str, code: str) -> str:
    """Where the page of a code is, below the prefix. S1 calls a cancelled operation so."""
    word = "operation-cancelled" if code == "CANCELLED" else quote(code.lower().replace("_", "-"), safe="")
    return word if name in {*_HERE, EVERYDAY} else f"{quote(name, safe='')}/{word}"


def has_page(name: str, code: str) -> bool:
    """Whether the code is registered."""
    return name in names() and code in vocabulary(name).rows


def page(path: str, form: str) -> tuple[str, bytes] | None:
    """(content type, body) of what is at `path` below the prefix, or None when there is nothing."""
    for suffix, asked in _SUFFIXES.items():
        if path.endswith(suffix):
            path, form = path.removesuffix(suffix), asked
    path = path.strip("/")
    found = _index() if not path else _page(path)
    return None if found is None else _written(found, form)


def _page(path: str) -> tuple[str, str, Any, Any] | None:
    """Title, Markdown, plain values and example of one code's page, or of one vocabulary's index."""
    head, _, rest = path.partition("/")
    others = [name for name in names() if name not in {*_HERE, EVERYDAY}]
    if unquote(head) in others:
        name = unquote(head)
        if not rest:
            return _index((name,))
        return _code(name, rest)
    return None if rest else next((found for name in _HERE if (found := _code(name, head))), None)


def _code(name: str, word: str) -> tuple[str, str, Any, Any] | None:
    wanted = word.lower()
    for code, row in vocabulary(name).rows.items():
        if wanted in {slug(name, code).rpartition("/")[2], code.lower()}:
            return _about(name, row)
    return None


def _about(name: str, row: Row) -> tuple[str, str, Any, Any]:
    example = _example(name, row)
    return row.code, markdown(name, row), {**facts(name, row), "example": example}, example


def _example(name: str, row: Row) -> dict[str, Any]:
    """The problem document such a failure is answered with."""
    from amends.dialects.problem import encode

    wait = 5.0 if row.everyday == "RATE_LIMITED" else None
    fault = Fault(
        code=row.code,
        vocabulary=name,
        message=row.message,
        suggestions=(row.suggestion,),
        retry_after=wait,
        trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
    )
    return encode(fault)


def _index(which: tuple[str, ...] = _HERE) -> tuple[str, str, Any, Any]:
    """Every code with the verdict on repeating it."""
    entries: list[dict[str, str]] = []
    for name in which:
        for row in vocabulary(name).rows.values():
            if not any(entry["code"] == row.code for entry in entries):
                entries.append(
                    {
                        "code": row.code,
                        "vocabulary": name,
                        "recovery": row.recovery.value,
                        "message": row.message,
                        "page": slug(name, row.code).rpartition("/")[2],
                    }
                )
    lines = ["# Errors", "", "| code | recovery | what happened |", "|---|---|---|"]
    lines += [
        f"| [{entry['code']}]({entry['page']}) | {entry['recovery']} | {entry['message']} |"
        for entry in entries
    ]
    return "Errors", "\n".join([*lines, ""]), {"errors": entries}, None


def _written(found: tuple[str, str, Any, Any], form: str) -> tuple[str, bytes]:
    title, text, values, example = found
    if form == MARKDOWN:
        body = text.encode("utf-8", "replace")
    elif form == HTML:
        body = document(title, text, example)
    else:
        body = msgspec.json.encode(values)
    return CONTENT_TYPES[form], body


_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto}"


def document(title: str, markdown: str, example: Any = None, link: str | None = None) -> bytes:
    """A small HTML page. Knows the little Markdown that is written here: headings, bold, lists, tables and links."""
    parts: list[str] = []
    for block in markdown.strip().split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith("# "):
            parts.append(f"<h1>{_inline(lines[0][2:])}</h1>")
        elif lines[0].startswith("- "):
            parts.append("<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>")
        elif lines[0].startswith("|"):
            rows = [line.strip("|").split("|") for line in (lines[0], *lines[2:])]
            cells = ("".join(f"<td>{_inline(cell.strip())}</td>" for cell in row) for row in rows)
            parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")
        else:
            parts.append(f"<p>{_inline(' '.join(lines))}</p>")
    if example is not None:
        text = msgspec.json.format(msgspec.json.encode(example), indent=2).decode()
        parts.append(f"<h2>As it is answered</h2><pre>{escape(text)}</pre>")
    if link is not None:
        parts.append(f'<p><a href="{escape(link)}">About this error</a></p>')
    head = f"<meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang=en>{head}{''.join(parts)}</html>\n".encode("utf-8", "replace")


def _inline(text: str) -> str:
    """Bold and relative links; everything else is text."""
    import re

    safe = escape(text)
    safe = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", safe)
    return re.sub(r"\[([^\]]+)\]\(([\w./%-]+)\)", r'<a href="\2">\1</a>', safe)
