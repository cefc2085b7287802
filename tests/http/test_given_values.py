"""An answer may name what its own caller sent in the path and the query, and nothing else."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from amends.bindings.starlette import install
from amends.core import recording
from amends.errors import NotFoundError

TEXT = "10.0.0.7 has no /srv/a.csv; 10.0.0.8 and /srv/b.csv neither; header 10.0.0.9, cookie 10.0.0.6; sk-proj-aZ3kQ9xT7pLm2VbN"


@pytest.fixture
async def caller():
    async def fail(_):
        raise NotFoundError(TEXT, details={"at": "10.0.0.7", "other": "10.0.0.8"})

    app = Starlette(routes=[Route("/{rest:path}", fail)])
    install(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as found:
        yield found


async def test_values_of_the_own_request(caller):
    """The path and the query count; headers, cookies and credentials do not, nor the request of somebody before."""
    headers = {"x-address": "10.0.0.9", "cookie": "at=10.0.0.6"}
    query = {"file": "/srv/a.csv", "key": "sk-proj-aZ3kQ9xT7pLm2VbN"}
    body = (await caller.get("/hosts/10.0.0.7", params=query, headers=headers)).json()
    removed = "[redacted]"
    assert body["detail"] == (
        f"10.0.0.7 has no /srv/a.csv; {removed} and {removed} neither; header {removed}, cookie {removed}; {removed}"
    )
    assert (body["details"]["at"], body["details"]["other"]) == ("10.0.0.7", removed)
    body = (await caller.get("/hosts")).json()
    assert "10.0.0.7" not in str(body)
    assert "/srv/a.csv" not in str(body)


async def test_records_and_logs_have_none_of_them(caller, caplog):
    """They are for others than the caller."""
    events = []
    recording.set_sink(lambda *args, **facts: events.append((args, facts)))
    try:
        await caller.get("/hosts/10.0.0.7")
    finally:
        recording.set_sink(None)
    assert events
    assert "10.0.0.7 has" not in str(events) + caplog.text
