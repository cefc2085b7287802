"""Rewrite error responses of synchronous frameworks, by the same rules as the ASGI middleware."""

from __future__ import annotations

from collections.abc import Iterable

from amends.http.application_errors import with_header_wait
from amends.http.bodies import LIMIT, fault_from_body, may_rewrite
from amends.http.negotiation import preferred_form
from amends.http.responses import RawResponse, RequestInfo, Settings, error_response

__all__ = ["rewrite"]


def rewrite(
    status: int, headers: Iterable[tuple[str, str]], body: bytes, request: RequestInfo, settings: Settings
) -> RawResponse | None:
    """Return the problem document to send instead of an unstructured error response; None to keep the response."""
    given = list(headers)
    fields = {name.lower(): value for name, value in given}
    content_type = fields.get("content-type", "")
    if len(body) > LIMIT and not content_type.startswith("text/html"):
        return None
    if not may_rewrite(status, content_type, preferred_form(request.accept), fields.get("content-encoding")):
        return None
    fault = fault_from_body(status, content_type, body)
    if fault is None:
        return None
    return error_response(with_header_wait(fault, fields), request, settings, headers=given)
