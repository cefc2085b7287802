"""Tests of calls that change something and get no answer: what a host without amends is told, in every format."""

import builtins
import http.client
import smtplib
import sqlite3

import httpx
import psycopg
import pytest
from a2a.client import ClientFactory

from amends import Fault, FaultError, Operation, encode, extract
from amends.bindings import a2a
from amends.bindings.httpx import AsyncTransport, Transport
from amends.core.policy import Policy
from amends.dialects.task import encode_beside
from amends.errors import CancelledError
from amends.errors import TimeoutError as TimedOutError
from amends.foreign.in_doubt import IN_DOUBT, in_doubt, lost_call
from amends.recovery import recover
from amends.tasks import WaitTimeoutError
from amends.testing import FakeClock
from tests.bindings import agents
from tests.hops.chains import Case, repeats, run
from tests.hops.formats import FORMATS
from tests.hops.zygote import zygote

ONCE = Policy(attempts=1)


def raised(method="POST", error=None, **options):
    """The error of a call without an answer."""

    def silent(request):
        raise error or httpx.ReadTimeout("no answer from 10.0.0.5")

    with httpx.Client(transport=Transport(httpx.MockTransport(silent), policy=ONCE, **options)) as client:
        try:
            client.request(method, "http://shop.example/orders")
        except FaultError as found:
            return found
    raise AssertionError


def silent():
    raise httpx.ReadTimeout("no answer")


def raised_again():
    raise raised(keyed=True)


def test_which_calls_are_lost():
    """
    A POST without an answer; not one that reads, is idempotent, was not sent, or whose key is the caller's and honoured.

    A key that was made for the call does not count, because a repeat of the handler makes another key.
    """
    assert lost_call(raised()).code == "TIMEOUT"
    assert lost_call(raised(error=httpx.ReadError("reset"))).code == "SERVICE_UNAVAILABLE"
    for method in ("GET", "PUT", "DELETE"):
        assert lost_call(raised(method)) is None
    assert lost_call(raised(keyed=True)).code == "TIMEOUT"
    assert lost_call(raised(keyed=True, headers=dict)).code == "TIMEOUT"
    with pytest.raises(FaultError) as own:
        recover(raised_again, operation=Operation(key="order-17"), policy=ONCE)
    assert lost_call(own.value) is None
    with pytest.raises(FaultError) as new:
        recover(silent, operation=Operation(keyed=True), policy=ONCE)
    assert new.value.key_is_new
    assert lost_call(new.value).code == "TIMEOUT"
    assert lost_call(raised(error=httpx.ConnectError("refused"))) is None


def test_exceptions_of_libraries():
    """Their method, if they have one, says whether the call may be repeated."""
    for method, lost in (("POST", True), ("PATCH", True), ("GET", False), ("PUT", False)):
        error = httpx.ReadTimeout("x", request=httpx.Request(method, "http://shop.example"))
        assert (lost_call(error) is not None) is lost
    assert lost_call(httpx.ReadTimeout("x")) is not None
    assert lost_call(ExceptionGroup("g", [KeyError("x"), httpx.ReadTimeout("x")])).code == "TIMEOUT"


@pytest.mark.parametrize(
    "error",
    [
        TimedOutError("The printer took too long"),
        CancelledError("Stopped", intent={"what": "print"}),
        KeyError("bug"),
        builtins.TimeoutError(),
        FileNotFoundError("/etc/x"),
        FaultError.from_fault(extract({"status": 503, "headers": {}})),
        FaultError.from_fault(extract({"status": 504, "headers": {}})),
    ],
    ids=repr,
)
def test_what_is_no_lost_call(error):
    """An author's own time-out, a cancellation, a bug, and a call that was answered keep their rows."""
    assert lost_call(error) is None


async def test_exceptions_of_protocol_clients():
    """A message without an answer, by the A2A SDK's client and by ours; not one that was refused or not sent."""

    async def send(answer, make):
        def handle(request):
            if isinstance(answer, Exception):
                raise answer
            return answer

        async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as http:
            config = agents.config(agents.PATHS[0], httpx_client=http)
            client = make(agents.card("http://agent.example", agents.PATHS[0]), config)
            with pytest.raises(Exception) as caught:
                async for _ in client.send_message(agents.request()):
                    pass
        return caught.value

    for make in (
        lambda card, config: a2a.Client(card, config=config, policy=ONCE),
        lambda card, config: ClientFactory(config).create(card),
    ):
        assert lost_call(await send(httpx.ReadTimeout("x"), make)).code == "TIMEOUT"
        assert lost_call(await send(httpx.ReadError("x"), make)) is not None
        assert lost_call(await send(httpx.ConnectError("x"), make)) is None
        assert lost_call(await send(httpx.Response(503), make)) is None


def test_urllib_and_a_task_that_goes_on():
    assert lost_call(http.client.RemoteDisconnected("closed")) is not None
    assert lost_call(WaitTimeoutError("7", 30)).code == "TIMEOUT"


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("db-7.internal"),
        builtins.TimeoutError(),
        psycopg.OperationalError("the connection is lost"),
        sqlite3.OperationalError("disk I/O error"),
        smtplib.SMTPServerDisconnected("x"),
    ],
    ids=repr,
)
def test_any_exception_of_a_tool_that_does_not_show_that_nothing_happened(error):
    """A database that is lost in a write is no invitation to the host to call the tool again."""
    assert lost_call(error, of_agent=True).executed == "maybe"
    with pytest.raises(FaultError) as wrapped:
        recover(lambda: (_ for _ in ()).throw(error), policy=ONCE)
    assert lost_call(wrapped.value, of_agent=True) is not None


@pytest.mark.parametrize("error", [ConnectionRefusedError(), KeyError("id"), ValueError()], ids=repr)
def test_what_a_tool_raises_if_nothing_happened_or_it_has_a_bug(error):
    """Neither is a lost call."""
    assert lost_call(error, of_agent=True) is None


def test_a_refusal_does_not_undo_a_lost_attempt():
    """The first attempt is lost, the others are refused: with a key that was made for the call, it may have happened."""
    answers = [httpx.ReadTimeout("no answer"), *[httpx.Response(503, headers={"retry-after": "1"})] * 5]

    def answer(request):
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    transport = Transport(httpx.MockTransport(answer), keyed=True)
    with FakeClock(), httpx.Client(transport=transport) as client, pytest.raises(FaultError) as caught:
        client.post("http://shop.example/orders")
    assert caught.value.fault.status == 503
    assert lost_call(caught.value).executed == "maybe"


def test_an_own_error_inside_recover_is_the_authors():
    def step():
        raise TimedOutError("The printer took too long")

    with pytest.raises(FaultError) as caught:
        recover(step, policy=ONCE)
    assert lost_call(caught.value) is None


def test_hostile_exceptions():
    """Attributes that raise, and a method that is no text."""

    class Hostile(Exception):
        @property
        def decision(self):
            raise ValueError

        request = 7

    assert lost_call(Hostile()) is None


@pytest.mark.parametrize("vocabulary", ["adcp", "http", "cli", "task", "arcp"])
def test_the_rows(vocabulary):
    """Under no code that a specification repeats, with one text and without a wait; the record has the rest."""
    fault = in_doubt(Fault(code="TIMEOUT", retry_after=7, attempt=2), vocabulary)
    assert fault.code != "TIMEOUT"
    assert (fault.message, fault.retry_after, fault.executed.value) == (IN_DOUBT, None, "maybe")
    assert (fault.raised.code, fault.attempt, fault.in_doubt) == ("TIMEOUT", 2, True)


def test_the_documents():
    """The members that a host without amends reads."""
    problem = encode(in_doubt(Fault(code="TIMEOUT"), "http"), "problem")
    assert (problem["is_retriable"], problem["status"], problem["suggestions"]) == (False, 504, [IN_DOUBT])
    assert "retry_after_ms" not in problem
    error = encode(in_doubt(Fault(code="TIMEOUT"), "cli"), "envelope")["error"]
    assert (error["retryable"], error["fix_required"], error["code"]) == (False, IN_DOUBT, "EFFECT_UNKNOWN")
    task = encode_beside(Fault(code="TIMEOUT", vocabulary="task", in_doubt=True))
    assert (task["code"], task["recoverable"], task["message"]) == ("INTERNAL_ERROR", False, IN_DOUBT)
    assert task["details"]["amends"]["code"] == "TIMEOUT"
    arcp = encode(in_doubt(Fault(code="TIMEOUT"), "arcp"), "arcp")
    assert (arcp["code"], arcp["retryable"]) == ("INTERNAL_ERROR", False)
    adcp = encode(in_doubt(Fault(code="TIMEOUT"), "adcp"), "adcp")
    assert (adcp["recovery"], "retry_after" in adcp) == ("terminal", False)


@pytest.fixture(scope="module", autouse=True)
def commands():
    with zygote():
        yield


@pytest.mark.parametrize("name", FORMATS)
async def test_a_host_without_amends_is_not_told_to_repeat_a_lost_write(name):
    """Real servers and a client of the format's own library."""
    outcome = await run(Case(f"{name}:server", "lost"))
    assert outcome.calls == 1
    assert not repeats(name, outcome.document)
    assert outcome.fault.executed.value == "maybe"
    assert "hunter2" not in str(outcome.document)


async def test_async_transports_too():
    """The same evidence, whichever client lost the answer."""

    def silent(request):
        raise httpx.ReadTimeout("x")

    inner = httpx.MockTransport(silent)
    async with httpx.AsyncClient(transport=AsyncTransport(inner, policy=ONCE)) as client:
        with pytest.raises(FaultError) as caught:
            await client.post("http://shop.example/orders")
    assert lost_call(caught.value).code == "TIMEOUT"
