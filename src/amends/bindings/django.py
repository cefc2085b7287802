"""
Problem details for Django, with or without Django REST framework.

    MIDDLEWARE = ["amends.bindings.django.ProblemMiddleware", …]
    REST_FRAMEWORK = {"EXCEPTION_HANDLER": "amends.bindings.django.exception_handler"}    # with REST framework
    AMENDS = {"base_url": "https://shop.example"}     # optional: the fields of amends.http.responses.Settings

Works under WSGI and ASGI. As the first entry of the list, the middleware also handles the errors of other middlewares;
headers that they set are kept. FaultErrors and unexpected exceptions of views and middlewares, and Django's own error pages
(404, 403, 400, the debug page) are answered with problem details. A browser still gets Django's pages. A `handler500` of
the project is called for exceptions that have no code of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

try:
    from asgiref.sync import iscoroutinefunction, markcoroutinefunction
    from django.conf import settings as django_settings  # type: ignore[import-untyped]
    from django.core import exceptions as django_exceptions  # type: ignore[import-untyped]
    from django.core.signals import got_request_exception  # type: ignore[import-untyped]
    from django.http import (  # type: ignore[import-untyped]
        FileResponse,
        Http404,
        HttpRequest,
        HttpResponse,
        StreamingHttpResponse,
    )
    from django.http.multipartparser import MultiPartParserError  # type: ignore[import-untyped]
    from django.urls import get_resolver  # type: ignore[import-untyped]
    from django.views.defaults import server_error  # type: ignore[import-untyped]
except ImportError as missing:
    raise ImportError("amends.bindings.django needs Django: pip install django") from missing

from msgspec.structs import replace

from amends.bindings.django_validation import form_mistakes, serializer_mistakes
from amends.core.fault import Fault
from amends.core.hints import finite
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.http.application_errors import (
    exception_response,
    fault_from_status,
    has_code,
)
from amends.http.asgi import FAULT
from amends.http.bodies import rewrite
from amends.http.current import CURRENT
from amends.http.first_chunk import Begun, may_begin
from amends.http.request_info import HTML, RequestInfo, preferred_form
from amends.http.responses import RawResponse, Settings, error_response
from amends.http.validation import fault_from_validation
from amends.recovery.clock import CLOCK

__all__ = ["ProblemMiddleware", "check_form", "exception_handler"]

# Exceptions that Django answers with a page of its own, which the middleware rewrites.
_ANSWERED_BY_DJANGO = (
    Http404,
    django_exceptions.PermissionDenied,
    django_exceptions.BadRequest,
    django_exceptions.SuspiciousOperation,
    MultiPartParserError,
)


class ProblemMiddleware:
    """
    Django middleware that answers every failure with problem details. Async if the next handler is async.

    Name it first in the settings, so that it handles the errors of other middlewares too:

        MIDDLEWARE = ["amends.bindings.django.ProblemMiddleware", ...]
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.settings = _settings()
        got_request_exception.connect(_remember_exception, dispatch_uid=__name__)
        self._async = iscoroutinefunction(get_response)
        if self._async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """Handle one request."""
        if self._async:
            return self._acall(request)
        token = CURRENT.set((_request_info, request, self.settings, CLOCK.now()))
        try:
            return self._begin_stream(request, self._rewrite(request, self.get_response(request)))
        finally:
            CURRENT.reset(token)

    async def _acall(self, request: HttpRequest) -> HttpResponse:
        token = CURRENT.set((_request_info, request, self.settings, CLOCK.now()))
        try:
            return self._rewrite(request, await self.get_response(request))
        finally:
            CURRENT.reset(token)

    def process_exception(self, request: HttpRequest, exc: Exception) -> HttpResponse | None:
        """Answer an exception of a view; return None if Django answers it with a page of its own."""
        if isinstance(exc, _ANSWERED_BY_DJANGO):
            return None
        if not self._is_typed(exc):
            if get_resolver().resolve_error_handler(500) is not server_error:
                # Django calls the project's own handler.
                return None
            if django_settings.DEBUG and preferred_form(request.headers.get("Accept")) == HTML:
                # A developer's browser gets Django's debug page.
                return None
        return self._exception_response(request, exc)

    def _is_typed(self, exc: BaseException) -> bool:
        """Return whether an exception has a code of its own."""
        return has_code(exc, self.settings)

    def _exception_response(
        self, request: HttpRequest, exc: BaseException, headers: Iterable[tuple[str, str]] = ()
    ) -> HttpResponse:
        fault, found = exception_response(exc, _request_info(request), self.settings, headers)
        _set_fault(request, fault)
        return _response(found)

    def _begin_stream(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Run a stream up to its first chunk, and answer what it raises until then: nothing has been sent yet."""
        if (
            not isinstance(response, StreamingHttpResponse)
            or isinstance(response, FileResponse)
            or response.is_async
            or not may_begin(request.method or "GET", response.headers.get("Content-Type", ""))
        ):
            return response
        try:
            response.streaming_content = Begun(response.streaming_content)
        except Exception as exc:
            answer = self.process_exception(request, exc)
            if answer is None:
                raise  # Django answers it
            for name, value in response.items():
                if name.lower() not in _OF_STREAM:
                    answer.headers.setdefault(name, value)
            answer.cookies = response.cookies
            return answer
        return response

    def _rewrite(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Replace an unstructured error response by a problem document, with its other headers and cookies."""
        if response.status_code < 400 or response.streaming:
            return response
        exc = getattr(request, _EXCEPTION, None) if response.status_code == 500 else None
        if exc is not None and self._is_typed(exc):
            # Raised by another middleware; Django answers it with its page for 500.
            replacement = self._exception_response(request, exc, response.items())
        else:
            found = rewrite(
                response.status_code,
                response.items(),
                response.content,
                _request_info(request),
                self.settings,
                exc,
            )
            if found is None:
                return response
            _set_fault(request, found[0])
            replacement = _response(found[1])
        replacement.cookies = response.cookies
        return replacement


_OF_STREAM = frozenset(
    {"content-type", "content-length", "content-disposition", "content-encoding", "etag", "last-modified"}
)
_EXCEPTION = "amends_exception"
"""The request's attribute for the exception that Django answered."""


def _remember_exception(sender: object, request: object = None, **_: object) -> None:
    """Receive Django's signal for an exception that it answers with its page for 500."""
    if request is not None:
        setattr(request, _EXCEPTION, sys.exception())


def _set_fault(request: HttpRequest, fault: Fault) -> None:
    """Leave the fault to an `Idempotent` around, WSGI's or ASGI's."""
    request.META[FAULT] = fault
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope[FAULT] = fault


def _settings() -> Settings:
    return Settings(**getattr(django_settings, "AMENDS", {}))


def _request_info(request: HttpRequest) -> RequestInfo:
    """Describe a Django request, or a REST framework request, which has the same attributes."""
    headers = request.headers
    return RequestInfo(
        method=request.method or "GET",
        path=request.path_info,
        query=request.META.get("QUERY_STRING", ""),
        root=request.path.removesuffix(request.path_info),
        scheme=request.scheme or "http",
        host=_host(request),
        server=request.META.get("SERVER_NAME", ""),
        trusted="*" not in django_settings.ALLOWED_HOSTS,
        accept=headers.get("Accept"),
        traceparent=headers.get("traceparent"),
        left=headers.get("Amends-Left"),
        timeout=headers.get("Request-Timeout"),
    )


def _host(request: HttpRequest) -> str:
    """Return the request's host, or "" if ALLOWED_HOSTS does not contain it; then no URL is written."""
    try:
        return str(request.get_host())
    except django_exceptions.DisallowedHost:
        return ""


def _response(found: RawResponse) -> HttpResponse:
    response = HttpResponse(found.body, status=found.status)
    for name, value in found.headers:
        response.headers[name] = value
    return response


@explains_wrong_calls
def check_form(form: Any) -> Any:
    """
    Return the cleaned data of a bound form or formset, or raise an error that names every refused field and its rule.

        def order(request):
            data = check_form(OrderForm(request.POST))

    Raises:
        FaultError: VALIDATION_ERROR, answered with 422.

    """
    if form.is_valid():
        return form.cleaned_data
    raise FaultError.from_fault(fault_from_validation(form_mistakes(form)))


def exception_handler(exc: Exception, context: dict[str, object]) -> Any:
    """
    Answer REST framework's exceptions with problem details, and its validation errors field by field.

    Set it as REST framework's `EXCEPTION_HANDLER`. Other exceptions are left to the middleware.

        REST_FRAMEWORK = {"EXCEPTION_HANDLER": "amends.bindings.django.exception_handler"}
    """
    from rest_framework import exceptions  # type: ignore[import-untyped]
    from rest_framework.views import set_rollback  # type: ignore[import-untyped]

    if isinstance(exc, Http404):
        exc = exceptions.NotFound()
    elif isinstance(exc, django_exceptions.PermissionDenied):
        exc = exceptions.PermissionDenied()
    if not isinstance(exc, exceptions.APIException):
        return None
    status = int(exc.status_code)
    if isinstance(exc, exceptions.ValidationError):
        fault = fault_from_validation(serializer_mistakes(exc), status)
    else:
        own = isinstance(exc.detail, str) and exc.detail != exc.default_detail
        fault = fault_from_status(status, str(exc.detail) if own else None, exc)
    headers: list[tuple[str, str]] = []
    challenge = getattr(exc, "auth_header", None)
    if challenge:
        headers.append(("www-authenticate", challenge))
    wait = finite(getattr(exc, "wait", None))
    if wait is not None and wait > 0:
        fault = replace(fault, retry_after=float(wait))
    set_rollback()
    _set_fault(context["request"], fault)
    return _response(error_response(fault, _request_info(context["request"]), _settings(), headers=headers))
