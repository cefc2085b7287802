"""
A fault as a response: the problem document with its headers, or a short page for a person.

Every binding says what it knows about the request and sends what it gets back; nothing here knows a framework.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from amends.core.crosswalk import source_row
from amends.core.fault import Fault, Origin
from amends.core.redaction import redact
from amends.core.wire import compact
from amends.dialects.outgoing import redacted
from amends.dialects.problem import MEDIA_TYPE, encode
from amends.http.negotiation import CONTENT_TYPES, HTML, JSON, wanted
from amends.http.templates import PATH, TRACE, key_of, template
from amends.serving import tracing

__all__ = ["LOG", "Answer", "Asked", "Settings", "answer", "plain_path", "problem"]

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


# What was told from here has been looked over already, so nobody does it twice.
_TOLD = Origin("problem")
# A path that needs no quoting, which is nearly every one.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.~-]*")


def plain_path(path: str) -> str:
    """A path as URLs and log lines have it: whatever was sent, it is one word."""
    return path if _PLAIN_PATH.fullmatch(path) else quote(path, safe="/:@!$&'()*+,;=-._~", errors="replace")


def problem(fault: Fault, asked: Asked, settings: Settings, trace: str | None = None) -> Fault:
    """The fault as it may leave, with what the place adds: trace id, type, page and instance."""
    changes: dict[str, Any] = {}
    if fault.origin is None:
        changes = _clean(fault)
    if fault.trace_id is None or fault.origin is not None:
        # P5: ours, also where an upstream had its own.
        changes["trace_id"] = trace or tracing.trace_id(asked.traceparent)
    uri = _page_of(fault, asked, settings)
    if uri is not None:
        if fault.doc_uri is None:
            changes["doc_uri"] = uri
        if fault.type is None:
            changes["type"] = uri
    if fault.instance is None and asked.path:
        changes["instance"] = plain_path(asked.root + asked.path)
    if not fault.suggestions and fault.origin is None and (not fault.retryable or fault.retry_after):
        # S1's reader takes suggestions without a wait for "change the request", so a bare retry has none.
        changes["suggestions"] = (source_row(fault).suggestion,)
    if fault.origin is None or fault.origin.dialect == "problem":
        changes["origin"] = _TOLD
    return replace(fault, **changes)


def _clean(fault: Fault) -> dict[str, Any]:
    """What A19 changes. Most faults are one sentence that was said before; anything more goes the long way."""
    if (
        fault.title
        or fault.user_message
        or fault.suggestions
        or fault.details
        or fault.errors
        or fault.extensions
    ):
        clean = redacted(fault)
        return {name: getattr(clean, name) for name in _TEXTS}
    text = fault.message
    return {"message": _redact(text) if len(text) <= 500 else redact(text)} if text else {}


_TEXTS = ("message", "title", "user_message", "suggestions", "details", "errors", "extensions")
_redact = lru_cache(maxsize=1024)(redact)


# A host that cannot smuggle anything into a URL.
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")


def _page_of(fault: Fault, asked: Asked, settings: Settings) -> str | None:
    if settings.pages is None:
        return None
    place = _PLACES.get((fault.vocabulary, fault.code))
    if place is None:
        from amends.http.pages import has_page, slug

        if not has_page(fault.vocabulary, fault.code):
            return None
        place = _PLACES[fault.vocabulary, fault.code] = slug(fault.vocabulary, fault.code)
    base = settings.base_url
    if base is None:
        if _HOST.fullmatch(asked.host) is None:
            return None
        base = f"{asked.scheme}://{asked.host}{asked.root}"
    return f"{base.rstrip('/')}{settings.pages}/{place}"


# Where the pages of registered codes are. Only those: a code may still be registered later.
_PLACES: dict[tuple[str, str], str] = {}


def answer(
    fault: Fault,
    asked: Asked,
    settings: Settings,
    *,
    headers: Sequence[tuple[str, str]] = (),
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
    span = tracing.current_span()
    trace = tracing.trace_id(asked.traceparent, span)
    form = JSON if asked.accept == "*/*" else wanted(asked.accept)
    quick = _quick(fault, asked, settings, trace) if form == JSON else None
    if quick is not None:
        status, wait, body = quick
    else:
        fault = problem(fault, asked, settings, trace)
        document = encode(fault)
        status, wait = document["status"], document.get("retry_after_ms")
        body = _json(document) if form == JSON else _short(document, form)
        trace = fault.trace_id or trace
    _tell(fault, status, asked, cause, span, trace)
    kind = MEDIA_TYPE if form == JSON else CONTENT_TYPES[form]
    sent = [("content-type", kind), ("content-length", str(len(body))), ("vary", "Accept")]
    if wait is not None:
        # P3: whole seconds, rounded up, so that nobody who waits for it comes too early.
        sent.append(("retry-after", str(ceil(wait / 1000))))
    if headers:
        sent = _with(sent, headers)
    if status == 401 and not any(name.lower() == "www-authenticate" for name, _ in sent):
        sent.append(("www-authenticate", settings.challenge))
    return Answer(status, sent, body)


def _quick(
    fault: Fault, asked: Asked, settings: Settings, trace: str
) -> tuple[int, int | None, bytes] | None:
    """Status, wait and document of a plain fault at a plain path, out of pieces written before."""
    key = key_of(fault)
    path = asked.root + asked.path
    if key is None or _PLAIN_PATH.fullmatch(path) is None:
        return None

    def make() -> tuple[dict[str, Any], bytes]:
        document = encode(problem(replace(fault, instance=PATH), asked, settings, TRACE))
        return document, _json(document)

    found = template((*key, asked.scheme, asked.host, asked.root, settings.pages, settings.base_url), make)
    return None if found is None else (found.status, found.wait, found.filled(path, trace))


_OF_A_BODY = frozenset(
    {"transfer-encoding", "content-encoding", "content-disposition", "content-range", "etag", "last-modified"}
)
"""Headers that were about the body which is not sent."""


def _with(sent: list[tuple[str, str]], more: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Our headers and the framework's; ours win, and both say what the answer varies with."""
    ours = {name for name, _ in sent} | _OF_A_BODY
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


def _short(document: dict[str, Any], form: str) -> bytes:
    """The problem for a person: a few lines."""
    from amends.http.pages import document as page

    lines = [f"# {document['status']} {document['title']}", "", _line(document["detail"]), ""]
    lines += [f"- {_line(step)}" for step in document.get("suggestions", ())]
    lines += ["", f"Code {document['code']}, trace {document['trace_id']}."]
    if "doc_uri" in document and form != HTML:
        lines[-1] += f" See {document['doc_uri']}"
    text = "\n".join(lines) + "\n"
    if form == HTML:
        return page(document["title"], text, link=document.get("doc_uri"))
    return text.encode("utf-8", "replace")


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


def _tell(
    fault: Fault, status: int, asked: Asked, cause: BaseException | None, span: Any, trace: str
) -> None:
    """One log line with the id, and the span."""
    if span is not None:
        tracing.mark(span, fault, status, source_row(fault).message)
    level = logging.ERROR if status >= 500 else logging.INFO
    if LOG.isEnabledFor(level):
        LOG.log(
            level,
            "%s %s answered %s %s trace_id=%s",
            asked.method,
            plain_path(asked.path),
            status,
            fault.code,
            trace,
            exc_info=cause,
            extra={"trace_id": trace, "code": fault.code, "status": status},
        )
