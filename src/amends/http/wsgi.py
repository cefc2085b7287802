"""Read a request from its WSGI environ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amends.http.request_info import RequestInfo

__all__ = ["request_info"]


def request_info(environ: Mapping[str, Any]) -> RequestInfo:
    """Return the parts of a request that an error response depends on."""
    return RequestInfo(
        method=environ["REQUEST_METHOD"],
        path="/" + _decoded(environ.get("PATH_INFO", "")).lstrip("/"),
        query=environ.get("QUERY_STRING", ""),
        root=_decoded(environ.get("SCRIPT_NAME", "")).rstrip("/"),
        scheme=environ.get("wsgi.url_scheme", "http"),
        host=environ.get("HTTP_HOST", ""),
        server=environ.get("SERVER_NAME", ""),
        accept=environ.get("HTTP_ACCEPT"),
        traceparent=environ.get("HTTP_TRACEPARENT"),
        left=environ.get("HTTP_AMENDS_LEFT"),
        timeout=environ.get("HTTP_REQUEST_TIMEOUT"),
    )


def _decoded(path: str) -> str:
    """Return a path of the environ, where UTF-8 bytes appear as Latin-1 characters."""
    return path.encode("latin-1", "replace").decode("utf-8", "replace")
