"""
pytest fixtures for tests of code that uses recovery; pytest loads them as a plugin.

Every pytest run in an environment with this package loads this module, so it imports amends only inside the fixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from amends.audit.surfaces import Evidence, SurfaceReport
    from amends.recovery.events import Event
    from amends.testing import FakeClock, Rehearsal, Script

__all__ = [
    "amends_clock",
    "amends_events",
    "amends_rehearsal",
    "amends_script",
    "audit_a2a",
    "audit_http",
    "audit_mcp",
]


@pytest.fixture
def amends_clock() -> Iterator[FakeClock]:
    """Replace recovery's clock during the test: waits take no real time, and `waits` lists their seconds."""
    from amends.testing import FakeClock

    with FakeClock() as clock:
        yield clock


@pytest.fixture
def amends_events() -> Iterator[list[Event]]:
    """Collect recovery's events during the test."""
    from amends.testing import recorded_events

    with recorded_events() as seen:
        yield seen


@pytest.fixture
def amends_script() -> type[Script]:
    """The class `Script`: `amends_script(fault, error, "result")` is a function with these outcomes."""
    from amends.testing import Script

    return Script


@pytest.fixture
def amends_rehearsal() -> type[Rehearsal]:
    """The class `Rehearsal`: a block of code that meets failures of the services that it names."""
    from amends.testing import Rehearsal

    return Rehearsal


@pytest.fixture
def audit_http() -> Callable[..., SurfaceReport]:
    """`audit_http(app)` audits an ASGI or WSGI application in this process; `audit_http(app).score` is 0 to 3."""

    def audit(app: Any, **options: Any) -> SurfaceReport:
        from amends.audit.surfaces.http import observe_http

        return _audited(observe_http("http://testserver", app=app, **options))

    return audit


@pytest.fixture
def audit_mcp() -> Callable[..., SurfaceReport]:
    """`audit_mcp(server)` audits an MCPServer or a FastMCP server, or the ASGI application of one, in this process."""

    def audit(server: Any, **options: Any) -> SurfaceReport:
        from amends.audit.surfaces.mcp import observe_mcp

        make = getattr(server, "streamable_http_app", None) or getattr(server, "http_app", None)
        app = server if make is None else make()
        return _audited(observe_mcp("http://127.0.0.1:8000/mcp", app=app, **options))

    return audit


@pytest.fixture
def audit_a2a() -> Callable[..., SurfaceReport]:
    """`audit_a2a(app)` audits the ASGI application of an A2A agent in this process."""

    def audit(app: Any, **options: Any) -> SurfaceReport:
        from amends.audit.surfaces.a2a import observe_a2a

        return _audited(observe_a2a(options.pop("url", "http://testserver"), app=app, **options))

    return audit


def _audited(observing: Coroutine[Any, Any, Evidence]) -> SurfaceReport:
    """Run the probes in an event loop of their own, so that the fixtures work in plain and in async tests."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from amends.audit.surfaces import score

    with ThreadPoolExecutor(1) as pool:
        return score(pool.submit(asyncio.run, observing).result())
