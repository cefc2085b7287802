"""
A fault as a response: the problem document with its headers, or a short page for a person.

Every binding says what it knows about the request and sends what it gets back; nothing here knows a framework.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from math import ceil
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from amends.core.crosswalk import source_row
from amends.core.fault import Fault
from amends.core.wire import compact
from amends.dialects.problem import MEDIA_TYPE, encode
from amends.http import tracing
from amends.http.negotiation import HTML, JSON, wanted

__all__ = ["LOG", "Answer", "Asked", "Settings", "answer", "problem"]

LOG = logging.getLogger("amends.http")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an application says once."""

    pages: str | None = "/errors"
    """Where the pages of the codes are, below the application's root; None: nowhere, and problems have no `doc_uri`."""
    base_url: str | None = None
    """The address callers know the application by, where the request's own is not it."""
    challenge: str = "Bearer"
    """`WWW-Authenticate` of a 401 that brings none."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer has to know about its request."""

    method: str = "GET"
    path: str = "/"
    """Without the root the application is mounted at, and without the query."""
    root: str = ""
    scheme: str = "http"
    host: str = ""
    accept: str | None = None
    traceparent: str | None = None


class Answer(NamedTuple):
    """A response, in the words every framework shares."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def problem(fault: Fault, asked: Asked, settings: Settings) -> Fault:
    """The fault with what the place adds: trace id, type, page and instance."""
    changes: dict[str, Any] = {}
    if fault.trace_id is None or fault.origin is not None:
        # P5: ours, also where an upstream had its own.
        changes["trace_id"] = tracing.trace_id(asked.traceparent)
    uri = _page_of(fault, asked, settings)
    if uri is not None:
        if fault.doc_uri is None:
            changes["doc_uri"] = uri
        if fault.type is None:
            changes["type"] = uri
    if fault.instance is None and asked.path:
        changes["instance"] = quote(asked.root + asked.path, safe="/:@!$&'()*+,;=-._~")
    if not fault.suggestions and fault.origin is None and (not fault.retryable or fault.retry_after):
        # S1's reader takes suggestions without a wait for "change the request", so a bare retry has none.
        changes["suggestions"] = (source_row(fault).suggestion,)
    return replace(fault, **changes)


# A host that cannot smuggle anything into a URL.
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")


def _page_of(fault: Fault, asked: Asked, settings: Settings) -> str | None:
    if settings.pages is None:
        return None
    from amends.http.pages import has_page, slug

    if not has_page(fault.vocabulary, fault.code):
        return None
    base = settings.base_url
    if base is None:
        if _HOST.fullmatch(asked.host) is None:
            return None
        base = f"{asked.scheme}://{asked.host}{asked.root}"
    return f"{base.rstrip('/')}{settings.pages}/{slug(fault.vocabulary, fault.code)}"


def answer(
    fault: Fault,
    asked: Asked,
    settings: Settings,
    *,
    headers: Iterable[tuple[str, str]] = (),
    cause: BaseException | None = None,
    documented: bool = True,
) -> Answer:
    """
    The response for a fault. It is logged, and the current span is marked, with the same trace id.

    Args:
        fault: what happened.
        asked: the request.
        settings: the application's.
        headers: what the framework wants beside ours (`Allow`, `WWW-Authenticate`).
        cause: an exception nobody expected: it is logged with its trace, and nothing of it is sent.
        documented: a 404 below the pages' prefix may be the page itself.

    """
    if documented and fault.status == 404 and settings.pages is not None:
        found = _page_at(asked, settings)
        if found is not None:
            return found
    fault = problem(fault, asked, settings)
    document = encode(fault)
    status: int = document["status"]
    _tell(fault, status, asked, cause)
    form = wanted(asked.accept)
    body = _json(document) if form == JSON else b""
    kind = MEDIA_TYPE
    if form != JSON:
        kind, body = _short(document, form)
    sent = [("content-type", kind), ("content-length", str(len(body))), ("vary", "Accept")]
    wait = document.get("retry_after_ms")
    if wait is not None:
        # P3: whole seconds, rounded up, so that nobody who waits for it comes too early.
        sent.append(("retry-after", str(ceil(wait / 1000))))
    sent = _with(sent, headers)
    if status == 401 and not any(name.lower() == "www-authenticate" for name, _ in sent):
        sent.append(("www-authenticate", settings.challenge))
    return Answer(status, sent, body)


def _with(sent: list[tuple[str, str]], more: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Our headers and the framework's; ours win, and both say what the answer varies with."""
    ours = {name for name, _ in sent}
    kept = list(sent)
    for name, value in more:
        if name.lower() == "vary":
            if value.strip() and value.lower() != "accept":
                kept[2] = ("vary", f"{kept[2][1]}, {value}")
        elif name.lower() not in ours:
            kept.append((name, value))
    return kept


def _json(document: dict[str, Any]) -> bytes:
    """The document; what cannot be written as JSON is left out of it, never guessed at."""
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError, OverflowError, RecursionError):
        kept = {key: value for key, value in document.items() if compact(value) is not None}
        return (compact(kept) or b"{}").decode("utf-8", "replace").encode()


def _short(document: dict[str, Any], form: str) -> tuple[str, bytes]:
    """The problem for a person: a few lines."""
    from amends.http.pages import CONTENT_TYPES
    from amends.http.pages import document as page

    lines = [f"# {document['status']} {document['title']}", "", _line(document["detail"]), ""]
    lines += [f"- {_line(step)}" for step in document.get("suggestions", ())]
    lines += ["", f"Code {document['code']}, trace {document['trace_id']}."]
    if "doc_uri" in document and form != HTML:
        lines[-1] += f" See {document['doc_uri']}"
    text = "\n".join(lines) + "\n"
    body = (
        page(document["title"], text, link=document.get("doc_uri"))
        if form == HTML
        else text.encode("utf-8", "replace")
    )
    return CONTENT_TYPES[form], body


def _line(text: str) -> str:
    return " ".join(text.split())


def _page_at(asked: Asked, settings: Settings) -> Answer | None:
    """The page under this path, when it is one of ours and asked for by reading."""
    prefix = settings.pages or ""
    path = asked.path
    if asked.method not in {"GET", "HEAD"} or not (path == prefix or path.startswith(f"{prefix}/")):
        return None
    from amends.http.pages import page

    form = wanted(asked.accept)
    found = page(path[len(prefix) :], form)
    if found is None:
        return None
    kind, body = found
    if path == prefix:
        # The index links to its neighbours, so it has to be a folder.
        target = quote(f"{asked.root}{prefix}/")
        return Answer(307, [("location", target), ("content-length", "0")], b"")
    headers = [("content-type", kind), ("content-length", str(len(body))), ("vary", "Accept")]
    if kind.startswith("text/html"):
        headers.append(("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"))
    return Answer(200, headers, body)


def _tell(fault: Fault, status: int, asked: Asked, cause: BaseException | None) -> None:
    """One log line with the id, and the span."""
    tracing.mark(fault, status, source_row(fault).message)
    level = logging.ERROR if status >= 500 else logging.INFO
    if LOG.isEnabledFor(level):
        LOG.log(
            level,
            "%s %s answered %s %s trace_id=%s",
            asked.method,
            asked.path,
            status,
            fault.code,
            fault.trace_id,
            exc_info=cause,
            extra={"trace_id": fault.trace_id, "code": fault.code, "status": status},
        )
