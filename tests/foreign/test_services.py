"""
Tests with clients of services: openai and botocore against the loopback, nats against a real server, mcp and
google-api-core with their own exceptions where installed.

grpc, anthropic, werkzeug and tornado are not installed: stand-ins with the same class names are used.
"""

import importlib
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from amends import Fault, from_exception
from tests.foreign import faults, servers
from tests.foreign.faults import facts
from tests.foreign.servers import HOST, serving
from tests.foreign.standins import standin


def raised_fault(call: Callable[[], object]) -> Fault:
    """Return the fault of the exception that a call raises, and assert that it does not show the host."""
    fault = faults.raised_fault(call)
    assert HOST.encode() not in msgspec.json.encode(fault)
    return fault


# ------------------------------------------------------------------------------------------------------- openai


def _openai(port: int, retries: int = 0, timeout: float = 5) -> Callable[[], object]:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(
        base_url=f"http://{HOST}:{port}/v1", api_key="sk-acme", max_retries=retries, timeout=timeout
    )
    return client.models.list


def test_openai_by_its_cause() -> None:
    """Its connection error wraps httpx's, which shows whether anything was sent."""
    with servers.refused() as port:
        assert facts(raised_fault(_openai(port))) == ("SERVICE_UNAVAILABLE", "transient", "no")
    with serving(servers.resetting) as port:
        assert facts(raised_fault(_openai(port))) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    with serving(servers.hanging) as port:
        assert facts(raised_fault(_openai(port, timeout=0.2))) == ("TIMEOUT", "transient", "maybe")


def test_openai_by_its_response() -> None:
    """The status and the wait of the response are read; its text is not shown."""
    body = (
        b'{"error": {"message": "acme has used 40 of 40", "type": "requests", "code": "rate_limit_exceeded"}}'
    )
    with serving(servers.answering(429, {"Retry-After": "2"}, body)) as port:
        fault = raised_fault(_openai(port))
    assert facts(fault) == ("RATE_LIMITED", "transient", "no")
    assert fault.retry_after == 2.0
    assert b"acme" not in msgspec.json.encode(fault)


def test_retries_of_openai_count() -> None:
    """After a retry, the effect of the earlier call is unknown, unless there is a response."""
    with servers.refused() as port:
        fault = raised_fault(_openai(port, retries=1))
    assert (*facts(fault), fault.attempt) == ("SERVICE_UNAVAILABLE", "transient", "maybe", 2)
    with serving(servers.answering(429, {"retry-after-ms": "1"})) as port:
        fault = raised_fault(_openai(port, retries=1))
    assert (*facts(fault), fault.attempt) == ("RATE_LIMITED", "transient", "no", 2)


def test_retries_of_anthropic_count() -> None:
    """The count is in the same header of the request as openai's."""
    error = standin("anthropic.APIConnectionError")()
    for count, attempt in (("2", 3), ("0", None), ("-1", None), ("999", None), (None, None), (7, None)):
        error.request = SimpleNamespace(headers={"x-stainless-retry-count": count})
        fault = from_exception(error)
        assert (*facts(fault), fault.attempt) == ("SERVICE_UNAVAILABLE", "transient", "maybe", attempt)


# ----------------------------------------------------------------------------------------------------- botocore


def _dynamodb(port: int, retries: int = 0) -> Callable[[], object]:
    session = pytest.importorskip("botocore.session")
    from botocore.config import Config

    client = session.Session().create_client(
        "dynamodb",
        region_name="eu-west-1",
        endpoint_url=f"http://{HOST}:{port}",
        aws_access_key_id="AKIAACME",
        aws_secret_access_key="acme",
        config=Config(retries={"total_max_attempts": retries + 1, "mode": "standard"}, read_timeout=0.3),
    )
    return client.list_tables


def _aws_error(code: str) -> bytes:
    return msgspec.json.encode({"__type": f"com.amazonaws#{code}", "message": "table acme is missing"})


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ThrottlingException", ("RATE_LIMITED", "transient", "no")),
        ("AccessDeniedException", ("PERMISSION_DENIED", "terminal", "no")),
        ("ResourceNotFoundException", ("NOT_FOUND", "correctable", "no")),
        ("AcmeException", ("BAD_REQUEST", "correctable", "no")),
    ],
)
def test_botocore_by_the_code_of_the_service(code: str, expected: tuple[str, str, str]) -> None:
    """AWS sends most errors with status 400, so the code has priority; it is kept, also if it is unknown, the text is not."""
    with serving(servers.answering(400, body=_aws_error(code))) as port:
        fault = raised_fault(_dynamodb(port))
    assert (*facts(fault), fault.status) == (*expected, 400)
    assert fault.details == {"code": code}
    assert b"acme" not in msgspec.json.encode(fault)


def test_botocore_without_a_response() -> None:
    """Its classes show whether anything was sent."""
    with servers.refused() as port:
        assert facts(raised_fault(_dynamodb(port))) == ("SERVICE_UNAVAILABLE", "transient", "no")
    with serving(servers.hanging) as port:
        assert facts(raised_fault(_dynamodb(port))) == ("TIMEOUT", "transient", "maybe")
    with serving(servers.resetting) as port:
        assert facts(raised_fault(_dynamodb(port))) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


def test_every_throttling_code_of_botocore_is_a_rate_limit() -> None:
    """The list is botocore's own. A transaction in progress is repeated like a rate limit, under its own code."""
    standard = pytest.importorskip("botocore.retries.standard")
    from amends.vendors import vendor

    for code in standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES:
        found = vendor("aws").words[code]
        # API Gateway uses one of them for its quotas, with status 429.
        kind = found[0] if isinstance(found, dict) else found
        assert (kind.recovery, kind.executed) == ("transient", "no")
        assert kind.code == ("CONFLICT" if code == "TransactionInProgressException" else "RATE_LIMITED")


ClientError = standin("botocore.exceptions.ClientError")


@pytest.mark.parametrize(
    ("response", "expected", "attempt"),
    [
        ({"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"RetryAttempts": 4}}, "RATE_LIMITED", 5),
        (
            {"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 503, "RetryAttempts": 0}},
            "SERVICE_UNAVAILABLE",
            None,
        ),
        ({"Error": {"Code": ["acme"]}, "ResponseMetadata": {"HTTPStatusCode": 404}}, "NOT_FOUND", None),
        ({"Error": "acme", "ResponseMetadata": {"RetryAttempts": 3}}, "INTERNAL_ERROR", None),
        # An exception event of a stream has no response.
        ({"Error": {"Code": "SlowDown"}}, "RATE_LIMITED", None),
        ({}, "INTERNAL_ERROR", None),
    ],
)
def test_botocore_responses_of_every_shape(response: object, expected: str, attempt: int | None) -> None:
    """Without a code the status decides, without a status the class; retries count."""
    error = ClientError()
    error.response = response
    fault = from_exception(error)
    assert (fault.code, fault.attempt) == (expected, attempt)


def test_botocores_wait_is_kept() -> None:
    """C3: Retry-After with a known code."""
    error = ClientError()
    metadata = {"HTTPStatusCode": 400, "HTTPHeaders": {"retry-after": "4"}}
    error.response = {"Error": {"Code": "Throttling"}, "ResponseMetadata": metadata}
    assert from_exception(error).retry_after == 4.0


# --------------------------------------------------------------------------------------------------- grpc, google

StatusCode = Enum("StatusCode", ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "DATA_LOSS", "NOVEL"])
RpcError = standin("grpc.RpcError")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (StatusCode.UNAVAILABLE, ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (StatusCode.RESOURCE_EXHAUSTED, ("RATE_LIMITED", "transient", "no")),
        (StatusCode.DATA_LOSS, ("INTERNAL_ERROR", "terminal", "maybe")),
        (StatusCode.NOVEL, ("INTERNAL_ERROR", "uncertain", "maybe")),
        (None, ("INTERNAL_ERROR", "uncertain", "maybe")),
    ],
)
def test_grpc_by_status(status: object, expected: tuple[str, str, str]) -> None:
    """The name of the status decides, never its details."""
    error = standin("grpc._channel._InactiveRpcError", RpcError, code=lambda self: status)()
    assert facts(from_exception(error)) == expected


def test_grpc_without_a_status() -> None:
    """An RpcError has no `code` of its own."""
    assert facts(from_exception(RpcError())) == ("INTERNAL_ERROR", "uncertain", "maybe")


def test_google_api_core_keeps_its_status_in_code() -> None:
    """A RetryError is a time-out."""
    google = pytest.importorskip("google.api_core.exceptions")
    assert facts(from_exception(google.from_http_status(429, "acme")))[0] == "RATE_LIMITED"
    assert facts(from_exception(google.Unauthenticated("acme")))[0] == "UNAUTHENTICATED"
    retry = google.RetryError("acme", cause=google.ServiceUnavailable("acme"))
    assert facts(from_exception(retry)) == ("TIMEOUT", "transient", "maybe")


@pytest.mark.parametrize("name", ["werkzeug.exceptions.HTTPException", "tornado.httpclient.HTTPClientError"])
def test_a_status_in_code_counts_for_listed_classes_only(name: str) -> None:
    """werkzeug and tornado keep their status in `code`."""
    assert facts(from_exception(standin(name, code=404)()))[0] == "NOT_FOUND"
    assert facts(from_exception(standin("acme.Own", code=404)()))[0] == "INTERNAL_ERROR"


def test_a_status_with_headers_is_a_response() -> None:
    """Starlette's and FastAPI's HTTPException have both; a status without headers is ignored."""
    error = standin("starlette.exceptions.HTTPException", status_code=503, headers={"Retry-After": "9"})()
    assert from_exception(error).retry_after == 9.0
    assert from_exception(standin("acme.Own", status_code=503, headers=None)()).status == 503
    assert from_exception(standin("acme.Own", status_code=503)()).status is None


def test_a_refused_websocket_handshake_sent_nothing() -> None:
    """The response decides, and the class shows that no message was sent."""
    refused = standin(
        "websockets.exceptions.InvalidStatus", standin("websockets.exceptions.InvalidHandshake")
    )()
    refused.response = SimpleNamespace(status_code=502, headers={}, body=b"acme")
    assert facts(from_exception(refused)) == ("BAD_GATEWAY", "transient", "no")


# --------------------------------------------------------------------------------------------------------- mcp


def _rpc(code: int, data: object = None, name: str = "mcp.shared.exceptions.McpError") -> BaseException:
    return standin(name, error=SimpleNamespace(code=code, message="acme", data=data))()


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (-32602, ("VALIDATION_ERROR", "correctable", "no")),
        (-32601, ("NOT_FOUND", "correctable", "no")),
        (-32603, ("INTERNAL_ERROR", "uncertain", "maybe")),
        (-32029, ("RATE_LIMITED", "transient", "no")),
        (-31028, ("UNAUTHENTICATED", "correctable", "no")),
        (-32027, ("SERVICE_UNAVAILABLE", "transient", "no")),
        (-32001, ("TIMEOUT", "transient", "maybe")),
        (-32000, ("SERVICE_UNAVAILABLE", "transient", "maybe")),
        (-32042, ("PERMISSION_DENIED", "terminal", "no")),
        (-1, ("INTERNAL_ERROR", "uncertain", "maybe")),
    ],
)
def test_mcp_by_number(number: int, expected: tuple[str, str, str]) -> None:
    """Errors without a structured error are classified by their number."""
    assert facts(from_exception(_rpc(number))) == expected


def test_numbers_of_mcp_count_for_mcp_only() -> None:
    """A2A's -32001 is an unknown task."""
    assert facts(from_exception(_rpc(-32001, name="acme.RpcError")))[0] == "INTERNAL_ERROR"


def test_mcp_by_its_structured_error() -> None:
    """AdCP: `data.adcp_error` decides, whatever the number. Uses the SDK's own exception if it is installed."""
    data = {"adcp_error": {"code": "RATE_LIMITED", "message": "m", "recovery": "transient", "retry_after": 7}}
    errors = [_rpc(-32029, data)]
    try:
        from mcp.shared.exceptions import MCPError
    except ImportError:
        pass
    else:
        errors.append(MCPError(-32029, "acme", data))
        assert facts(from_exception(MCPError(-32602, "acme")))[0] == "VALIDATION_ERROR"
    for error in errors:
        fault = from_exception(error)
        assert (fault.vocabulary, fault.code, fault.retry_after) == ("adcp", "RATE_LIMITED", 7)


# -------------------------------------------------------------------------------------------------------- nats


async def test_nats(tmp_path: Path) -> None:
    """A real server: not running, no responder, no answer, and a lost compare-and-set."""
    import nats
    import nats.errors
    import nats.js.errors

    from tests.stores.servers import NatsServer

    server = NatsServer(tmp_path)
    with pytest.raises(Exception) as caught:
        await nats.connect(server.url, max_reconnect_attempts=1, reconnect_time_wait=0.01)
    assert facts(from_exception(caught.value)) == ("SERVICE_UNAVAILABLE", "transient", "no")
    server.start()
    try:
        client = await nats.connect(server.url)
        with pytest.raises(nats.errors.NoRespondersError) as caught:
            await client.request("acme.unserved", b"x", timeout=1)
        assert facts(from_exception(caught.value)) == ("SERVICE_UNAVAILABLE", "transient", "no")
        await client.subscribe("acme.silent")
        with pytest.raises(nats.errors.TimeoutError) as caught:
            await client.request("acme.silent", b"x", timeout=0.1)
        assert facts(from_exception(caught.value)) == ("TIMEOUT", "transient", "maybe")
        bucket = await client.jetstream().create_key_value(bucket="acme")
        await bucket.create("k", b"1")
        with pytest.raises(nats.js.errors.KeyWrongLastSequenceError) as caught:
            await bucket.update("k", b"2", last=99)
        assert facts(from_exception(caught.value)) == ("CONFLICT", "correctable", "no")
        with pytest.raises(nats.js.errors.KeyNotFoundError) as caught:
            await bucket.get("missing")
        assert facts(from_exception(caught.value)) == ("NOT_FOUND", "correctable", "no")
        await client.close()
    finally:
        server.stop()


def made(name, base=Exception, **attributes):
    """Return an exception of an SDK's class as its source defines it."""
    error = type(name.rpartition(".")[2], (base,), {"__module__": name.rpartition(".")[0]})()
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


UNLISTED = {
    # Attributes as in replicate 1.0.7, spotipy 2.26.0, dropbox 12.2.4, python-gitlab 8.6.0, postgrest 2.34.1, authlib 1.9.6.
    "replicate": (
        made(
            "replicate.exceptions.ReplicateError",
            status=402,
            title="Insufficient credit",
            detail="…",
            type=None,
        ),
        ("QUOTA_EXCEEDED", "terminal", None),
    ),
    "spotipy": (
        made("spotipy.exceptions.SpotifyException", http_status=429, code=-1, headers={"Retry-After": "9"}),
        ("RATE_LIMITED", "transient", 9.0),
    ),
    "dropbox": (
        made("dropbox.exceptions.RateLimitError", status_code=429, body=None, backoff=7),
        ("RATE_LIMITED", "transient", 7.0),
    ),
    "gitlab": (
        made(
            "gitlab.exceptions.GitlabHttpError",
            response_code=404,
            response_body=b'{"message":"404 Not found"}',
        ),
        ("NOT_FOUND", "correctable", None),
    ),
    "postgrest": (
        made("postgrest.exceptions.APIError", code="PGRST301", message="…", details=None),
        ("UNAUTHENTICATED", "correctable", None),
    ),
    "authlib": (
        made("authlib.integrations.base_client.errors.OAuthError", error="invalid_grant", description="…"),
        ("UNAUTHENTICATED", "correctable", None),
    ),
    "headers and a body": (
        made(
            "acme_sdk.errors.ApiError", status=402, headers={}, body={"error": {"code": "credits_exhausted"}}
        ),
        ("QUOTA_EXCEEDED", "terminal", None),
    ),
    "the response's": (
        made(
            "acme_sdk.errors.ApiError",
            resp=type("R", (), {"status_code": 503, "headers": {"Retry-After": "3"}})(),
        ),
        ("SERVICE_UNAVAILABLE", "transient", 3.0),
    ),
    "a code word beside the status": (
        made("acme_sdk.errors.ApiError", status_code=429, error_code="insufficient_quota"),
        ("QUOTA_EXCEEDED", "terminal", None),
    ),
}


@pytest.mark.parametrize(("error", "expected"), UNLISTED.values(), ids=UNLISTED)
def test_an_exception_of_an_sdk_that_no_table_names(error, expected):
    """Its status, body and headers are read as a response."""
    fault = from_exception(error)
    assert (fault.code, fault.recovery, fault.retry_after) == expected


NOT_READ = {
    "a status alone is often something else": made("acme_sdk.Error", status=404),
    "a status of the application": made("shop.Refused", status_code=409),
    "a code alone, too": made("acme_sdk.Error", code=500),
    "a success": made(
        "acme_sdk.Error", status_code=200, headers={}, body={"error": {"code": "insufficient_quota"}}
    ),
    "a class of the application that extends it": made(
        "shop.Gone",
        type("HTTPException", (Exception,), {"__module__": "fastapi.exceptions"}),
        status_code=404,
        detail="x",
    ),
    "no failure of a call": made("shop.OutOfStock"),
}


@pytest.mark.parametrize("error", NOT_READ.values(), ids=NOT_READ)
def test_an_exception_that_is_no_answer_of_a_service(error):
    """It is INTERNAL_ERROR, as before."""
    assert from_exception(error).code == "INTERNAL_ERROR"


def test_exceptions_of_installed_packages(tmp_path, monkeypatch):
    """
    A status under a name that means nothing else counts alone, and so do a known code word beside a message, and an answer that an
    SDK raises as the text of a ValueError.

    Both only in an installed package: the application's own classes and texts mean what the application says.
    """
    home = tmp_path / "site-packages" / "acme_installed"
    source = """
class ApiError(Exception):
    def __init__(self, status):
        if isinstance(status, int):
            self.http_status_code = status
        else:
            self.code, self.message = status, "secret"

def call(status):
    raise ApiError(status)

def say(text):
    raise ValueError(text)
"""
    for place, name in ((home, "acme_installed"), (tmp_path / "acme_own", "acme_own")):
        place.mkdir(parents=True)
        (place / "__init__.py").write_text(source)
        monkeypatch.syspath_prepend(str(place.parent))
        monkeypatch.delitem(sys.modules, name, raising=False)
    sdk, own = importlib.import_module("acme_installed"), importlib.import_module("acme_own")

    def read(call, *args):
        with pytest.raises(Exception) as caught:
            call(*args)
        fault = from_exception(caught.value)
        assert "secret" not in str(fault)
        return fault.code, fault.executed

    assert read(sdk.call, 402) == ("PAYMENT_REQUIRED", "maybe")
    assert read(own.call, 402) == ("INTERNAL_ERROR", "maybe")
    assert read(sdk.call, "rate_limit_exceeded") == ("RATE_LIMITED", "maybe")
    assert read(sdk.call, "E_17") == read(own.call, "rate_limit_exceeded") == ("INTERNAL_ERROR", "maybe")
    said = 'Request failed with status code 402: {"error": "secret", "tag": "NO_MORE_CREDITS"}'
    assert read(sdk.say, said) == ("QUOTA_EXCEEDED", "maybe")
    assert read(sdk.say, "Request failed with status code 429") == ("RATE_LIMITED", "maybe")
    for text in (said + " secret", "It failed: " + said, "secret 402", "Request failed with status code 200"):
        assert read(sdk.say, text) == ("INTERNAL_ERROR", "maybe")
    assert read(own.say, said) == ("INTERNAL_ERROR", "maybe")


def test_members_without_headers_and_body_prove_nothing_about_the_effect():
    """Such attributes may be the application's own: the call may have had its effect."""
    bare = made("shop.Refused", status_code=409, error_code="stale_version")
    assert (from_exception(bare).status, from_exception(bare).executed) == (409, "maybe")
    assert from_exception(made("acme_sdk.Refused", status_code=409, headers={"x": "y"})).executed == "no"


def test_an_exception_whose_attributes_raise():
    """Properties may raise anything, and values may have any type."""

    class Hostile(Exception):
        __module__ = "acme_sdk"
        status_code = 429

        @property
        def body(self):
            raise SystemError("acme")

        @property
        def headers(self):
            return {object(): b"\xff", "retry-after": "5"}

    assert from_exception(Hostile()).code == "RATE_LIMITED"
    assert from_exception(made("acme_sdk.E", status_code=10**40, body=[object()])).code == "INTERNAL_ERROR"
