"""
Build the response for a fault: the problem document with its headers, or a short page for people.

Every error response takes the same path: the fault is redacted, completed with what the request adds (trace id,
instance, documentation page), encoded as a problem document, and written in the form that the client accepts. A
binding describes its request as a `RequestInfo` and sends the `RawResponse` that it gets back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import msgspec
from msgspec.structs import force_setattr, replace

from amends.core import recording
from amends.core.crosswalk import default_wait, source_row, suggestion_for
from amends.core.fault import Fault
from amends.core.named_options import NamedOptions
from amends.core.wire import compact
from amends.dialects.outgoing import outgoing
from amends.dialects.problem import EFFECT_UNKNOWN, MEDIA_TYPE, document
from amends.dialects.record import MEMBER
from amends.foreign.registry import Known, known_errors
from amends.foreign.trust import is_system_call, record_for
from amends.http.pages import html_document, page, page_url, unknown_page
from amends.http.request_info import CONTENT_TYPES, HTML, JSON, RequestInfo, preferred_form
from amends.logs import logger
from amends.recovery.incoming import left_in
from amends.serving import tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Span

__all__ = [
    "LOG",
    "RawResponse",
    "Settings",
    "complete",
    "error_response",
    "problem_document",
    "quote_path",
    "retry_after",
    "with_wait",
]

LOG = logger("amends.http")


class Settings(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedOptions):
    """The options of an application, the same for every request."""

    pages: str | None = "/errors"
    """The path of the error pages below the application's root; None serves no pages and writes no `doc_uri`."""
    base_url: str | None = None
    """The URL that callers use for the application: the base of `type` and `doc_uri`."""
    hosts: Sequence[str] | None = None
    """Without a `base_url`: the `Host` names that URLs may be made from, such as `shop.example` or `*.shop.example`.
    None: loopback names and the address that the server is bound to. For any other host `type` is `about:blank` and there is
    no `doc_uri`."""
    errors: Mapping[type[BaseException], str | Known] = {}
    """The codes of the application's own exception classes: `{SeatTaken: "CONFLICT"}`."""
    challenge: str = "Bearer"
    """The value of `WWW-Authenticate` in a 401 response that has none."""

    def __post_init__(self) -> None:
        if self.errors:
            force_setattr(self, "errors", known_errors(self.errors))  # type: ignore[arg-type]


class RawResponse(NamedTuple):
    """A response that is independent of any framework."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def quote_path(path: str) -> str:
    """Percent-encode a path for use in URLs and log lines; the result has no spaces or line breaks."""
    return quote(path, safe="/:@!$&'()*+,;=-._~", errors="replace")


def error_response(
    fault: Fault,
    request: RequestInfo,
    settings: Settings,
    *,
    headers: Sequence[tuple[str, str]] = (),
    cause: BaseException | None = None,
    serve_pages: bool = True,
) -> RawResponse:
    """
    Build the response for a fault, log it, and record it on the current span, all with the same trace id.

    Args:
        fault: the failure.
        request: the request that failed.
        settings: the application's settings.
        headers: headers that the framework adds, such as `Allow` or `WWW-Authenticate`.
        cause: the unexpected exception behind the fault. It is logged with its traceback and never sent.
        serve_pages: answer a 404 below the path of the error pages with the page, if there is one.

    """
    if serve_pages and fault.status == 404 and settings.pages is not None:
        found = _page_response(request, settings)
        if found is not None:
            return found
        prefix = settings.pages
        if prefix and _is_page(request, prefix):
            fault = unknown_page(fault, request.path[len(prefix) :], quote_path(request.root + prefix))
    problem = problem_document(fault, request, settings, cause=cause)
    status = problem["status"]
    form = preferred_form(request.accept)
    body = _json(problem) if form == JSON else _summary(problem, form)
    sent = [
        ("content-type", MEDIA_TYPE if form == JSON else CONTENT_TYPES[form]),
        ("content-length", str(len(body))),
        ("vary", _vary(headers)),
        ("cache-control", "no-store"),
    ]
    wait = retry_after(problem)
    if wait is not None:
        sent.append(("retry-after", wait))
    if form == HTML:
        sent.append(_PAGE_POLICY)
    if headers:
        ours = {name for name, _ in sent} | _BODY_HEADERS
        sent += [(name, _header_value(value)) for name, value in headers if name.lower() not in ours]
    if status == 401 and not any(name.lower() == "www-authenticate" for name, _ in sent):
        sent.append(("www-authenticate", settings.challenge))
    return RawResponse(status, sent, body)


def problem_document(
    fault: Fault, request: RequestInfo, settings: Settings, *, cause: BaseException | None = None
) -> dict[str, Any]:
    """Return the redacted and completed problem document of a fault, and log it with the document's trace id."""
    span = tracing.current_span()
    trace_id = tracing.trace_id_of(span, request.traceparent)
    # What `complete` adds comes from us and needs no redaction.
    clean = outgoing(fault, "problem")
    # Where something was removed, the caller may still read what it sent itself. Logs and records do not.
    shown = clean if clean is fault else outgoing(fault, "problem", request.given())
    fault = complete(clean, request, settings, trace_id)
    problem = document(fault if shown is clean else complete(shown, request, settings, trace_id))
    call = left_in(request.left, 0.0).call
    system = is_system_call(call)
    if system is not None and (system or MEMBER in problem):
        problem[MEMBER] = record_for(fault, "problem", call)
    _log(fault, problem["status"], request, cause, span, clean.trace_id)
    if recording.active():
        name = f"{request.method} {quote_path(request.root + request.path)}"
        recording.emit(
            "http server", "sent", fault, name=name, trace_id=fault.trace_id, status=problem["status"]
        )
    return problem


def retry_after(problem: dict[str, Any]) -> str | None:
    """
    Return the value of `Retry-After` for a problem document, or None.

    P3: whole seconds, rounded up, so that a client that obeys the header does not come too early.
    """
    wait = problem.get("retry_after_ms")
    return None if wait is None else str(min(-(-wait // 1000), _MAX_RETRY_AFTER))


_PAGE_POLICY = ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")
"""Our pages load nothing."""

_MAX_RETRY_AFTER = 2**31 - 1
"""Seconds; the largest number that clients with 32-bit integers can read."""


def _header_value(value: str) -> str:
    """Return a value that every server can send: one line of Latin-1 characters."""
    line = value.replace("\r", " ").replace("\n", " ").replace("\0", " ")
    return line if line.isascii() else line.encode("latin-1", "replace").decode("latin-1")


def complete(fault: Fault, request: RequestInfo, settings: Settings, trace_id: str) -> Fault:
    """Add what the request contributes to a redacted fault: trace id, type, documentation page, instance and wait."""
    changes: dict[str, object] = {}
    if fault.trace_id is None or fault.origin is not None:
        # P5: our own id, even if an upstream sent one.
        changes["trace_id"] = trace_id
    base = request.base_url(settings.base_url, settings.hosts)
    served = base is not None and settings.pages is not None
    url = page_url(f"{base}{settings.pages}", fault.vocabulary, fault.code) if served else None
    changes["doc_uri"] = url if fault.doc_uri is None else _absolute(fault.doc_uri, base)
    if fault.type is None:
        # An author's type is compared as a whole by clients, so it stays as written.
        changes["type"] = url or "about:blank"
    if fault.instance is None and request.path:
        changes["instance"] = quote_path(request.root + request.path)
    if not fault.suggestions and fault.origin is None:
        changes["suggestions"] = (suggestion_for(fault),)
    changes |= _missing_waits(fault)
    # `replace` would check every field again: an error response would take 2.1 of the framework's time, not 2.0 (bench http).
    completed = copy(fault)
    for name, value in changes.items():
        force_setattr(completed, name, value)
    return completed


def with_wait(fault: Fault) -> Fault:
    """
    Return the fault with a wait if it is retriable, so that every client knows when to come back; in its parts too.

    The wait is no invitation to repeat a request that may have had its effect: `executed` is written beside it (M3).
    """
    changes = _missing_waits(fault)
    return replace(fault, **changes) if changes else fault


def _missing_waits(fault: Fault) -> dict[str, object]:
    changes: dict[str, object] = {}
    if fault.errors:
        changes["errors"] = tuple(with_wait(part) for part in fault.errors)
    if fault.retryable and not fault.retry_after and fault.code != EFFECT_UNKNOWN:
        changes["retry_after"] = default_wait(fault)
    return changes


def _absolute(url: str, base: str | None) -> str | None:
    """Return an author's URL, completed with the base if it is relative; None if that is not possible."""
    try:
        relative = not urlsplit(url).scheme
        return url if not relative else None if base is None else urljoin(f"{base}/", url)
    except ValueError:
        return None


_BODY_HEADERS = frozenset(
    {
        "vary",
        "transfer-encoding",
        "content-encoding",
        "content-disposition",
        "content-range",
        "etag",
        "last-modified",
    }
)
"""Framework headers that are not copied: they describe the replaced body, or are merged into ours (`Vary`)."""


def _vary(headers: Iterable[tuple[str, str]]) -> str:
    """Return `Accept` and the fields that the framework's own `Vary` names."""
    fields = ["Accept"]
    for name, value in headers:
        if name.lower() == "vary" and value.strip() and value.lower() != "accept":
            fields.append(value)
    return ", ".join(fields)


def _json(document: dict[str, object]) -> bytes:
    """Encode the document; members that cannot be written as JSON are left out."""
    try:
        return _encode_json(document)
    except _NOT_JSON:
        kept = {key: plain for key, value in document.items() if (plain := _plain(value)) is not None}
        return (compact(kept) or b"{}").decode("utf-8", "replace").encode()


def _to_builtin(value: object) -> object:
    """Convert subclasses of str and int, and mappings that are not dicts, which msgspec does not encode."""
    if isinstance(value, str):
        return str.__str__(value)  # not str(): Django's SafeString returns itself
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError


_encode_json = msgspec.json.Encoder(enc_hook=_to_builtin).encode
_NOT_JSON = (TypeError, ValueError, OverflowError, RecursionError, BufferError, NotImplementedError)


def _plain(value: object) -> object:
    """Return a value that `compact` can encode, or None."""
    try:
        plain = msgspec.to_builtins(value, enc_hook=_to_builtin)
    except _NOT_JSON:
        return None
    return None if compact(plain) is None else plain


def _summary(document: dict[str, Any], form: str) -> bytes:
    """Write the problem in a few lines of HTML or Markdown."""
    lines = [f"# {document['status']} {document['title']}", ""]
    if document["detail"] != document["title"]:
        lines += [_line(document["detail"]), ""]
    if document["is_retriable"] and document.get("retry_after_ms"):
        lines += [f"It may work again in {max(1, round(document['retry_after_ms'] / 1000))} s.", ""]
    lines += [f"- {_line(step)}" for step in document.get("suggestions", ())]
    lines += ["", f"Code `{document['code']}`, trace `{document['trace_id']}`."]
    if "doc_uri" in document and form != HTML:
        lines[-1] += f" See {document['doc_uri']}"
    text = "\n".join(lines) + "\n"
    if form == HTML:
        return html_document(document["title"], text, link=document.get("doc_uri"))
    return text.encode("utf-8", "replace")


def _line(text: str) -> str:
    return " ".join(text.split())


def _is_page(request: RequestInfo, prefix: str) -> bool:
    """Return whether a request asks for a page below the prefix."""
    path = request.path
    return request.method in {"GET", "HEAD"} and (path == prefix or path.startswith(f"{prefix}/"))


def _page_response(request: RequestInfo, settings: Settings) -> RawResponse | None:
    """Return the error page at the request's path; None if there is none or the method is not GET or HEAD."""
    prefix = settings.pages or ""
    path = request.path
    if not _is_page(request, prefix):
        return None
    found = page(path[len(prefix) :], preferred_form(request.accept))
    if found is None:
        return None
    content_type, body = found
    if path == prefix:
        # The index uses relative links, so its path has to end with a slash.
        target = quote(f"{request.root}{prefix}/")
        return RawResponse(307, [("location", target), ("content-length", "0")], b"")
    headers = [("content-type", content_type), ("content-length", str(len(body))), ("vary", "Accept")]
    if content_type.startswith("text/html"):
        headers.append(_PAGE_POLICY)
    return RawResponse(200, headers, body)


def _log(
    fault: Fault,
    status: int,
    request: RequestInfo,
    cause: BaseException | None,
    span: Span | None,
    upstream: str | None,
) -> None:
    """Write one log line with the trace id, and record the failure on the span."""
    if span is not None:
        tracing.mark(span, fault, status, source_row(fault).message)
    level = logging.ERROR if status >= 500 else logging.INFO
    if LOG.isEnabledFor(level):
        LOG.log(
            level,
            "%s %s answered %s %s trace_id=%s%s",
            request.method,
            quote_path(request.root + request.path),
            status,
            fault.code,
            fault.trace_id,
            tracing.further_traces(fault.trace_id, upstream, span),
            exc_info=cause,
            extra={"trace_id": fault.trace_id, "code": fault.code, "status": status},
        )
