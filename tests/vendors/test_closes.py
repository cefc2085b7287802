"""WebSocket close codes, from real sockets and as values."""

import asyncio

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from amends import FaultError, Operation, Policy, Upstream, decide, extract, from_exception, recover
from amends.core.backoff import Backoff
from amends.vendors import NAMES
from amends.vendors.closes import REGISTERED, read_close
from amends.vendors.registry import vendor


def test_an_unknown_name_of_a_vendor_is_refused():
    """A misspelt name would read no code of the service; transports refuse it, too."""
    with pytest.raises(LookupError, match="opnai"):
        Upstream("models", vendor="opnai")
    assert Upstream("models", vendor="gemini").vendor == "google"


async def closed_with(code: int, reason: str) -> ConnectionClosed:
    """Return what a client of a server that closes with this code receives."""

    async def handler(connection):
        await connection.close(code, reason)

    async with serve(handler, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}") as client:
            with pytest.raises(ConnectionClosed) as caught:
                await client.recv()
    return caught.value


@pytest.mark.parametrize(
    ("code", "sender", "expected"),
    [
        (4004, "discord", ("UNAUTHENTICATED", "correctable")),
        (4004, "twitch", ("SERVICE_UNAVAILABLE", "transient")),
        (4004, "pusher", ("QUOTA_EXCEEDED", "terminal")),
        (4004, "assemblyai", ("NOT_FOUND", "correctable")),
        (4004, None, ("SERVICE_UNAVAILABLE", "transient")),
        (1013, None, ("OVERLOADED", "transient")),
        (1008, None, ("PERMISSION_DENIED", "terminal")),
    ],
)
def test_a_number_means_what_the_service_says(code, sender, expected):
    """The same number of five services, from the exception that websockets raises."""
    error = asyncio.run(closed_with(code, "see the reference"))
    fault = extract(error, vendor=sender)
    assert (fault.code, fault.recovery) == expected
    assert fault.details == {"code": str(code)}
    assert fault.origin.path == "close"
    assert extract(error.rcvd, vendor=sender) == fault
    raised = from_exception(error, vendor=sender)
    assert (raised.code, raised.recovery, raised.details) == (*expected, fault.details)


@pytest.mark.parametrize(("sender", "calls"), [("discord", 1), ("twitch", 2), (None, 2)])
def test_a_recovery_reads_the_numbers_of_its_upstream(sender, calls):
    """4004 ends a recovery of Discord, whose token is refused, and not one of Twitch, nor of a service without a table."""
    error = asyncio.run(closed_with(4004, "see the reference"))
    made = []

    def read():
        made.append(1)
        raise error

    policy = Policy(attempts=2, backoff=Backoff(first=0.001))
    with pytest.raises(FaultError):
        recover(read, policy=policy, upstream=Upstream("events", vendor=sender), read_only=True)
    assert len(made) == calls


def test_the_text_of_an_exception_stays_inside():
    """`from_exception` shows no reason; the number is a fact."""
    fault = from_exception(asyncio.run(closed_with(4001, "token s3cret is wrong")))
    assert fault.code == "SERVICE_UNAVAILABLE"
    assert fault.details == {"code": "4001"}
    assert "s3cret" not in repr(fault)


@pytest.mark.parametrize(
    ("reason", "sender", "code", "word"),
    [
        ("NET-0001", "deepgram", "SERVICE_UNAVAILABLE", "NET-0001"),
        ("DATA-0000", "deepgram", "VALIDATION_ERROR", "DATA-0000"),
        ("invalid_request_error.insufficient_quota", "openai", "QUOTA_EXCEEDED", "insufficient_quota"),
        ("You exceeded your quota: insufficient_quota", "openai", "SERVICE_UNAVAILABLE", "1001"),
    ],
)
def test_a_reason_counts_only_if_it_is_one_code_word(reason, sender, code, word):
    """Prose never decides, also if it has a code word in it."""
    fault = extract({"close_code": 1001, "reason": reason}, vendor=sender)
    assert (fault.code, fault.details["code"]) == (code, word)


def test_objects_of_other_libraries_are_no_close_frames():
    """Many objects have a code and a reason."""

    class Reply:
        code, reason = 4004, "not a socket"

    assert extract(Reply()) is None
    assert extract(Reply(), vendor="discord") is None


def test_a_normal_end_is_no_failure():
    """1000 means that the purpose of the connection was fulfilled."""
    assert read_close(1000) is None
    assert extract({"close_code": 1000, "reason": "bye"}) is None
    assert extract(asyncio.run(closed_with(1000, ""))) is None


def test_rate_limits_are_retried_and_used_up_money_is_not():
    """The decision, over all tables."""
    for name in NAMES:
        for code, kind in vendor(name).closes.items():
            decision = decide(read_close(code, "", name), operation=Operation(idempotent=True))
            assert (decision.action == "retry") == (kind.recovery in {"transient", "uncertain"}), (name, code)
    assert all(1001 <= code <= 3999 for code in REGISTERED)


@pytest.mark.parametrize("code", [None, True, "4004", 4004.5, [], {}, 10**400, float("nan"), -1])
def test_other_values_are_no_close_code(code):
    """A decoder returns a bounded fault or none, and never raises."""
    fault = extract({"close_code": code, "reason": "x" * 1_000_000})
    assert fault is None or len(fault.message) <= 123
