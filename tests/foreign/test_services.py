"""
Clients of services: openai and botocore really called against the loopback, nats against a real server, mcp and
google-api-core with their own exceptions where installed.

grpc, anthropic, werkzeug and tornado are not installed: stand-ins of the same class names take their place.
"""

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from amends import Fault, from_exception
from tests.foreign import reading, servers
from tests.foreign.reading import told
from tests.foreign.servers import HOST, serving
from tests.foreign.standins import standin


def of(call: Callable[[], object]) -> Fault:
    """And nothing of where it was."""
    fault = reading.of(call)
    assert HOST.encode() not in msgspec.json.encode(fault)
    return fault


# ------------------------------------------------------------------------------------------------------- openai


def _openai(port: int, retries: int = 0, timeout: float = 5) -> Callable[[], object]:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(
        base_url=f"http://{HOST}:{port}/v1", api_key="sk-acme", max_retries=retries, timeout=timeout
    )
    return client.models.list


def test_openai_by_what_caused_it() -> None:
    """Its connection error wraps httpx's, which knows whether anything was sent."""
    with servers.refused() as port:
        assert told(of(_openai(port))) == ("SERVICE_UNAVAILABLE", "transient", "no")
    with serving(servers.resetting) as port:
        assert told(of(_openai(port))) == ("SERVICE_UNAVAILABLE", "transient", "maybe")
    with serving(servers.hanging) as port:
        assert told(of(_openai(port, timeout=0.2))) == ("TIMEOUT", "transient", "maybe")


def test_openai_by_its_answer() -> None:
    """The status and the wait of the response; its text is not shown."""
    body = (
        b'{"error": {"message": "acme has used 40 of 40", "type": "requests", "code": "rate_limit_exceeded"}}'
    )
    with serving(servers.answering(429, {"Retry-After": "2"}, body)) as port:
        fault = of(_openai(port))
    assert told(fault) == ("RATE_LIMITED", "transient", "no")
    assert fault.retry_after == 2.0
    assert b"acme" not in msgspec.json.encode(fault)


def test_tries_that_openai_made_by_itself_count() -> None:
    """After a retry nobody knows what the earlier try did; an answer still speaks for itself."""
    with servers.refused() as port:
        fault = of(_openai(port, retries=1))
    assert (*told(fault), fault.attempt) == ("SERVICE_UNAVAILABLE", "transient", "maybe", 2)
    with serving(servers.answering(429, {"retry-after-ms": "1"})) as port:
        fault = of(_openai(port, retries=1))
    assert (*told(fault), fault.attempt) == ("RATE_LIMITED", "transient", "no", 2)


def test_anthropic_counts_in_the_same_way() -> None:
    """The same generator made both clients; the count is a header of the request."""
    error = standin("anthropic.APIConnectionError")()
    for said, attempt in (("2", 3), ("0", None), ("-1", None), ("999", None), (None, None), (7, None)):
        error.request = SimpleNamespace(headers={"x-stainless-retry-count": said})
        fault = from_exception(error)
        assert (*told(fault), fault.attempt) == ("SERVICE_UNAVAILABLE", "transient", "maybe", attempt)


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


def _aws_error(word: str) -> bytes:
    return msgspec.json.encode({"__type": f"com.amazonaws#{word}", "message": "table acme is missing"})


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("ThrottlingException", ("RATE_LIMITED", "transient", "no")),
        ("AccessDeniedException", ("PERMISSION_DENIED", "terminal", "no")),
        ("ResourceNotFoundException", ("NOT_FOUND", "correctable", "no")),
        ("AcmeException", ("BAD_REQUEST", "correctable", "no")),
    ],
)
def test_botocore_by_the_services_word(word: str, expected: tuple[str, str, str]) -> None:
    """AWS says nearly everything with a 400, so its word comes before the status; only known words are shown."""
    with serving(servers.answering(400, body=_aws_error(word))) as port:
        fault = of(_dynamodb(port))
    assert (*told(fault), fault.status) == (*expected, 400)
    assert b"cme" not in msgspec.json.encode(fault)


def test_botocore_without_an_answer() -> None:
    """Its own classes say whether anything was sent."""
    with servers.refused() as port:
        assert told(of(_dynamodb(port))) == ("SERVICE_UNAVAILABLE", "transient", "no")
    with serving(servers.hanging) as port:
        assert told(of(_dynamodb(port))) == ("TIMEOUT", "transient", "maybe")
    with serving(servers.resetting) as port:
        assert told(of(_dynamodb(port))) == ("SERVICE_UNAVAILABLE", "transient", "maybe")


def test_every_word_that_botocore_throttles_by_is_a_rate_limit() -> None:
    """The list is botocore's own."""
    standard = pytest.importorskip("botocore.retries.standard")
    from amends.foreign.codes import AWS

    for word in standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES:
        assert AWS[word].code == "RATE_LIMITED"


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
        ({"Error": {"Code": "SlowDown"}}, "INTERNAL_ERROR", None),
        ({}, "INTERNAL_ERROR", None),
    ],
)
def test_botocore_responses_of_every_shape(response: object, expected: str, attempt: int | None) -> None:
    """Without a word its status, without a status its class; the tries it made count."""
    error = ClientError()
    error.response = response
    fault = from_exception(error)
    assert (fault.code, fault.attempt) == (expected, attempt)


def test_botocores_wait_is_kept() -> None:
    """C3: Retry-After beside a known word."""
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
    assert told(from_exception(error)) == expected


def test_grpc_without_a_status() -> None:
    """An RpcError has no `code` of its own."""
    assert told(from_exception(RpcError())) == ("INTERNAL_ERROR", "uncertain", "maybe")


def test_statuses_under_other_names() -> None:
    """google-api-core, werkzeug and tornado call it `code`."""
    google = pytest.importorskip("google.api_core.exceptions")
    assert told(from_exception(google.from_http_status(429, "acme")))[0] == "RATE_LIMITED"
    assert told(from_exception(google.Unauthenticated("acme")))[0] == "UNAUTHENTICATED"
    retry = google.RetryError("acme", cause=google.ServiceUnavailable("acme"))
    assert told(from_exception(retry)) == ("TIMEOUT", "transient", "maybe")


@pytest.mark.parametrize("name", ["werkzeug.exceptions.HTTPException", "tornado.httpclient.HTTPClientError"])
def test_a_status_called_code(name: str) -> None:
    """Only where the class is known to mean a status by it."""
    assert told(from_exception(standin(name, code=404)()))[0] == "NOT_FOUND"
    assert told(from_exception(standin("acme.Own", code=404)()))[0] == "INTERNAL_ERROR"


def test_a_status_beside_headers_is_a_response() -> None:
    """As Starlette and FastAPI write their HTTPException; without headers it may be anything."""
    error = standin("starlette.exceptions.HTTPException", status_code=503, headers={"Retry-After": "9"})()
    assert from_exception(error).retry_after == 9.0
    assert from_exception(standin("acme.Own", status_code=503, headers=None)()).status == 503
    assert from_exception(standin("acme.Own", status_code=503)()).status is None


def test_a_handshake_that_was_answered_ran_nothing() -> None:
    """websockets: the answer speaks, and the class knows that no message was sent."""
    refused = standin(
        "websockets.exceptions.InvalidStatus", standin("websockets.exceptions.InvalidHandshake")
    )()
    refused.response = SimpleNamespace(status_code=502, headers={}, body=b"acme")
    assert told(from_exception(refused)) == ("BAD_GATEWAY", "transient", "no")


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
    """Where no structured error came with it."""
    assert told(from_exception(_rpc(number))) == expected


def test_mcps_own_numbers_mean_nothing_elsewhere() -> None:
    """A2A's -32001 is an unknown task."""
    assert told(from_exception(_rpc(-32001, name="acme.RpcError")))[0] == "INTERNAL_ERROR"


def test_mcp_by_its_structured_error() -> None:
    """S4: `data.adcp_error` speaks, whatever the number; as the SDK itself raises it, where installed."""
    data = {"adcp_error": {"code": "RATE_LIMITED", "message": "m", "recovery": "transient", "retry_after": 7}}
    errors = [_rpc(-32029, data)]
    try:
        from mcp.shared.exceptions import MCPError
    except ImportError:
        pass
    else:
        errors.append(MCPError(-32029, "acme", data))
        assert told(from_exception(MCPError(-32602, "acme")))[0] == "VALIDATION_ERROR"
    for error in errors:
        fault = from_exception(error)
        assert (fault.vocabulary, fault.code, fault.retry_after) == ("adcp", "RATE_LIMITED", 7)


# -------------------------------------------------------------------------------------------------------- nats


async def test_nats(tmp_path: Path) -> None:
    """A real server: nobody there, nobody listening, nobody answering, and a lost race on a key."""
    import nats
    import nats.errors
    import nats.js.errors

    from tests.stores.servers import NatsServer

    server = NatsServer(tmp_path)
    with pytest.raises(Exception) as caught:
        await nats.connect(server.url, max_reconnect_attempts=1, reconnect_time_wait=0.01)
    assert told(from_exception(caught.value)) == ("SERVICE_UNAVAILABLE", "transient", "no")
    server.start()
    try:
        client = await nats.connect(server.url)
        with pytest.raises(nats.errors.NoRespondersError) as caught:
            await client.request("acme.nobody", b"x", timeout=1)
        assert told(from_exception(caught.value)) == ("SERVICE_UNAVAILABLE", "transient", "no")
        await client.subscribe("acme.silent")
        with pytest.raises(nats.errors.TimeoutError) as caught:
            await client.request("acme.silent", b"x", timeout=0.1)
        assert told(from_exception(caught.value)) == ("TIMEOUT", "transient", "maybe")
        bucket = await client.jetstream().create_key_value(bucket="acme")
        await bucket.create("k", b"1")
        with pytest.raises(nats.js.errors.KeyWrongLastSequenceError) as caught:
            await bucket.update("k", b"2", last=99)
        assert told(from_exception(caught.value)) == ("CONFLICT", "correctable", "no")
        with pytest.raises(nats.js.errors.KeyNotFoundError) as caught:
            await bucket.get("missing")
        assert told(from_exception(caught.value)) == ("NOT_FOUND", "correctable", "no")
        await client.close()
    finally:
        server.stop()
