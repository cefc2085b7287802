"""Cloud SDKs: botocore, aiobotocore, azure-core, google-api-core, grpc, kubernetes, docker."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.sdks import clients
from tests.sdks.checks import PROSE, difference, raised, wrong
from tests.sdks.server import Answer, serving


def aws(status, word, **more):
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{word}", "message": PROSE, **more}
    return Answer(status, body, {"x-amzn-RequestId": "REQ1"})


def rest(status, word, **headers):
    return Answer(
        status, {"message": PROSE}, {"x-amzn-ErrorType": word, "x-amzn-RequestId": "REQ2", **headers}
    )


def xml(status, word, extra=""):
    return Answer(
        status,
        f"<?xml version='1.0'?><Error><Code>{word}</Code><Message>{PROSE}</Message>{extra}<RequestId>R3</RequestId></Error>",
        {"x-amz-request-id": "R3"},
    )


DYNAMODB = [
    ("throughput", aws(400, "ProvisionedThroughputExceededException"), "throttle", {"word": "ProvisionedThroughputExceededException", "trace_id": "REQ1"}),
    ("throttling", aws(400, "ThrottlingException"), "throttle"),
    ("requests", aws(400, "RequestLimitExceeded"), "throttle"),
    ("limit", aws(400, "LimitExceededException"), None, {"executed": "no"}),
    ("expired", aws(400, "ExpiredTokenException"), "credentials", {"word": "ExpiredTokenException"}),
    ("key", aws(400, "UnrecognizedClientException"), "credentials"),
    ("signature", aws(400, "InvalidSignatureException"), None, {"recovery": "correctable", "executed": "no"}),
    ("denied", aws(400, "AccessDeniedException"), "permission"),
    ("table", aws(400, "ResourceNotFoundException"), "missing"),
    ("validation", aws(400, "ValidationException"), "invalid"),
    ("condition", aws(400, "ConditionalCheckFailedException"), "conflict"),
    ("in progress", aws(400, "TransactionInProgressException"), "again"),
    ("in use", aws(400, "ResourceInUseException"), "conflict"),
    ("collection", aws(400, "ItemCollectionSizeLimitExceededException"), "context"),
    ("internal", aws(500, "InternalServerError"), None, {"executed": "maybe", "recovery": ("uncertain", "transient")}),
    ("unavailable", aws(503, "ServiceUnavailable"), "unavailable"),
    ("cancelled by a conflict", aws(400, "TransactionCanceledException", CancellationReasons=[{"Code": "None"}, {"Code": "TransactionConflict", "Message": PROSE}]), "again"),
    ("cancelled by a condition", aws(400, "TransactionCanceledException", CancellationReasons=[{"Code": "ConditionalCheckFailed"}]), "conflict"),
]  # fmt: skip
BEDROCK = [
    ("throttling", rest(429, "ThrottlingException"), "throttle"),
    ("quota", rest(400, "ServiceQuotaExceededException"), "quota"),
    ("not ready", rest(429, "ModelNotReadyException"), None, {"recovery": "transient", "executed": "no"}),
    ("timeout", rest(408, "ModelTimeoutException"), "timeout"),
    ("model", rest(424, "ModelErrorException"), None, {"recovery": ("uncertain", "transient", "terminal")}),
    ("denied", rest(403, "AccessDeniedException"), "permission"),
    ("missing", rest(404, "ResourceNotFoundException"), "missing"),
    ("invalid", rest(400, "ValidationException"), "invalid"),
    ("unavailable", rest(503, "ServiceUnavailableException"), "unavailable"),
    ("internal", rest(500, "InternalServerException"), "internal"),
    ("expired", rest(403, "ExpiredTokenException"), "credentials"),
]  # fmt: skip
S3 = [
    ("slow down", xml(503, "SlowDown"), "throttle", {"word": "SlowDown", "trace_id": "R3"}),
    ("key", xml(404, "NoSuchKey"), "missing", {"word": "NoSuchKey"}),
    ("bucket", xml(404, "NoSuchBucket"), "missing"),
    ("denied", xml(403, "AccessDenied"), "permission"),
    ("expired", xml(400, "ExpiredToken"), "credentials"),
    ("clock", xml(403, "RequestTimeTooSkewed"), None, {"executed": "no"}),
    ("time-out", xml(400, "RequestTimeout"), None, {"recovery": "transient"}),
    ("internal", xml(500, "InternalError"), None, {"executed": "maybe"}),
    ("condition", xml(412, "PreconditionFailed"), None, {"recovery": "correctable"}),
    ("conflict", xml(409, "OperationAborted"), "again"),
    ("archived", xml(403, "InvalidObjectState"), None, {"executed": "no"}),
    ("head", Answer(404), "missing"),
]  # fmt: skip


def bedrock(url):
    text = [{"role": "user", "content": [{"text": "x"}]}]
    clients.botocore_client("bedrock-runtime", url).converse(modelId="m", messages=text)


def azure(status, code, inner=None, **headers):
    error = {"code": code, "message": PROSE, "target": "properties.sku"}
    if inner:
        error["innererror"] = {"code": inner}
    return Answer(
        status,
        {"error": error},
        {"x-ms-request-id": "A1", **{k.replace("_", "-"): v for k, v in headers.items()}},
    )


AZURE = [
    ("throttle", azure(429, "TooManyRequests", retry_after="21"), "throttle", {"retry_after": 21.0, "trace_id": "A1"}),
    ("throttle in ms", azure(429, "3200", x_ms_retry_after_ms="1200"), "throttle", {"retry_after": 1.2}),
    ("quota", azure(409, "QuotaExceeded"), "quota", {"word": "QuotaExceeded"}),
    ("quota of cores", azure(409, "OperationNotAllowed", "QuotaExceeded"), "quota"),
    ("missing", azure(404, "ResourceNotFound"), "missing", {"word": "ResourceNotFound"}),
    ("exists", azure(409, "ResourceAlreadyExists"), "conflict"),
    ("changed", azure(412, "ConditionNotMet"), None, {"recovery": "correctable"}),
    ("token", azure(401, "ExpiredAuthenticationToken"), "credentials"),
    ("denied", azure(403, "AuthorizationFailed"), "permission"),
    ("field", azure(400, "InvalidParameter"), "invalid", {"field": "properties.sku"}),
    ("busy", azure(503, "ServerBusy"), "overload"),
    ("in progress", azure(409, "AnotherOperationInProgress"), "again"),
    ("internal", azure(500, "InternalServerError"), "internal"),
    ("storage", Answer(404, f"<?xml version='1.0'?><Error><Code>BlobNotFound</Code><Message>{PROSE}</Message></Error>", {"x-ms-error-code": "BlobNotFound"}), "missing"),
    ("lease", Answer(409, f"<?xml version='1.0'?><Error><Code>LeaseAlreadyPresent</Code><Message>{PROSE}</Message></Error>", {"x-ms-error-code": "LeaseAlreadyPresent"}), None, {"code": "CONFLICT"}),
]  # fmt: skip


def azure_mapped(url):
    """A generated client maps statuses to classes."""
    from azure.core import PipelineClient
    from azure.core.exceptions import (
        ClientAuthenticationError,
        HttpResponseError,
        ResourceExistsError,
        ResourceModifiedError,
        ResourceNotFoundError,
        map_error,
    )
    from azure.core.rest import HttpRequest

    classes = {
        401: ClientAuthenticationError,
        404: ResourceNotFoundError,
        409: ResourceExistsError,
        412: ResourceModifiedError,
    }
    with PipelineClient(base_url=url, policies=[]) as client:
        response = client.send_request(HttpRequest("GET", url))
        map_error(status_code=response.status_code, response=response, error_map=classes)
        raise HttpResponseError(response=response)


def azure_polling(url):
    """A long-running operation that fails."""
    from azure.core import PipelineClient
    from azure.core.pipeline import policies
    from azure.core.polling import LROPoller
    from azure.core.polling.base_polling import LROBasePolling
    from azure.core.rest import HttpRequest

    with PipelineClient(base_url=url, policies=[policies.HeadersPolicy()]) as client:
        request = HttpRequest("PUT", f"{url}/start")
        first = client._pipeline.run(request)
        LROPoller(client, first, lambda response: response, LROBasePolling(timeout=0)).result()


def status(code, reason, **details):
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": PROSE,
        "reason": reason,
        "details": details,
        "code": code,
    }
    return Answer(code, body)


KUBERNETES = [
    ("throttle", Answer(429, {"kind": "Status", "status": "Failure", "message": PROSE, "reason": "TooManyRequests", "code": 429, "details": {"retryAfterSeconds": 4}}, {"Retry-After": "4"}), "throttle", {"retry_after": 4.0}),
    ("exists", status(409, "AlreadyExists", name="p"), "conflict", {"word": "AlreadyExists"}),
    ("changed", status(409, "Conflict", name="p"), None, {"code": "CONFLICT"}),
    ("missing", status(404, "NotFound", name="p"), "missing"),
    ("field", status(422, "Invalid", causes=[{"reason": "FieldValueRequired", "message": PROSE, "field": "spec.containers"}]), "invalid", {"field": "spec.containers"}),
    ("token", status(401, "Unauthorized"), "credentials"),
    ("denied", status(403, "Forbidden"), "permission"),
    ("gone", status(410, "Expired"), None, {"recovery": "correctable"}),
    ("server time-out", status(504, "ServerTimeout", retryAfterSeconds=2), None, {"recovery": "transient", "executed": "maybe", "retry_after": 2.0}),
    ("internal", status(500, "InternalError"), "internal"),
    ("unavailable", status(503, "ServiceUnavailable"), "unavailable"),
    ("plain", Answer(503, "hunter2 no endpoints available", {"Content-Type": "text/plain"}), "unavailable"),
]  # fmt: skip
DOCKER = [
    ("missing", Answer(404, {"message": PROSE}), "missing"),
    ("conflict", Answer(409, {"message": PROSE}), "conflict"),
    ("invalid", Answer(400, {"message": PROSE}), "invalid"),
    ("internal", Answer(500, {"message": PROSE}), "internal"),
    ("unavailable", Answer(503, {"message": PROSE}), "unavailable"),
    ("denied", Answer(403, {"message": PROSE}), "permission"),
    ("token", Answer(401, {"message": PROSE}), "credentials"),
    ("throttle of a registry", Answer(429, {"message": PROSE}), "throttle"),
]


@pytest.mark.parametrize(
    ("call", "cases"),
    [
        (clients.dynamodb, DYNAMODB),
        (clients.aiobotocore, DYNAMODB[:8]),
        (bedrock, BEDROCK),
        (clients.s3, S3),
        (clients.azure_core, AZURE),
        (azure_mapped, AZURE),
        (clients.kubernetes, KUBERNETES),
        (clients.docker, DOCKER),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_responses(call, cases):
    """Code, recovery, effect, wait, field, code word and action are those of the answer; no prose is kept."""
    with serving(Answer(500)) as server:

        def ask(answer):
            server.script = [answer]
            call(server.url)

        assert wrong(cases, ask) == {}


def waiter(url):
    client = clients.botocore_client("dynamodb", url)
    client.get_waiter("table_exists").wait(TableName="t", WaiterConfig={"Delay": 0, "MaxAttempts": 2})


def waiter_failed(url):
    client = clients.botocore_client("s3", url)
    client.get_waiter("object_exists").wait(Bucket="b", Key="k", WaiterConfig={"Delay": 0, "MaxAttempts": 2})


def invalid_parameters(url):
    clients.botocore_client("dynamodb", url).get_item(TableName=1)


def no_credentials(url):
    import botocore.session

    session = botocore.session.Session()
    session.get_component("credential_provider").providers.clear()
    session.create_client("dynamodb", region_name="us-east-1", endpoint_url=url).list_tables()


def body_of_s3(url):
    clients.botocore_client("s3", url).get_object(Bucket="b", Key="k")["Body"].read()


def pagination(url):
    pages = clients.botocore_client("dynamodb", url).get_paginator("list_tables").paginate()
    list(pages)


def kubernetes_watch(url):
    from kubernetes import watch

    api = clients.kubernetes_client(url)
    for _ in watch.Watch().stream(api.list_namespaced_pod, "n", timeout_seconds=1):
        pass


def docker_run(url):
    import docker

    raise docker.errors.ContainerError("c", 1, "cmd", "image", PROSE)


def docker_build(url):
    import docker

    client = docker.DockerClient(base_url=url.replace("http", "tcp"), version="1.43")
    client.images.build(
        path=".", custom_context=False, dockerfile="x", fileobj=None, remote="u"
    ) if False else None
    raise docker.errors.BuildError(PROSE, iter(()))


def docker_version(url):
    import docker

    docker.DockerClient(base_url=url.replace("http", "tcp"), version="auto")


EVENT = json.dumps({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "message": PROSE, "reason": "Expired", "code": 410}}) + "\n"  # fmt: skip
OTHERS = [
    ("waiter gave up", waiter, aws(400, "ResourceNotFoundException"), None, {"recovery": ("transient", "uncertain", "correctable"), "executed": ("no", "maybe")}),
    ("waiter was refused", waiter, aws(400, "AccessDeniedException"), "permission", {}),
    ("waiter of a head request", waiter_failed, xml(403, "AccessDenied"), "permission", {}),
    ("parameters", invalid_parameters, Answer(200, {}), "invalid", {}),
    ("no credentials", no_credentials, Answer(200, {}), "credentials", {}),
    ("body cut", body_of_s3, Answer(200, "x" * 5000, cut=100), "lost", {}),
    ("watch", kubernetes_watch, Answer(200, EVENT), None, {"recovery": "correctable", "executed": "no"}),
    ("container", docker_run, Answer(200), "internal", {}),
    ("build", docker_build, Answer(200), None, {"executed": "maybe"}),
    ("version", docker_version, Answer(503, {"message": PROSE}), "unavailable", {}),
    ("polling refused", azure_polling, azure(429, "TooManyRequests", retry_after="21"), "throttle", {"retry_after": 21.0}),
]  # fmt: skip


@pytest.mark.parametrize(("call", "answer", "kind", "more"), [case[1:] for case in OTHERS], ids=[case[0] for case in OTHERS])  # fmt: skip
def test_others(call, answer, kind, more):
    """Waiters, polling, watches, and what an SDK refuses by itself."""
    with serving(answer) as server:
        error = raised(call, server.url)
    assert difference(error, kind, **more) == {}, repr(error)


# ------------------------------------------------------------------------------------------------------------ gRPC


@contextmanager
def grpc_server(behave):
    import grpc

    handlers = {
        "unary": grpc.unary_unary_rpc_method_handler(behave),
        "stream": grpc.unary_stream_rpc_method_handler(
            lambda request, context: iter_of(behave, request, context)
        ),
    }
    server = grpc.server(
        ThreadPoolExecutor(2), handlers=[grpc.method_handlers_generic_handler("s", handlers)]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None)


def iter_of(behave, request, context):
    yield b"first"
    behave(request, context)


def rich(code, *details, **trailers):
    """Return a handler that aborts with a google.rpc.Status."""
    from google.protobuf import any_pb2
    from google.rpc import status_pb2

    def behave(request, context):
        packed = []
        for detail in details:
            each = any_pb2.Any()
            each.Pack(detail)
            packed.append(each)
        status = status_pb2.Status(code=code.value[0], message=PROSE, details=packed)
        context.set_trailing_metadata(
            (
                ("grpc-status-details-bin", status.SerializeToString()),
                *((key.replace("_", "-"), value) for key, value in trailers.items()),
            )
        )
        context.abort(code, PROSE)

    return behave


def grpc_cases():
    import grpc
    from google.protobuf import duration_pb2
    from google.rpc import error_details_pb2 as details

    code = grpc.StatusCode
    delay = details.RetryInfo(retry_delay=duration_pb2.Duration(seconds=7, nanos=500_000_000))
    daily = details.QuotaFailure(violations=[details.QuotaFailure.Violation(subject="p", description=PROSE)])
    info = details.ErrorInfo(
        reason="RATE_LIMIT_EXCEEDED", domain="googleapis.com", metadata={"quota_limit": "RequestsPerDayPerProject"}
    )  # fmt: skip
    minute = details.ErrorInfo(
        reason="RATE_LIMIT_EXCEEDED", domain="googleapis.com", metadata={"quota_limit": "RequestsPerMinutePerProject"}
    )  # fmt: skip
    disabled = details.ErrorInfo(reason="SERVICE_DISABLED", domain="googleapis.com")
    field = details.BadRequest(
        field_violations=[details.BadRequest.FieldViolation(field="parent", description=PROSE)]
    )
    return [
        ("wait", rich(code.RESOURCE_EXHAUSTED, delay), "throttle", {"retry_after": 7.5}),
        ("quota failure", rich(code.RESOURCE_EXHAUSTED, daily), "throttle", {}),
        ("per day", rich(code.RESOURCE_EXHAUSTED, info), "quota", {}),
        ("per minute", rich(code.RESOURCE_EXHAUSTED, minute, delay), "throttle", {"retry_after": 7.5}),
        ("pushback", rich(code.UNAVAILABLE, grpc_retry_pushback_ms="2500"), None, {"recovery": "transient", "retry_after": 2.5}),
        ("no pushback", rich(code.UNAVAILABLE, grpc_retry_pushback_ms="-1"), "permanent", {}),
        ("disabled", rich(code.PERMISSION_DENIED, disabled), "permission", {"word": "SERVICE_DISABLED"}),
        ("field", rich(code.INVALID_ARGUMENT, field), "invalid", {"field": "parent"}),
        ("plain", rich(code.NOT_FOUND), "missing", {}),
        ("deadline", rich(code.DEADLINE_EXCEEDED), "timeout", {}),
        ("aborted", rich(code.ABORTED), "again", {}),
        ("unimplemented", rich(code.UNIMPLEMENTED), None, {"executed": "no", "recovery": ("correctable", "terminal")}),
        ("unauthenticated", rich(code.UNAUTHENTICATED), "credentials", {}),
        ("unavailable", rich(code.UNAVAILABLE), "unavailable", {}),
        ("data loss", rich(code.DATA_LOSS), "permanent", {}),
        ("cancelled", rich(code.CANCELLED), "cancelled", {}),
    ]  # fmt: skip


def unary(port):
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.unary_unary("/s/unary")(b"", timeout=5)


def unary_stream(port):
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for _ in channel.unary_stream("/s/stream")(b"", timeout=5):
            pass


def aio(port):
    import grpc

    async def call():
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await channel.unary_unary("/s/unary")(b"", timeout=5)

    asyncio.run(call())


def converted(port):
    from google.api_core import exceptions

    raise exceptions.from_grpc_error(raised(unary, port))


@pytest.mark.parametrize("call", [unary, unary_stream, aio, converted], ids=lambda call: call.__name__)
def test_grpc(call):
    """The details and trailers of a status are read, in streams, with asyncio, and after google-api-core."""
    found = {}
    for name, behave, kind, more in grpc_cases():
        with grpc_server(behave) as port:
            error = raised(call, port)
        if differs := difference(error, kind, **more):
            found[name] = differs
    assert found == {}


def test_grpc_without_a_server():
    """Nothing listens; a deadline; a call that is cancelled."""
    import grpc

    from tests.sdks.server import closed_port

    assert (
        difference(raised(unary, closed_port()), None, recovery="transient", code="SERVICE_UNAVAILABLE") == {}
    )
    with grpc.insecure_channel(f"127.0.0.1:{closed_port()}") as channel:
        error = raised(lambda: channel.unary_unary("/s/m")(b"", timeout=0.2, wait_for_ready=True))
        assert difference(error, "timeout") == {}
        future = channel.unary_unary("/s/m").future(b"", wait_for_ready=True)
        future.cancel()
        assert difference(raised(future.result), "cancelled") == {}
        error = raised(lambda: grpc.channel_ready_future(channel).result(timeout=0.1))
        assert difference(error, "timeout") == {}


def test_google_api_core_without_an_answer():
    """Retries that gave up, and long-running operations that failed."""
    from google.api_core import exceptions, operation, retry
    from google.longrunning import operations_pb2
    from google.rpc import status_pb2

    def limited():
        raise exceptions.TooManyRequests(PROSE)

    again = retry.Retry(initial=0.01, maximum=0.01, timeout=0.05)
    assert difference(raised(again(limited)), "throttle") == {}

    def broken():
        raise exceptions.ServiceUnavailable(PROSE)

    assert difference(raised(again(broken)), "unavailable") == {}
    assert difference(exceptions.from_http_status(429, PROSE), "throttle") == {}
    assert difference(exceptions.from_grpc_status(5, PROSE), "missing") == {}
    failed = operations_pb2.Operation(name="o", done=True, error=status_pb2.Status(code=8, message=PROSE))
    done = operation.Operation(failed, lambda: failed, lambda: None, None)
    assert difference(raised(done.result), "throttle") == {}
    failed = operations_pb2.Operation(name="o", done=True, error=status_pb2.Status(code=7, message=PROSE))
    done = operation.Operation(failed, lambda: failed, lambda: None, None)
    assert difference(raised(done.result), "permission") == {}
    running = operations_pb2.Operation(name="o", done=False)
    pending = operation.Operation(running, lambda: running, lambda: None, None)
    assert difference(raised(pending.result, timeout=0.1), "timeout") == {}
