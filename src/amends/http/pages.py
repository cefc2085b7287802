"""
The pages behind `doc_uri`: what a code means, who has to act, what to do, and an example body (P4).

The pages are made from the registry of codes, so an application's own code has its page once it is registered. Below
the prefix are an index, one page per code of HTTP and of the application (`/errors/rate-limited`), and the other
vocabularies under their names (`/errors/adcp/budget-too-low`). Each page is available as HTML, as Markdown (the same as
`amends explain`) and as JSON, chosen by `Accept` or by suffix (`.md`, `.json`, `.html`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from amends.core.explanation import facts, markdown
from amends.core.fault import Fault
from amends.core.vocabulary import APP, EVERYDAY, Row, names, vocabulary
from amends.dialects.problem import encode
from amends.http.negotiation import CONTENT_TYPES, HTML, JSON, MARKDOWN

__all__ = ["has_page", "html_document", "page", "slug"]

_SUFFIXES = {".html": HTML, ".md": MARKDOWN, ".json": JSON}
_TOP_LEVEL = (APP, "http")
"""Vocabularies whose codes are directly below the prefix; if both have a code, the application's comes first."""


class _Page(NamedTuple):
    """The contents of a page in all forms."""

    title: str
    markdown: str
    values: dict[str, Any]
    example: dict[str, Any] | None


@lru_cache(maxsize=1024)
def slug(name: str, code: str) -> str:
    """
    Return the path of a code's page below the prefix.

    Agent Surface's problem-details extensions name the page of a cancellation `operation-cancelled`.
    """
    last = "operation-cancelled" if code == "CANCELLED" else quote(code.lower().replace("_", "-"), safe="")
    return last if name in {*_TOP_LEVEL, EVERYDAY} else f"{quote(name, safe='')}/{last}"


def has_page(name: str, code: str) -> bool:
    """Return whether the code is registered in the vocabulary `name`."""
    try:
        return code in vocabulary(name).rows
    except LookupError:
        return False


def page(path: str, form: str) -> tuple[str, bytes] | None:
    """Return the content type and body of the page at `path` below the prefix, or None if there is none."""
    for suffix, requested in _SUFFIXES.items():
        if path.endswith(suffix):
            path, form = path.removesuffix(suffix), requested
    path = path.strip("/")
    found = _index() if not path else _page_at(path)
    return None if found is None else (CONTENT_TYPES[form], _write(found, form))


def _page_at(path: str) -> _Page | None:
    """Return the page of one code, or the index of one vocabulary."""
    head, _, rest = path.partition("/")
    others = [name for name in names() if name not in {*_TOP_LEVEL, EVERYDAY}]
    if unquote(head) in others:
        name = unquote(head)
        if not rest:
            return _index((name,))
        return _code_page(name, rest)
    return None if rest else next((found for name in _TOP_LEVEL if (found := _code_page(name, head))), None)


def _code_page(name: str, last: str) -> _Page | None:
    """Return the page of the code whose slug or name is `last`."""
    wanted = last.lower()
    for code, row in vocabulary(name).rows.items():
        if wanted in {slug(name, code).rpartition("/")[2], code.lower()}:
            example = _example(name, row)
            return _Page(row.code, markdown(name, row), {**facts(name, row), "example": example}, example)
    return None


def _example(name: str, row: Row) -> dict[str, Any]:
    """Return a problem document for the code."""
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


def _index(which: tuple[str, ...] = _TOP_LEVEL) -> _Page:
    """Return the list of all codes of the vocabularies, each with its recovery class."""
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
    return _Page("Errors", "\n".join([*lines, ""]), {"errors": entries}, None)


def _write(found: _Page, form: str) -> bytes:
    if form == MARKDOWN:
        return found.markdown.encode("utf-8", "replace")
    if form == HTML:
        return html_document(found.title, found.markdown, found.example)
    return msgspec.json.encode(found.values)


_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto}"


def html_document(title: str, markdown: str, example: Any = None, link: str | None = None) -> bytes:
    """Return a small HTML page. Supports headings, bold text, lists, tables and relative links of Markdown."""
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
        parts.append(f"<h2>Example</h2><pre>{escape(text)}</pre>")
    if link is not None:
        parts.append(f'<p><a href="{escape(link)}">About this error</a></p>')
    head = f"<meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang=en>{head}{''.join(parts)}</html>\n".encode("utf-8", "replace")


def _inline(text: str) -> str:
    """Escape the text, then convert bold text and relative links."""
    safe = escape(text)
    safe = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", safe)
    return re.sub(r"\[([^\]]+)\]\(([\w./%-]+)\)", r'<a href="\2">\1</a>', safe)
