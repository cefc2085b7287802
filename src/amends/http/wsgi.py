"""Rewrite error responses of synchronous frameworks, by the same rules as the ASGI middleware."""

from __future__ import annotations

from collections.abc import Iterable

from amends.core.fault import Fault
from amends.http.application_errors import with_header_wait
from amends.http.bodies import LIMIT, fault_from_body, may_rewrite
from amends.http.negotiation import preferred_form
from amends.http.responses import RawResponse, RequestInfo, Settings, error_response

__all__ = ["rewrite"]


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
    if not may_rewrite(status, content_type, preferred_form(request.accept), fields.get("content-encoding")):
        return None
    fault = fault_from_body(status, content_type, body)
    if fault is None:
        return None
    fault = with_header_wait(fault, fields)
    return fault, error_response(fault, request, settings, headers=given, cause=cause)
