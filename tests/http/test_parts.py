"""The client parts of `amends.http`, and the messages for missing dependencies."""

import subprocess
import sys

import httpx2
import pytest

from amends import FaultError
from amends.bindings.asgi import Problems
from amends.bindings.httpx import AsyncTransport, Transport
from tests.http.serving import serve


def test_credentials_do_not_follow_redirects():
    """`headers` are sent to the first origin and not to the target of a redirect."""
    seen = {}

    def service(name, target=None):
        async def app(scope, receive, send):
            seen[name] = dict(scope["headers"]).get(b"authorization")
            status, headers = (307, [(b"location", target.encode())]) if target else (200, [])
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

        return app

    with serve(service("other")) as other, serve(service("own", f"{other}/")) as own:
        transport = Transport(headers=lambda: {"Authorization": "Bearer secret"})
        with httpx2.Client(transport=transport, follow_redirects=True) as client:
            assert client.get(own).status_code == 200
    assert seen == {"own": b"Bearer secret", "other": None}


async def test_inner_transports_are_opened_and_closed():
    """A given transport is opened and closed together with ours."""

    async def app(scope, receive, send):
        raise FaultError("no", code="CONFLICT")

    async with httpx2.AsyncClient(
        transport=AsyncTransport(httpx2.ASGITransport(app=Problems(app)), raises="nothing"),
        base_url="http://a",
    ) as client:
        assert (await client.get("/")).status_code == 409
    with httpx2.Client(transport=Transport(httpx2.HTTPTransport(), raises="nothing")) as client:
        assert not client.is_closed
    assert client.is_closed


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
try:
    import amends.bindings.{module}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "missing", "line"),
    [
        ("starlette", {"starlette"}, "pip install 'amends[server]'"),
        ("fastapi", {"fastapi"}, "pip install fastapi"),
        ("flask", {"flask"}, "pip install flask"),
        ("django", {"django"}, "pip install django"),
        ("httpx", {"httpx", "httpx2"}, "pip install 'amends[http]'"),
        ("requests", {"requests"}, "pip install requests"),
        ("aiohttp", {"aiohttp"}, "pip install aiohttp"),
        ("limits", {"limits"}, "pip install 'amends[limits]'"),
        ("a2a", {"a2a"}, "pip install 'amends[a2a]'"),
        ("pydantic_ai", {"pydantic_ai"}, "pip install 'pydantic-ai-slim"),
    ],
)
def test_a_missing_dependency_is_named(module, missing, line):
    """Design 10: the message contains the install command of the extra or of the framework."""
    script = BLOCKED.format(missing=missing, module=module)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert line in done.stdout


def test_the_asgi_middleware_and_httpx_alone_need_nothing_more():
    """`Problems` imports no framework; the client binding works with httpx if httpx2 is not installed."""
    script = "import sys, amends.bindings.asgi; print({'starlette', 'httpx2', 'asyncio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()"
    script = (
        BLOCKED.format(missing={"httpx2"}, module="httpx") + "\nprint(amends.bindings.httpx.library.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "httpx"
