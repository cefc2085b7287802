"""Batches: successes are kept, and only retriable items are sent again."""

import json

import httpx2
import pytest
from flask import Flask
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from amends import Fault, FaultError, Operation, Policy, decide, extract
from amends.bindings.flask import install as flask_install
from amends.bindings.httpx import AsyncTransport
from amends.bindings.starlette import install
from amends.errors import (
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    ServiceUnavailableError,
    ValidationError,
)
from amends.errors import TimeoutError as TimedOut
from amends.http.batch import Batch, Item, aresend, read, resend, run, run_sync
from amends.testing import FakeClock


def create(item):
    if item == "bad":
        raise ValidationError("'amount' is required", field="/amount")
    if item == "broken":
        raise RuntimeError("s3cr3t")
    return {"made": item}


async def acreate(item):
    return create(item)


async def test_partial_success_is_207_with_everything():
    """P10: the response keeps the successes and has a problem with `instance` per failed item; P7: the same schema."""
    for found in (
        await run(["a", "bad", "c", "broken"], acreate, together=3),
        run_sync(["a", "bad", "c", "broken"], create),
    ):
        body = found.body()
        assert (found.status, found.media_type) == (207, "application/problem+json")
        assert body["results"] == [{"index": 0, "value": {"made": "a"}}, {"index": 2, "value": {"made": "c"}}]
        assert [part["instance"] for part in body["errors"]] == ["batch-item-1", "batch-item-3"]
        assert body["errors"][0]["detail"] == "Item 1: 'amount' is required"
        assert body["errors"][1]["code"] == "INTERNAL_ERROR"
        assert body["detail"] == "2 succeeded, 2 failed"
        assert "s3cr3t" not in json.dumps(body)


async def test_all_or_none():
    """P10: all failed with 422 is 422, all succeeded is 200."""
    none = await run(["bad", "bad"], create)
    assert (none.status, none.body()["status"], "results" in none.body()) == (422, 422, False)
    assert none.fault().recovery == "correctable"
    every = await run(["a"], create)
    assert (every.status, every.body()) == (200, {"results": [{"index": 0, "value": {"made": "a"}}]})
    assert every.fault() is None
    busy = run_sync([1], lambda item: (_ for _ in ()).throw(ServiceUnavailableError))
    assert busy.fault().recovery == "transient"


def failing(*errors):
    left = list(errors)

    def work(item):
        raise left.pop(0)

    return run_sync(list(errors), work)


@pytest.mark.parametrize(
    ("errors", "status", "executed", "wait"),
    [
        ([RateLimitedError("x", retry_after=2), RateLimitedError("x", retry_after=7)], 429, "no", 7000),
        ([ServiceUnavailableError(retry_after=2), ServiceUnavailableError(retry_after=1)], 503, "no", 2000),
        ([RateLimitedError("x"), RateLimitedError("x")], 429, "no", 5000),
        ([RateLimitedError("x", retry_after=2), ServiceUnavailableError(retry_after=1)], 503, "no", 2000),
        ([RateLimitedError("x", retry_after=2), RateLimitedError("x")], 429, "no", 5000),
        ([ServiceUnavailableError(), ServiceUnavailableError()], 503, "maybe", 5000),
        ([RuntimeError("s3cr3t"), KeyError("s3cr3t")], 500, "maybe", 1000),
        ([TimedOut("x"), TimedOut("x")], 504, "maybe", 1000),
        ([ConnectionResetError("s3cr3t"), ConnectionResetError("s3cr3t")], 503, "maybe", 5000),
        ([PermissionDeniedError("x"), PermissionDeniedError("x")], 403, "no", None),
        ([NotFoundError("x"), NotFoundError("x")], 404, "no", None),
        ([NotFoundError("x"), ConflictError("x")], 422, "no", None),
        ([NotFoundError("x"), RuntimeError("s3cr3t")], 500, "maybe", None),
        ([RuntimeError("s3cr3t"), ServiceUnavailableError(retry_after=1)], 503, "maybe", None),
        ([NotFoundError("x"), PermissionDeniedError("x")], 403, "no", None),
        ([RateLimitedError("x", retry_after=2), TimedOut("x")], 504, "maybe", None),
        ([ValidationError("x"), ValidationError("x")], 422, "no", None),
        ([ValidationError("x"), RateLimitedError("x")], 422, "no", None),
    ],
)
def test_the_status_if_all_items_failed(errors, status, executed, wait):
    """
    P10: the items' common status with the longest wait; 422 if all can be corrected, else the highest 5xx.

    The whole is retriable only if each item is, and none may have had its effect.
    """
    batch = failing(*errors)
    body = batch.body()
    assert (batch.status, body["status"], body["executed"]) == (status, status, executed)
    assert body.get("retry_after_ms") == wait
    assert batch.headers.get("Retry-After") == (None if wait is None else str(wait // 1000))
    assert batch.headers["Cache-Control"] == "no-store"
    same = len({part["status"] for part in body["errors"]}) == 1
    again = all(part["is_retriable"] for part in body["errors"]) and (same or executed == "no")
    assert body["is_retriable"] is again
    assert (body["title"] == "The request is not valid") is (status == 422)
    assert "s3cr3t" not in json.dumps(body)


def sample(*failed, count, whole=()):
    """Return the response of the specification's sample server: 207 with the failed items alone."""
    errors = [
        {
            "type": "https://example.com/errors/validation-error",
            "title": "Validation failed",
            "status": 422,
            "detail": f"Item {index}: no amount",
            "instance": f"batch-item-{index}",
            "is_retriable": True,
        }
        for index in failed
    ]
    body = {
        "type": "https://example.com/errors/batch-failure",
        "title": "Batch operation partially failed",
        "status": 207,
        "detail": f"{count - len(failed)} succeeded, {len(failed)} failed",
        "errors": [*errors, *whole],
    }
    return {"status": 207, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}


async def test_the_sample_server_of_the_specification():
    """Items that a 207 does not name have succeeded, and are not sent again."""
    assert [item.fault is None for item in read(sample(1, count=3), 3).items] == [True, False, True]
    sizes = []

    async def send(items):
        sizes.append(len(items))
        return sample(1, count=3) if len(sizes) == 1 else sample(0, count=1)

    with FakeClock():
        batch = await aresend(["a", "b", "c"], send)
    assert [item.fault is None for item in batch.items] == [True, False, True]
    assert sizes[0] == 3
    assert set(sizes[1:]) <= {1}


@pytest.mark.parametrize(
    "response",
    [
        sample(1, count=3, whole=["text"]),
        sample(1, count=3, whole=[{"title": "x", "status": 500}]),
        sample(1, 1, count=3),
        sample(7, count=3),
        {**sample(1, count=3), "status": 422},
        {"status": 207, "headers": {}, "body": {"errors": []}},
        {"status": 207, "headers": {}, "body": {"errors": None, "title": "x"}},
        {"status": 207, "headers": {}, "body": "{"},
    ],
)
def test_a_response_that_leaves_items_open(response):
    """Without a readable place for each failure, an item that is not named is no success, and is not sent again."""
    for index in (0, 2):
        fault = read(response, 3).items[index].fault
        assert fault is not None
        assert response["status"] == 422 or decide(fault).action != "retry"


def test_successes_in_a_plain_list():
    """Values without an index are those of the items that did not fail, in their order."""
    response = sample(1, count=3)
    body = {**json.loads(response["body"]), "results": ["A", {"id": "C"}]}
    for count in (3, None):
        items = read({**response, "body": body}, count).items
        assert [(item.value, item.fault is None) for item in items] == [
            ("A", True),
            (None, False),
            ({"id": "C"}, True),
        ]


async def test_the_envelope_is_that_of_an_error_of_the_application(caplog):
    """P4, P5, P10: type, title, page and trace id, and a log line with that id; in Starlette, Flask and Django."""
    caplog.set_level("INFO", "amends.http")

    async def post(request):
        batch = await run(["a", "bad"], create)
        return JSONResponse(batch.body(), batch.status, batch.headers, media_type=batch.media_type)

    app = Starlette(routes=[Route("/batch", post, methods=["POST"])])
    install(app)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as session:
        bodies = [(await session.post("/batch")).json()]
    flask = Flask("batches")
    flask_install(flask)

    @flask.post("/batch")
    def flask_post():
        batch = run_sync(["a", "bad"], create)
        return batch.body(), batch.status, batch.headers

    bodies.append(flask.test_client().post("/batch", base_url="http://shop.example").get_json())
    assert len(caplog.records) == 2
    for body, record in zip(bodies, caplog.records, strict=True):
        assert body["type"] == body["doc_uri"] == "http://shop.example/errors/partial-failure"
        assert (body["title"], body["instance"]) == (
            "Some items failed, the others succeeded",
            "/batch",
        )
        assert (body["trace_id"], body["executed"]) == (record.trace_id, "yes")
        assert "POST /batch answered 207" in record.getMessage()
    assert run_sync(["bad"], create).body()["type"] == "about:blank"


class Shop:
    """Items fail with the given errors, then succeed; records the created items."""

    def __init__(self, failures):
        self.failures, self.made, self.sizes = failures, [], []

    def transport(self):
        async def post(request):
            items = await request.json()
            self.sizes.append(len(items))
            found = await run(items, self.create)
            return JSONResponse(found.body(), found.status, media_type=found.media_type)

        app = Starlette(routes=[Route("/batch", post, methods=["POST"])])
        install(app)
        return httpx2.ASGITransport(app=app)

    def create(self, item):
        if self.failures.get(item):
            raise self.failures[item].pop(0)
        self.made.append(item)
        return item.upper()


@pytest.mark.parametrize("recovering", [False, True])
async def test_only_what_may_be_retried_is_sent_again(recovering):
    """P10: values of the first response are kept, a permanent failure is not repeated, the others succeed later."""
    busy = ServiceUnavailableError("busy", retry_after=2, executed="no")
    shop = Shop({"b": [busy, busy], "c": [ValidationError("no")] * 9, "d": [busy]})
    inner = shop.transport()
    transport = AsyncTransport(inner) if recovering else inner
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as session:

        async def send(items):
            return await session.post("/batch", json=items)

        with FakeClock() as clock:
            found = await aresend(["a", "b", "c", "d"], send, operation=Operation(idempotent=True))
    assert [(item.value, item.fault and item.fault.code) for item in found.items] == [
        ("A", None),
        ("B", None),
        (None, "VALIDATION_ERROR"),
        ("D", None),
    ]
    assert shop.sizes == [4, 2, 1]
    assert sorted(shop.made) == ["a", "b", "d"]
    assert clock.waits == [2.0, 2.0]


def test_resend_and_its_bounds():
    """Attempts and waits are bounded; items that may have had their effect are not sent again by default."""
    answers = []

    def send(items):
        answers.append(len(items))
        found = run_sync(
            items,
            lambda item: (_ for _ in ()).throw(
                ServiceUnavailableError("busy", retry_after=1, executed="maybe")
            ),
        )
        return {"status": found.status, "headers": {}, "body": found.body()}

    with FakeClock():
        resend([1, 2], send, policy=Policy(attempts=3), operation=Operation(idempotent=True))
        assert answers == [2, 2, 2]
        answers.clear()
        resend([1, 2], send)
        assert answers == [2]
        answers.clear()
        resend([1], send, policy=Policy(max_wait=0.5), operation=Operation(idempotent=True))
        assert answers == [1]
    assert resend([], send).items == ()


async def test_a_batch_that_fails_whole_is_every_items_failure():
    """An exception of `send` applies to all items, which are sent again together. An empty batch is not sent."""
    tries = []

    def send(items):
        tries.append(list(items))
        if len(tries) == 1:
            raise ServiceUnavailableError("busy", retry_after=1, executed="no")
        return {"status": 200, "headers": {}, "body": [item.upper() for item in items]}

    async def asend(items):
        return send(items)

    with FakeClock() as clock:
        found = resend(["a", "b"], send)
        assert [item.value for item in found.items] == ["A", "B"]
        assert (tries, clock.waits) == ([["a", "b"]] * 2, [1.0])
        tries.clear()
        found = await aresend(["a", "b"], asend)
        assert [item.value for item in found.items] == ["A", "B"]
        assert tries == [["a", "b"]] * 2
    assert (await aresend([], asend)).items == ()


def test_recovery_of_a_batch():
    """M1: transient if all parts are, terminal if any part is."""
    busy = Fault(code="RATE_LIMITED", vocabulary="http")
    wrong = Fault(code="VALIDATION_ERROR", vocabulary="http")
    final = Fault(code="ACCOUNT_CLOSED", recovery="terminal")

    def whole(*faults):
        return Batch(Item(place, None, fault) for place, fault in enumerate(faults)).fault().recovery

    assert [whole(busy, busy), whole(busy, wrong), whole(busy, final)] == [
        "transient",
        "correctable",
        "terminal",
    ]


def test_invalid_indexes_are_ignored():
    """A result with an index outside the batch is ignored."""
    odd = [
        {"index": -1, "value": 1},
        {"index": "0", "value": 2},
        {"index": 1, "value": 3},
        {"index": 2, "value": 4},
    ]
    items = read({"status": 200, "headers": {}, "body": {"results": odd}}, 2).items
    assert [(item.value, item.fault is None) for item in items] == [(None, False), (3, True)]


def test_reading_other_responses():
    """Every item has an outcome for a plain list, a 207 without indexes, a failed batch, and an invalid body."""
    assert [item.value for item in read({"status": 200, "headers": {}, "body": [1, 2]}).items] == [1, 2]
    partial = {"status": 207, "headers": {}, "body": {"errors": [{"title": "x", "detail": "y"}]}}
    assert [item.fault is None for item in read(partial, 2).items] == [False, False]
    whole = read({"status": 503, "headers": {}, "body": None}, 2)
    assert [item.fault.code for item in whole.items] == ["SERVICE_UNAVAILABLE"] * 2
    assert len(read({"status": 200, "headers": {}, "body": "nonsense"}, 1).failed) == 1
    fault = extract(
        {"status": 422, "headers": {}, "body": {"errors": [{"instance": "batch-item-1", "detail": "d"}]}}
    )
    items = read(FaultError.from_fault(fault), 2).items
    assert items[1].fault.message == "d"


def test_errors_without_an_index_take_their_place():
    """An error that names no item is about the item at its place; the others of the batch share the failure."""
    errors = [{"code": "VALIDATION_ERROR", "status": 422, "title": "A", "detail": text} for text in "ab"]
    problem = {"status": 422, "code": "VALIDATION_ERROR", "title": "T", "detail": "whole", "errors": errors}
    headers = {"content-type": "application/problem+json"}
    found = read(httpx2.Response(422, json=problem, headers=headers), 3)
    outcomes = [(item.index, item.fault.message) for item in found.items]
    assert outcomes == [(0, "a"), (1, "b"), (2, "whole")]


def test_an_unexpected_failure_of_an_item_is_logged(caplog):
    """With its traceback and the number of the item; the expected failure of another is not."""
    caplog.set_level("INFO", "amends.http")
    run_sync(["a", "bad", "broken"], create)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "item 2 of a batch failed")
    assert record.exc_info[0] is RuntimeError


def test_a_batch_that_succeeded_has_no_headers():
    """Its type is JSON, and so is that of an empty one."""
    for batch in (run_sync(["a"], create), run_sync([], create)):
        assert (batch.status, batch.headers, batch.media_type) == (200, {}, "application/json")
        assert batch.failed == ()


@pytest.mark.parametrize(
    ("instance", "index"),
    [
        ("batch-item-3", 3),
        ("batch-item-12345678", 12345678),
        ("batch-item-123456789", 1),
        ("batch-item-x", 1),
        ("batch-item-", 1),
        ("3", 1),
        (None, 1),
    ],
)
def test_the_place_of_a_failed_item(instance, index):
    """By its name if that has a number of at most eight digits, else by its place."""
    parts = [{"code": "CONFLICT", "instance": "batch-item-0"}, {"code": "CONFLICT", "instance": instance}]
    body = {"type": "about:blank", "title": "x", "status": 207, "code": "PARTIAL_FAILURE", "errors": parts}
    response = {
        "status": 207,
        "headers": {"content-type": "application/problem+json"},
        "body": json.dumps(body),
    }
    assert [item.index for item in read(response).items] == [0, index]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ({"results": [{"index": 1, "value": "b"}, {"index": 0, "value": "a"}]}, {0: "a", 1: "b"}),
        ({"results": ["a", "b"]}, {0: "a", 1: "b"}),
        (["a", {"value": "b"}], {0: "a"}),
        ({"results": [{"index": -1, "value": "a"}, {"index": "x", "value": "b"}]}, {}),
        ({"results": [{"id": 7}]}, {0: {"id": 7}}),
        ({"results": "x"}, {}),
        ("{", {}),
        (None, {}),
        (7, {}),
    ],
)
def test_the_results_of_a_response(body, values):
    """Values with their index, or in their order; what cannot be read is no result."""
    for raw in (body, json.dumps(body)) if not isinstance(body, str) else (body,):
        found = read({"status": 200, "headers": {}, "body": raw})
        assert {item.index: item.value for item in found.items} == values


def test_items_that_a_response_does_not_mention():
    """They get the fault of the whole batch, or an internal error; items beyond the count are left out."""
    body = {"results": [{"index": 0, "value": "a"}, {"index": 5, "value": "f"}]}
    found = read({"status": 200, "headers": {}, "body": body}, 2)
    assert [(item.index, item.value) for item in found.items] == [(0, "a"), (1, None)]
    assert found.items[1].fault.code == "INTERNAL_ERROR"
    whole = read(RateLimitedError(retry_after=2), 3)
    assert [item.fault.code for item in whole.items] == ["RATE_LIMITED"] * 3
    assert read(RateLimitedError(retry_after=2)).items == ()
    assert len(read({"status": 200, "headers": {}, "body": body}).items) == 2


def test_the_waits_of_a_batch_that_is_sent_again():
    """The first round waits for none, a later one for the longest wait of its items; the waits add up to the bound."""
    answers = [
        [RateLimitedError(retry_after=2), RateLimitedError(retry_after=7), None],
        [None, RateLimitedError(retry_after=0)],
        [None],
    ]
    sizes = []

    def send(items):
        sizes.append(len(items))
        failures = answers.pop(0)

        def work(item):
            failure = failures.pop(0)
            if failure is not None:
                raise failure
            return item

        batch = run_sync(items, work)
        return {
            "status": batch.status,
            "headers": {"content-type": batch.media_type},
            "body": json.dumps(batch.body()),
        }

    with FakeClock() as clock:
        found = resend(["a", "b", "c"], send)
        assert sizes == [3, 2, 1]
        assert clock.waits[0] == 7.0
        assert [item.value for item in found.items] == ["a", "b", "c"]
        assert [item.index for item in found.items] == [0, 1, 2]
        answers[:] = [[RateLimitedError(retry_after=7)], [RateLimitedError(retry_after=7)], [None]]
        found = resend(["a"], send, policy=Policy(max_wait=10))
        assert found.items[0].fault.code == "RATE_LIMITED"
        assert len(answers) == 1
    assert resend([], send).items == ()


async def test_how_many_items_run_at_the_same_time():
    """One after the other unless more are asked for."""
    import asyncio

    for together, expected in ((None, 1), (1, 1), (3, 3)):
        running = most = 0

        async def work(item):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

        await run(range(6), work, **({} if together is None else {"together": together}))
        assert most == expected


def test_an_error_without_a_place_does_not_replace_a_success():
    """It belongs to the item without an outcome. If there are several of those, it is about none of them in particular."""
    body = {"results": ["order-1"], "errors": [{"title": "no", "code": "CONFLICT", "status": 409}]}
    read_back = read({"status": 207, "headers": {}, "body": body}, count=2)
    assert [(item.value, item.fault and item.fault.code) for item in read_back.items] == [
        ("order-1", None),
        (None, "CONFLICT"),
    ]
    unclear = read({"status": 207, "headers": {}, "body": body}, count=3)
    assert [item.fault and item.fault.code for item in unclear.items] == [
        None,
        "PARTIAL_FAILURE",
        "PARTIAL_FAILURE",
    ]
