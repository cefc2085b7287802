"""
Django, with or without REST framework: one line of settings, and every failure is problem details.

    MIDDLEWARE = ["amends.bindings.django.ProblemMiddleware", …]
    REST_FRAMEWORK = {"EXCEPTION_HANDLER": "amends.bindings.django.exception_handler"}    # with REST framework
    AMENDS = {"pages": "/errors", "base_url": None}                                       # optional

Works under WSGI and ASGI. First in the list it also sees what other middleware refuses; headers that they set stay.
Views' FaultErrors, exceptions nobody expected and Django's own pages (404, 403, 400, the debug page) are answered with
problem details; a person's browser keeps Django's pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

try:
    from asgiref.sync import iscoroutinefunction, markcoroutinefunction
    from django.conf import settings as django_settings  # type: ignore[import-untyped]
    from django.core import exceptions as refusals  # type: ignore[import-untyped]
    from django.http import Http404, HttpRequest, HttpResponse  # type: ignore[import-untyped]
    from django.http.multipartparser import MultiPartParserError  # type: ignore[import-untyped]
except ImportError as missing:
    raise ImportError("amends.bindings.django needs Django: pip install django") from missing

from amends.errors.base import FaultError
from amends.http.application_errors import fault_for, of_status, of_validation
from amends.http.negotiation import HTML, wanted
from amends.http.responses import Answer, Asked, Settings, answer
from amends.http.wsgi import better

__all__ = ["ProblemMiddleware", "exception_handler"]

# What Django answers by itself, with a page of its own that is improved on the way out.
_DJANGOS = (
    Http404,
    refusals.PermissionDenied,
    refusals.BadRequest,
    refusals.SuspiciousOperation,
    MultiPartParserError,
)


class ProblemMiddleware:
    """The middleware; sync or async, as what it stands around is."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.settings = _settings()
        self._async = iscoroutinefunction(get_response)
        if self._async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """One request."""
        if self._async:
            return self._acall(request)
        return self._finished(request, self.get_response(request))

    async def _acall(self, request: HttpRequest) -> Any:
        return self._finished(request, await self.get_response(request))

    def process_exception(self, request: HttpRequest, exc: Exception) -> HttpResponse | None:
        """What a view raised, unless Django has an answer of its own."""
        if isinstance(exc, _DJANGOS):
            return None
        expected = isinstance(exc, FaultError) and exc.fault.origin is None
        if django_settings.DEBUG and not expected and wanted(request.headers.get("Accept")) == HTML:
            # Whoever develops looks at Django's own page.
            return None
        found = answer(fault_for(exc), _asked(request), self.settings, cause=None if expected else exc)
        return _response(found)

    def _finished(self, request: HttpRequest, response: Any) -> Any:
        """An error response that says little, said better; its other headers and cookies stay."""
        if response.status_code < 400 or response.streaming:
            return response
        found = better(
            response.status_code, response.items(), response.content, _asked(request), self.settings
        )
        if found is None:
            return response
        replacement = _response(found)
        replacement.cookies = response.cookies
        return replacement


def _settings() -> Settings:
    given = getattr(django_settings, "AMENDS", {})
    return Settings(**given)


def _asked(request: HttpRequest) -> Asked:
    headers = request.headers
    return Asked(
        method=request.method or "GET",
        path=request.path_info,
        root=request.path.removesuffix(request.path_info),
        scheme=request.scheme or "http",
        host=_host(request),
        accept=headers.get("Accept"),
        traceparent=headers.get("traceparent"),
    )


def _host(request: HttpRequest) -> str:
    """The host, where ALLOWED_HOSTS knows it; any other names no page."""
    try:
        return str(request.get_host())
    except refusals.DisallowedHost:
        return ""


def _response(found: Answer) -> HttpResponse:
    response = HttpResponse(found.body, status=found.status)
    for name, value in found.headers:
        response.headers[name] = value
    return response


def exception_handler(exc: Exception, context: dict[str, Any]) -> Any:
    """
    REST framework's `EXCEPTION_HANDLER`: its own exceptions as problem details, validation errors field by field.

    What it does not know is left to the middleware.
    """
    from rest_framework import exceptions  # type: ignore[import-untyped]

    if isinstance(exc, Http404):
        exc = exceptions.NotFound()
    elif isinstance(exc, refusals.PermissionDenied):
        exc = exceptions.PermissionDenied()
    if not isinstance(exc, exceptions.APIException):
        return None
    status = int(exc.status_code)
    if isinstance(exc, exceptions.ValidationError):
        fault = of_validation(_mistakes(exc.get_codes()), status)
    else:
        own = str(exc.detail) if exc.detail != exc.default_detail and isinstance(exc.detail, str) else None
        fault = of_status(status, own)
    headers: list[tuple[str, str]] = []
    challenge = getattr(exc, "auth_header", None)
    if challenge:
        headers.append(("www-authenticate", challenge))
    wait = getattr(exc, "wait", None)
    if wait:
        from msgspec.structs import replace

        fault = replace(fault, retry_after=float(wait))
    from rest_framework.views import set_rollback  # type: ignore[import-untyped]

    set_rollback()
    request = context["request"]
    return _response(answer(fault, _asked(request._request), _settings(), headers=headers))  # noqa: SLF001


def _mistakes(codes: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """REST framework's words for each mistake, with the path of its field."""
    if isinstance(codes, dict):
        for name, below in codes.items():
            yield from _mistakes(below, path if name == "non_field_errors" else (*path, name))
    elif isinstance(codes, list):
        for position, below in enumerate(codes):
            # A list of words belongs to one field; a list of objects is a list that was sent.
            yield from _mistakes(below, (*path, position) if isinstance(below, dict) else path)
    else:
        yield path, _WORDS.get(str(codes), str(codes))


# REST framework's words that differ from those `amends.foreign` knows.
_WORDS = {
    "blank": "too_short",
    "null": "missing",
    "empty": "too_short",
    "min_length": "too_short",
    "max_length": "too_long",
    "min_value": "greater_than",
    "max_value": "less_than",
    "max_digits": "decimal_max",
    "invalid_choice": "enum",
    "not_a_list": "list",
    "not_a_dict": "dict",
    "max_string_length": "too_long",
    "does_not_exist": "enum",
}
