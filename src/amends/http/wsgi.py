"""What WSGI bindings share: reading a request from its environ, and rewriting unstructured error responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from amends.core.fault import Fault
from amends.http.application_errors import fault_for, unwrap_group, with_header_wait
from amends.http.bodies import LIMIT, fault_from_body, may_rewrite
from amends.http.request_info import RequestInfo
from amends.http.responses import RawResponse, Settings, error_response

__all__ = ["request_info", "rewrite"]


def request_info(environ: Mapping[str, Any]) -> RequestInfo:
    """Return the parts of a request that an error response depends on."""
    return RequestInfo(
        method=environ["REQUEST_METHOD"],
        path="/" + _decoded(environ.get("PATH_INFO", "")).lstrip("/"),
        root=_decoded(environ.get("SCRIPT_NAME", "")).rstrip("/"),
        scheme=environ.get("wsgi.url_scheme", "http"),
        host=environ.get("HTTP_HOST", ""),
        server=environ.get("SERVER_NAME", ""),
        accept=environ.get("HTTP_ACCEPT"),
        traceparent=environ.get("HTTP_TRACEPARENT"),
    )


def _decoded(path: str) -> str:
    """Return a path of the environ, where UTF-8 bytes appear as Latin-1 characters."""
    return path.encode("latin-1", "replace").decode("utf-8", "replace")


def rewrite(
    status: int,
    headers: Iterable[tuple[str, str]],
    body: bytes,
    request: RequestInfo,
    settings: Settings,
    cause: BaseException | None = None,
) -> tuple[Fault, RawResponse] | None:
    """
    Return the fault and the problem document to send instead of an unstructured error response; None to keep it.

    `cause` is the exception that the framework answered with this response.
    """
    given = list(headers)
    fields = {name.lower(): value for name, value in given}
    content_type = fields.get("content-type", "")
    if len(body) > LIMIT and not content_type.startswith("text/html"):
        return None
    if not may_rewrite(status, content_type, request.accept, fields.get("content-encoding")):
        return None
    fault = fault_from_body(status, content_type, body)
    if fault is None:
        return None
    if cause is not None:
        fault = fault_for(unwrap_group(cause), request.method, settings)
    fault = with_header_wait(fault, fields)
    return fault, error_response(fault, request, settings, headers=given, cause=cause)
