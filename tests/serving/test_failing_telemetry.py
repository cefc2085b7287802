"""A span that fails takes no answer away."""

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from starlette.applications import Starlette
from starlette.routing import Route

from amends.bindings.starlette import install
from amends.errors import NotFoundError, ServiceUnavailableError


def broken(*_args, **_options):
    raise RuntimeError("the exporter at 10.0.0.7 is gone")


@pytest.mark.parametrize("name", ["set_attributes", "set_status", "is_recording"])
async def test_a_span_that_raises_takes_no_answer_away(name, caplog):
    """The caller gets its problem document; one warning has the class of the exception, and not its text."""

    async def missing(_):
        raise NotFoundError("There is no order 17")

    async def down(_):
        raise ServiceUnavailableError("Closed until 18:00", retry_after=60)

    app = Starlette(routes=[Route("/missing", missing), Route("/down", down)])
    install(app)
    span = TracerProvider().get_tracer("tests").start_span("request")
    setattr(span, name, broken)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as caller:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            for path, status in (("/missing", 404), ("/down", 503)):
                answer = await caller.get(path)
                assert answer.status_code == status
                assert answer.json()["trace_id"] == f"{span.get_span_context().trace_id:032x}"
    lines = [each.getMessage() for each in caplog.records if "could not be marked" in each.getMessage()]
    assert lines == ["the span of a failed request could not be marked: RuntimeError"] * (
        1 if name == "set_status" else 2
    )
    assert "10.0.0.7" not in caplog.text
