"""`dashboard`: the page as an ASGI application."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Hashable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import parse_qs, quote

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from amends.core.redaction import redact
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.logs import logger
from amends.page.access import COOKIE, Access, is_local, same_origin, terminal
from amends.page.jobs import JobSource, cancel_job, list_jobs, read_job
from amends.page.live import Fragments, LiveFeeds
from amends.page.models import UpstreamFigures
from amends.page.overview import (
    EVENTS,
    Query,
    overview,
    overview_fragments,
    trace_fragments,
    upstream_fragment,
)
from amends.page.render import HEADERS, page_response
from amends.page.sources import RecordSource
from amends.page.tasks import ACTIONS, TaskSource, act_on_task, list_tasks, read_task
from amends.recorder import Filter, Reader, Recorder
from amends.recorder.event import Event
from amends.stores.contract import Store
from amends.stores.errors import StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.runtime import Runtime
    from amends.tasks import Orchestrator

__all__ = ["PREFIX", "Page", "dashboard"]

_log = logger("amends.page")

PREFIX = "/_amends"
TOKEN = "AMENDS_PAGE_TOKEN"  # noqa: S105 - the name of a variable
_BODY = 64 * 1024
_STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


App = Callable[[Any, Any, Any], Awaitable[None]]
"""An ASGI application. Frameworks declare their own types for the three arguments."""


@runtime_checkable
class ReportsUpstreams(Protocol):
    """A gateway: it has the figures of its upstreams."""

    def statuses(self) -> Sequence[UpstreamFigures]:
        """Return the figures."""
        ...


@explains_wrong_calls
def dashboard(
    source: str | Store | Reader | Recorder | App | None = None,
    *,
    upstreams: ReportsUpstreams | None = None,
    tasks: Orchestrator | Store | str | None = None,
    jobs: Runtime | Store | str | None = None,
    token: str | None = None,
) -> App:
    """
    Return an ASGI application that shows failures and recoveries.

        app.mount("/failures", amends.dashboard("sqlite:///failures.db"))
        app = amends.dashboard(app)

    Args:
        source: the recorder's store (its URL, or an open store, reader or recorder), to mount where you like. Or an ASGI
            application: then the result serves the page at `/_amends/` and passes everything else to the application;
            the events are those of this process's recorder.
        upstreams: a gateway, whose figures are shown. A gateway as `source` shows its own.
        tasks: an orchestrator, or the URL of its store: lists tasks, with their timelines and actions.
        jobs: an ARCP runtime, or the URL of its store: lists jobs, with their delegations and budgets, and cancels them.
        token: needed to view the page, and for actions. Default: AMENDS_PAGE_TOKEN; without it, a one-time address is
            printed on this program's terminal.

    Raises:
        ValueError: `source` is a text that is not a store URL.

    >>> import amends
    >>> amends.dashboard("sqlite:///failures.db").__class__.__name__
    'Page'

    """
    if isinstance(source, str):
        from amends.stores.address import parse

        parse(source)
    if not callable(source):
        return Page(source, upstreams=upstreams, tasks=tasks, jobs=jobs, token=token)
    gateway: object = source
    if upstreams is None and isinstance(gateway, ReportsUpstreams):
        upstreams = gateway
    page = Page(None, upstreams=upstreams, tasks=tasks, jobs=jobs, token=token)
    return _mounted(source, page)


def _mounted(app: App, page: Page) -> App:
    async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        own = path == PREFIX or (path.startswith(f"{PREFIX}/") and path != f"{PREFIX}/health")
        if scope["type"] == "http" and own:
            await page({**scope, "root_path": scope.get("root_path", "") + PREFIX}, receive, send)
        elif scope["type"] == "lifespan":
            await app(scope, receive, page.closing(send))
        else:
            await app(scope, receive, send)

    return mounted


class Page:
    """The ASGI application of the page."""

    def __init__(
        self,
        source: str | Store | Reader | Recorder | None = None,
        *,
        upstreams: ReportsUpstreams | None = None,
        tasks: Orchestrator | Store | str | None = None,
        jobs: Runtime | Store | str | None = None,
        token: str | None = None,
    ) -> None:
        """
        Args:
            source: where the events are; None: those of this process's recorder.
            upstreams: a gateway.
            tasks: an orchestrator, or the URL of its store.
            jobs: an ARCP runtime, or the URL of its store.
            token: needed to view the page, and for actions.

        """
        self._records = RecordSource(source)
        self._upstreams = upstreams
        self._access = Access(token or os.environ.get(TOKEN))
        self._said_off = False
        self._live_feeds = LiveFeeds(self._stopping)
        routes = [
            Route("/", self._overview),
            Route("/live", self._live),
            Route("/trace/{id}", self._trace),
            Route("/trace/{id}/live", self._trace_live),
            Route("/event/{id}", self._event),
            Route("/metrics", self._metrics),
            Route("/health", self._health),
        ]
        self._public = [
            Route("/sign-in", self._sign_in, methods=["GET", "POST"]),
            Route("/sign-out", self._sign_out, methods=["POST"]),
            Route("/static/{name}", self._static),
        ]
        self._tasks = None if tasks is None else TaskSource(tasks)
        self._jobs = None if jobs is None else JobSource(jobs)
        self._sections: list[tuple[str, str]] = []
        if self._tasks is not None:
            self._sections.append(("tasks", "Tasks"))
            routes += [
                Route("/tasks", self._list_tasks),
                Route("/tasks/{id}", self._show_task),
                Route("/tasks/{id}/{action}", self._act_on_task, methods=["POST"]),
            ]
        if self._jobs is not None:
            self._sections.append(("jobs", "Jobs"))
            routes += [
                Route("/jobs", self._list_jobs),
                Route("/jobs/{id}", self._show_job),
                Route("/jobs/{id}/cancel", self._cancel_job, methods=["POST"]),
            ]
        self._app = Starlette(routes=[*routes, *self._public], exception_handlers={404: self._not_found})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self.closing(send))
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        root = scope.get("root_path", "")
        path = scope["path"].removeprefix(root)
        if not path:
            await RedirectResponse(f"{root}/", headers=HEADERS)(scope, receive, send)
        elif (
            path.startswith("/static/")
            or path in {"/sign-in", "/sign-out"}
            or self._access.signed_in(request)
        ):
            try:
                await self._app(scope, receive, send)
            except StoreError:
                await self._unavailable(request)(scope, receive, send)
        else:
            if is_local(request):
                self.announce(_address(request))
            if request.headers.get("authorization") and not await self._access.attempts.slow_down():
                await self._message(request, 429, "Too many tries", "Try again later.")(scope, receive, send)
                return
            await self._sign_in_page(request, 401)(scope, receive, send)

    def announce(self, address: str) -> None:
        """
        Print where the page is, without a token as a one-time address on the terminal; or log once that it is off.

        Args:
            address: where the page is served. It must not come from a request's headers.

        """
        if self._access.is_off:
            if not self._said_off:
                self._said_off = True
                _log.warning(
                    "the page is off: it has no token, and this program has no terminal to print a one-time address on. "
                    "Set token in the gateway's configuration, dashboard(token=...) or %s",
                    TOKEN,
                )
            return
        shown = terminal()
        value = None if self._access.has_token or shown is None else self._access.new_address()
        if shown is not None and value is not None:
            # Never by logging: log files are read by others.
            shown.write(f"failures live, opens once: {address}sign-in?once={value}\n")
            shown.flush()

    def closing(self, send: Send) -> Send:
        """Return `send`, which closes the page before it reports the end of the application."""

        async def sending(message: Message) -> None:
            if str(message["type"]).startswith("lifespan.shutdown."):
                await self.close()
            await send(message)

        return sending

    async def close(self) -> None:
        """Close the stores that the page has opened, and end what browsers watch."""
        await self._live_feeds.close()
        for source in (self._records, self._tasks, self._jobs):
            if source is not None:
                await source.close()

    # Pages -----------------------------------------------------------------------------------------------------

    def _frame(self, request: Request, **values: object) -> dict[str, object]:
        """Return the values that every page's frame needs."""
        return {
            "root": _root(request),
            "sections": self._sections,
            "section": request.scope["path"].removeprefix(request.scope.get("root_path", "")).split("/")[1],
            "signed_in": self._access.signed_in(request),
            "has_token": self._access.has_token,
            "csrf": self._access.csrf(request),
            "live": "",
            **values,
        }

    async def _overview(self, request: Request) -> Response:
        query = Query.of(request.query_params)
        reader = await self._records.get()
        fragments, choices = await overview(
            reader, query, self._statuses, _root(request), self._live_feeds.render
        )
        live = "" if query.before is not None else f"live?{query.text()}"
        frame = self._frame(request, live=live, query=query, fragments=fragments, **choices)
        return page_response("overview.html", frame)

    async def _live(self, request: Request) -> Response:
        query, root = Query.of(request.query_params), _root(request)

        def fragments(events: Sequence[Event], changed: bool) -> Callable[[], dict[str, str]]:
            known = self._statuses()
            if changed:
                return lambda: overview_fragments(events, query, known, root)
            return lambda: upstream_fragment(events, known, root)

        return await self._follow(request, query, query.filter, fragments)

    async def _trace(self, request: Request) -> Response:
        id = request.path_params["id"]
        events = await (await self._records.get()).events(Filter(trace=id), limit=EVENTS)
        return self._timeline(request, id, events, f"trace/{quote(id)}/live")

    async def _event(self, request: Request) -> Response:
        id = request.path_params["id"]
        found = await (await self._records.get()).events(limit=10 * EVENTS)
        return self._timeline(request, id, [event for event in found if event.id == id], "")

    def _timeline(self, request: Request, id: str, events: list[Event], live: str) -> Response:
        if not events:
            return self._message(request, 404, "Not found", f"No event of {id[:80]} is recorded.")
        fragments = trace_fragments(events, _root(request))
        return page_response("trace.html", self._frame(request, live=live, id=id, fragments=fragments))

    async def _trace_live(self, request: Request) -> Response:
        root, id = _root(request), request.path_params["id"]

        def fragments(events: Sequence[Event], changed: bool) -> Callable[[], dict[str, str]]:
            return lambda: trace_fragments(events, root) if changed else {}

        return await self._follow(request, id, Filter(trace=id), fragments)

    async def _follow(
        self, request: Request, what: Hashable, wanted: Filter, fragments: Fragments
    ) -> Response:
        key = (what, _root(request))
        reader = await self._records.get()
        return self._live_feeds.response(request, key, reader, wanted, EVENTS, fragments)

    def _statuses(self) -> Sequence[UpstreamFigures]:
        return [] if self._upstreams is None else self._upstreams.statuses()

    async def _metrics(self, request: Request) -> Response:
        metrics = getattr(self._upstreams, "metrics", None)
        if metrics is None:
            return await self._not_found(request, LookupError())
        try:
            body, kind = metrics()
        except ImportError as error:
            return self._message(request, 501, "No metrics", str(error))
        return Response(body, headers={**HEADERS, "content-type": kind})

    async def _health(self, request: Request) -> Response:
        health = getattr(self._upstreams, "health", None)
        if health is None:
            return await self._not_found(request, LookupError())
        return Response(msgspec.json.encode(health()), headers=HEADERS, media_type="application/json")

    def _stopping(self) -> bool:
        return bool(getattr(self._upstreams, "stopping", False))

    # Tasks and jobs --------------------------------------------------------------------------------------------

    async def _list_tasks(self, request: Request) -> Response:
        assert self._tasks is not None
        tasks = await list_tasks(await self._tasks.get())
        return page_response("tasks.html", self._frame(request, tasks=tasks))

    async def _show_task(self, request: Request) -> Response:
        assert self._tasks is not None
        try:
            task = await read_task(await self._tasks.get(), request.path_params["id"])
        except LookupError:
            return self._message(request, 404, "Not found", "There is no such task.")
        return page_response("task.html", self._frame(request, task=task))

    async def _act_on_task(self, request: Request) -> Response:
        assert self._tasks is not None
        form = await read_form(request)
        id, action = request.path_params["id"], request.path_params["action"]
        if not self._access.may_act(request, form.get("csrf", "")):
            return self._refused(request)
        if action not in ACTIONS:
            return await self._not_found(request, LookupError())
        try:
            await act_on_task(await self._tasks.get(), id, action, form.get("answer", ""))
        except LookupError:
            return self._message(request, 404, "Not found", "There is no such task.")
        except FaultError as error:
            return self._message(request, 409, "Not possible now", redact(error.fault.message))
        return RedirectResponse(f"{_root(request)}tasks/{quote(id)}", 303, headers=HEADERS)

    async def _list_jobs(self, request: Request) -> Response:
        assert self._jobs is not None
        jobs = await list_jobs(await self._jobs.get())
        return page_response("jobs.html", self._frame(request, jobs=jobs))

    async def _show_job(self, request: Request) -> Response:
        assert self._jobs is not None
        job = await read_job(await self._jobs.get(), request.path_params["id"])
        if job is None:
            return self._message(request, 404, "Not found", "There is no such job.")
        return page_response("job.html", self._frame(request, job=job))

    async def _cancel_job(self, request: Request) -> Response:
        assert self._jobs is not None
        form = await read_form(request)
        if not self._access.may_act(request, form.get("csrf", "")):
            return self._refused(request)
        try:
            found = await cancel_job(self._jobs, request.path_params["id"])
        except FaultError as error:
            return self._message(request, 409, "Not possible now", redact(error.fault.message))
        if not found:
            return self._message(request, 404, "Not found", "There is no such job.")
        return RedirectResponse(f"{_root(request)}jobs", 303, headers=HEADERS)

    def _refused(self, request: Request) -> Response:
        return self._message(request, 403, "Refused", "Sign in first: actions need the token.")

    # Access ----------------------------------------------------------------------------------------------------

    async def _sign_in(self, request: Request) -> Response:
        if request.method != "POST":
            # A program that only looks at a link asks with HEAD.
            if request.method == "GET" and self._access.opens(request, request.query_params.get("once", "")):
                return self._signed_in(request)
            if is_local(request):
                self.announce(_address(request))
            return self._sign_in_page(request, 200)
        form = await read_form(request)
        if not same_origin(request):
            return self._sign_in_page(request, 403, wrong=True)
        wait = self._access.tries(request, form.get("token", ""))
        if wait != 0 and not await self._access.attempts.slow_down():
            wait = 60
        if wait is None:
            return self._sign_in_page(request, 403, wrong=True)
        if wait:
            answer = self._message(request, 429, "Too many tries", f"Try again in {wait} s.")
            answer.headers["retry-after"] = str(wait)
            return answer
        return self._signed_in(request)

    def _signed_in(self, request: Request) -> Response:
        """Return the answer of a sign-in: the page, with the cookie of a session."""
        answer = RedirectResponse(_root(request), 303, headers=HEADERS)
        answer.set_cookie(
            COOKIE,
            self._access.new_session(),
            path=_root(request),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def _sign_out(self, request: Request) -> Response:
        form = await read_form(request)
        if not self._access.may_act(request, form.get("csrf", "")):
            return self._refused(request)
        answer = RedirectResponse(_root(request), 303, headers=HEADERS)
        answer.delete_cookie(COOKIE, path=_root(request))
        return answer

    def _sign_in_page(self, request: Request, status: int, *, wrong: bool = False) -> Response:
        once = not self._access.has_token and not self._access.is_off
        frame = self._frame(request, sections=[], wrong=wrong, once=once, local=is_local(request))
        answer = page_response("sign_in.html", frame, status)
        if status == 401 and self._access.has_token:
            answer.headers["www-authenticate"] = "Bearer"
        return answer

    # Others ----------------------------------------------------------------------------------------------------

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        kind = _STATIC.get(name)
        if kind is None:
            return Response("Not found", 404, HEADERS)
        content = files("amends.page").joinpath("static", name).read_bytes()
        return Response(content, headers={**HEADERS, "cache-control": "max-age=3600"}, media_type=kind)

    async def _not_found(self, request: Request, _: Exception) -> Response:
        return self._message(request, 404, "Not found", "There is no such page.")

    def _unavailable(self, request: Request) -> Response:
        return self._message(
            request, 503, "The store cannot be read", "The recorder's store failed. Try again later."
        )

    def _message(self, request: Request, status: int, title: str, text: str) -> Response:
        return page_response("message.html", self._frame(request, title=title, text=text), status)


def _address(request: Request) -> str:
    """Return where the page is served, by the socket: the `Host` is written by the caller."""
    host, port = request.scope.get("server") or ("127.0.0.1", None)
    shown = f"[{host}]" if ":" in host else host
    return f"{request.url.scheme}://{shown}{f':{port}' if port else ''}{_root(request)}"


def _root(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/"


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, each once; none if the body is too large."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _BODY:
            return {}
    try:
        found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}
