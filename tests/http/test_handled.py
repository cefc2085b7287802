"""The exception behind a plain 500 that a framework has answered."""

import sys
from types import SimpleNamespace

import httpx2
import litestar
import quart
from starlette.applications import Starlette
from starlette.routing import Mount

from amends import FaultError
from amends.errors import ConflictError
from amends.http.handled import _HANDLED, begin_request, end_request, handled_exception, watch_frameworks


def test_the_exception_that_is_being_handled():
    """Starlette answers while it handles the exception; one that surrounds the middleware itself does not count."""
    assert handled_exception() is None
    try:
        raise KeyError("a")
    except KeyError as error:
        found = error, handled_exception(), handled_exception(around=error)
    assert found == (found[0], found[0], None)


async def test_quart_handles_it_before_it_answers():
    """The exceptions of Quart applications are remembered for the current request, also below other middleware."""
    app = quart.Quart("app")

    @app.get("/raises")
    async def raises():
        raise KeyError("a")

    @app.get("/typed")
    async def typed():
        raise ConflictError("taken")

    assert watch_frameworks(SimpleNamespace(app=SimpleNamespace(app=app.asgi_app)))
    assert FaultError in app.error_handler_spec[None][None]
    for path, expected in [("/raises", KeyError), ("/typed", ConflictError)]:
        begin_request()
        response = await app.test_client().get(path)
        assert response.status_code == 500
        assert [type(each) for each in _HANDLED.get()] == [expected]
        assert isinstance(handled_exception(), expected)
        assert handled_exception(around=_HANDLED.get()[-1]) is None
        begin_request()
        assert handled_exception() is None


def test_quart_is_not_imported(monkeypatch):
    """Without Quart nothing is watched; an application with its own handler of typed errors keeps it."""
    app = quart.Quart("app")

    @app.errorhandler(ConflictError.__mro__[1])
    async def own(error):
        return "", 418

    spec = dict(app.error_handler_spec[None][None])
    assert watch_frameworks(app)
    assert {**app.error_handler_spec[None][None]}.items() >= spec.items()
    monkeypatch.delitem(sys.modules, "quart")
    assert not watch_frameworks(app)


def test_applications_below_many_layers():
    """Up to 32; an application of another framework is left alone."""
    for layers, found in ((32, True), (33, False)):
        app = quart.Quart("app")
        wrapped = app
        for _ in range(layers):
            wrapped = SimpleNamespace(app=wrapped)
        assert watch_frameworks(wrapped) is True
        assert (FaultError in app.error_handler_spec[None][None]) is found
    assert watch_frameworks(object()) is True


def test_what_is_returned_without_quart(monkeypatch):
    """False, and nothing is remembered outside of a request."""
    monkeypatch.delitem(sys.modules, "quart")
    assert watch_frameworks(object()) is False


async def test_litestar_calls_its_hooks_before_it_answers():
    """A Litestar application is found in middleware and in mounts, also in those of a router; it gets one hook."""

    @litestar.get("/raises")
    async def raises() -> None:
        raise KeyError("a")

    app = litestar.Litestar([raises], logging_config=None)
    outer = Starlette(routes=[Mount("/a", routes=[Mount("/b", app=SimpleNamespace(app=app))])])
    for _ in range(2):
        assert watch_frameworks(SimpleNamespace(app=outer))
    assert len(app.after_exception) == 1
    token = begin_request()
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as client:
        await client.get("/raises")
    assert isinstance(handled_exception(), KeyError)
    end_request(token)


def test_requests_inside_of_a_request():
    """An application that is called by a client in the same process has exceptions of its own."""
    outer = begin_request()
    inner = begin_request()
    _HANDLED.get().append(KeyError("a"))
    end_request(inner)
    assert handled_exception() is None
    end_request(outer)
    assert _HANDLED.get() is None
