"""
The pages behind `doc_uri`: what a code means, who has to act, what to do, and an example body (P4).

The pages are made from the registry of codes, so an application's own code has its page once it is registered. Below
the prefix are an index, one page per code of HTTP and of the application (`/errors/rate-limited`), and the other
vocabularies under their names (`/errors/adcp/budget-too-low`). Each page is available as HTML, as Markdown (the same as
`amends explain`) and as JSON, chosen by `Accept` or by suffix (`.md`, `.json`, `.html`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from html import escape
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from amends.core.enums import Recovery
from amends.core.explanation import facts, markdown, slug
from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.core.vocabulary import APP, EVERYDAY, Row, names, vocabulary
from amends.dialects.problem import encode
from amends.http.request_info import CONTENT_TYPES, HTML, JSON, MARKDOWN

__all__ = ["html_document", "page", "page_url", "unknown_page"]

_SUFFIXES = {".html": HTML, ".md": MARKDOWN, ".json": JSON}
_TOP_LEVEL = (APP, "http")
"""Vocabularies whose codes are directly below the prefix; if both have a code, the application's comes first."""
_FIELD = "/path/code"
"""The parameter of a page's path, as validation errors name those of other paths."""
_MAX_CODE = 64
"""Characters of a requested code that are compared with the known ones."""


class _Page(NamedTuple):
    """The contents of a page in all forms."""

    title: str
    markdown: str
    values: dict[str, Any]
    example: dict[str, Any] | None
    links: dict[str, str]
    """Relative links to the index and to the other forms."""


def page_url(prefix: str, name: str, code: str) -> str | None:
    """Return the URL of a code's page below the prefix; None if the vocabulary `name` has no such code."""
    try:
        registered = code in vocabulary(name).rows
    except LookupError:
        return None
    return f"{prefix}/{slug(name, code)}" if registered else None


def page(path: str, form: str) -> tuple[str, bytes] | None:
    """Return the content type and body of the page at `path` below the prefix, or None if there is none."""
    for suffix, requested in _SUFFIXES.items():
        if path.endswith(suffix):
            path, form = path.removesuffix(suffix), requested
    path = path.strip("/")
    found = _index() if not path else _page_at(path)
    return None if found is None else (CONTENT_TYPES[form], _write(found, form))


def unknown_page(fault: Fault, path: str, prefix: str) -> Fault:
    """
    Return the fault of a request for a page that does not exist: it names the code as what has to change.

    A fault whose text is not that of a plain 404 comes from a route of the application, and stays.

    >>> missing = Fault(code="NOT_FOUND", vocabulary="http", message=VOCABULARY.rows["NOT_FOUND"].message, status=404)
    >>> unknown_page(missing, "/rate-limit", "/errors").suggestions
    ('Use /errors/rate-limited', 'See /errors/ for all codes')
    """
    plain = VOCABULARY.rows["NOT_FOUND"]
    if (fault.code, fault.message) != (plain.code, plain.message) or fault.field or fault.suggestions:
        return fault
    head, _, rest = path.strip("/").partition("/")
    which = (unquote(head),) if rest and unquote(head) in names() else _TOP_LEVEL
    known = dict.fromkeys(slug(name, code) for name in which for code in vocabulary(name).rows)
    wanted = path.strip("/").lower().replace("_", "-")[:_MAX_CODE]
    steps = [f"Use {prefix}/{near}" for near in get_close_matches(wanted, known)]
    steps.append(f"See {prefix}/ for all codes")
    return replace(fault, message="There is no error with this code", field=_FIELD, suggestions=tuple(steps))


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
            values = {**facts(name, row), "example": example}
            last = slug(name, code).rpartition("/")[2]
            links = {"All errors": "./", "Markdown": f"{last}.md", "JSON": f"{last}.json"}
            return _Page(row.code, markdown(name, row), values, example, links)
    return None


def _example(name: str, row: Row) -> dict[str, object]:
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
    links = {"Markdown": ".md", "JSON": ".json"}
    return _Page("Errors", "\n".join([*lines, ""]), {"errors": entries}, None, links)


def _write(found: _Page, form: str) -> bytes:
    if form == MARKDOWN:
        return found.markdown.encode("utf-8", "replace")
    if form == HTML:
        return html_document(found.title, found.markdown, found.example, alternatives=found.links)
    return msgspec.json.encode(found.values)


_STYLE = """
:root{color-scheme:light dark;--ink:#1c2127;--soft:#5b6672;--line:#dde2e8;--paper:#fff;--sheet:#f6f7f9;--link:#0b5cad;
--transient:#0a6b4a;--correctable:#8a5a00;--terminal:#b3261e;--uncertain:#6b4fa0}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#9aa5b1;--line:#343b43;--paper:#15181c;--sheet:#1d2126;--link:#7ab7f5;
--transient:#5fd0a5;--correctable:#e5b567;--terminal:#f2938c;--uncertain:#c3a9f5}}
*{box-sizing:border-box}
body{margin:0;border-top:.25rem solid var(--link);background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,sans-serif}
main{max-width:48rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
nav,footer{font-size:.875rem;color:var(--soft)}
footer{margin-top:2.5rem;padding-top:1rem;border-top:1px solid var(--line)}
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0 1.25rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2rem 0 .5rem}
a{color:var(--link)}
ul{padding-left:1.25rem}
pre{overflow:auto;padding:1rem;background:var(--sheet);border:1px solid var(--line);border-radius:.5rem;font-size:.875rem}
div{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9375rem}
th,td{text-align:left;vertical-align:top;padding:.5rem 1.25rem .5rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600}
code,td:first-child{font:.92em/1.65 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
p code{padding:.1em .3em;background:var(--sheet);border-radius:.25rem}
.tag{font-weight:600}
.transient{color:var(--transient)}
.correctable{color:var(--correctable)}
.terminal{color:var(--terminal)}
.uncertain{color:var(--uncertain)}
"""


def html_document(
    title: str,
    markdown: str,
    example: object = None,
    link: str | None = None,
    alternatives: Mapping[str, str] | None = None,
) -> bytes:
    """
    Return a small HTML page. Supports headings, bold text, lists, tables and relative links of Markdown.

    Args:
        title: the page's title.
        markdown: its contents.
        example: a JSON value that is shown below.
        link: the URL of a page with more about the error.
        alternatives: further links at the end, by their text.

    """
    parts: list[str] = []
    for block in markdown.strip().split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith("# "):
            parts.append(f"<h1>{_inline(lines[0][2:])}</h1>")
        elif lines[0].startswith("- "):
            parts.append("<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>")
        elif lines[0].startswith("|"):
            parts.append(_table([line.strip("|").split("|") for line in (lines[0], *lines[2:])]))
        else:
            parts.append(f"<p>{_inline(' '.join(lines))}</p>")
    if example is not None:
        text = msgspec.json.format(msgspec.json.encode(example), indent=2).decode()
        parts.append(f"<h2>Example</h2><pre>{escape(text)}</pre>")
    if link is not None:
        parts.append(f'<p><a href="{escape(link)}">About this error</a></p>')
    if alternatives:
        links = (f'<a href="{escape(url)}">{escape(text)}</a>' for text, url in alternatives.items())
        parts.append(f"<footer>{' · '.join(links)}</footer>")
    head = (
        '<meta charset=utf-8><meta name=viewport content="width=device-width,initial-scale=1">'
        f'<meta name=color-scheme content="light dark"><title>{escape(title)}</title><style>{_STYLE.replace(chr(10), "")}</style>'
    )
    body = f"<main>{''.join(parts)}</main>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>\n".encode(
        "utf-8", "replace"
    )


def _table(rows: list[list[str]]) -> str:
    """Return a table whose first row is its head; wide ones scroll by themselves."""
    head, *body = (
        "".join(f"<{tag}>{_tagged(cell.strip())}</{tag}>" for cell in row)
        for row, tag in zip(rows, ["th"] + ["td"] * (len(rows) - 1), strict=True)
    )
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


_RECOVERIES = frozenset(recovery.value for recovery in Recovery)


def _tagged(text: str) -> str:
    """Return a cell of a table; a recovery class has its colour."""
    return f'<span class="tag {text}">{text}</span>' if text in _RECOVERIES else _inline(text)


def _inline(text: str) -> str:
    """Escape the text, then convert bold text, code and relative links."""
    safe = escape(text)
    safe = re.sub(r"\*\*([^*]+)\*\*", _strong, safe)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    return re.sub(r"\[([^\]]+)\]\(([\w./%-]+)\)", r'<a href="\2">\1</a>', safe)


def _strong(found: re.Match[str]) -> str:
    kind = f' class="{found[1]}"' if found[1] in _RECOVERIES else ""
    return f"<strong{kind}>{found[1]}</strong>"
