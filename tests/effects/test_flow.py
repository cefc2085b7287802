"""What a call becomes when any operation of the store fails or is its last, and what each kind of failure means."""

import asyncio
import sqlite3
import threading

import pytest

from amends import stores
from amends.chain import relay
from amends.core.enums import Executed
from amends.effects import (
    AlreadyDoneError,
    EffectRunningError,
    Effects,
    InDoubtError,
    KeyReusedError,
    LedgerUnavailableError,
)
from amends.effects.flow import _executed
from amends.effects.records import TABLE
from amends.errors import (
    ConflictError,
    NotFoundError,
    RateLimitedError,
    ServiceUnavailableError,
    ValidationError,
)
from amends.stores import StoreError
from tests.durable.faulty import HOWS, Faulty, end_lease


def payment(happened):
    async def pay(order):
        happened.append(order)
        return "r"

    return pay


async def test_every_interruption_and_every_failure():
    """Without `verify` the effect never happens twice, and one that happened is done or pending, whatever goes wrong."""
    tried = []
    for how in HOWS:
        for point in range(20):
            async with await stores.open("memory:") as memory:
                happened, faults = [], Faulty(memory, transactions=True)
                faults.point, faults.how = point, how
                pay = payment(happened)

                faults.caller = asyncio.ensure_future(Effects(faults).once(key="order")(pay)(1))
                (first,) = await asyncio.gather(faults.caller, return_exceptions=True)
                if faults.count <= point:
                    break
                tried.append((how, point))
                assert first == "r" or isinstance(first, StoreError | asyncio.CancelledError | Exception)
                # The lease of a process that died expires.
                await end_lease(memory.table(TABLE), "pay:1")
                ledger = Effects(memory)
                if happened:
                    found = await ledger.aget("pay:1")
                    assert found is not None, (how, point)
                    assert found.state == "done" or [each.key for each in await ledger.pending()] == ["pay:1"]
                try:
                    second = await ledger.once(key="order")(pay)(1)
                except InDoubtError:
                    second = None
                assert len(happened) <= 1, (how, point)
                assert second == "r" if first == "r" and "fails" not in how else second in {"r", None}, (
                    how,
                    point,
                )
    assert len(tried) == 2 * len(HOWS), tried  # claim, outcome


@pytest.mark.parametrize(
    ("raised", "direct", "executed"),
    [
        (RateLimitedError(retry_after=1), False, Executed.NO),
        (ValidationError("no"), False, Executed.NO),
        (NotFoundError("no"), False, Executed.NO),
        (ServiceUnavailableError(), False, Executed.MAYBE),
        (ServiceUnavailableError(executed=Executed.NO), False, Executed.NO),
        (ConnectionRefusedError(), False, Executed.MAYBE),
        (ConnectionRefusedError(), True, Executed.NO),
        (TimeoutError(), True, Executed.MAYBE),
        (KeyError("bug"), True, Executed.MAYBE),
        (asyncio.CancelledError(), True, Executed.MAYBE),
        (KeyboardInterrupt(), True, Executed.MAYBE),
    ],
)
def test_what_a_failure_means(raised, direct, executed):
    """M3: what came out of a call inside the function is unknown, unless the function is that one call."""
    assert _executed(raised, direct=direct) is executed


async def test_a_failure_after_the_effect_is_kept():
    """`executed` "yes": a repeat raises the same failure, and does not run."""
    effects, runs = Effects("memory:"), []

    @effects.once(key="order")
    async def pay(order):
        runs.append(order)
        raise ValidationError("paid, but the receipt could not be sent", executed=Executed.YES)

    for _ in range(2):
        with pytest.raises(ValidationError, match="receipt"):
            await pay(1)
    assert (runs, await effects.pending()) == ([1], [])


def test_relay_declares_that_nothing_else_was_done():
    """An upstream's failure that is passed on with `chain.relay` has the upstream's evidence."""
    error = relay(RateLimitedError(retry_after=1))
    assert _executed(error, direct=False) is Executed.NO


@pytest.mark.parametrize(
    "exc", [FileNotFoundError(2, "receipt.txt"), PermissionError(), sqlite3.IntegrityError()]
)
def test_a_failure_of_the_functions_own_code_leaves_the_effect_in_doubt(exc):
    """The function paid and then failed to write its receipt: a repeat does not pay again."""
    effects, paid = Effects("memory:"), []

    @effects.once(key="order")
    def pay(order):
        paid.append(order)
        raise exc

    for _ in range(2):
        with pytest.raises(InDoubtError):
            pay(1)
    assert paid == [1]


INNER = {
    "done": AlreadyDoneError,
    "doubt": InDoubtError,
    "reused": KeyReusedError,
    "running": EffectRunningError,
    "away": LedgerUnavailableError,
}


@pytest.mark.parametrize("kind", INNER)
def test_what_the_ledger_says_about_an_inner_effect_is_not_about_the_outer_one(kind, tmp_path):
    """The outer function may have done something before: it is in doubt, neither free nor done."""
    effects, charged, entered, release = Effects("memory:", wait=0), [], threading.Event(), threading.Event()
    inside = Effects(f"sqlite:///{tmp_path}/no/such/folder.db") if kind == "away" else effects

    @inside.once(key=None if kind == "done" else "number")
    def ship(number, *, address="Oslo"):
        if kind == "doubt":
            raise TimeoutError
        entered.set()
        if kind == "running":
            release.wait(30)
        return "shipped"

    @effects.once(key="number")
    def sell(number):
        charged.append(number)
        return ship(number)

    first = threading.Thread(target=ship, args=(17,), kwargs={"address": "Rome"} if kind == "reused" else {})
    if kind in {"done", "reused", "running"}:
        first.start()
        entered.wait(30)
        if kind != "running":
            first.join(30)
    try:
        with pytest.raises(InDoubtError) as caught:
            sell(17)
        assert caught.value.key == "sell:17"
        assert isinstance(caught.value.__cause__, INNER[kind])
        with pytest.raises(InDoubtError):
            sell(17)
    finally:
        release.set()
        if first.ident is not None:
            first.join(30)
    assert charged == [17]


async def test_an_effect_that_calls_itself_does_not_wait_for_itself():
    """The error says so at once. A task that outlives the effect is no part of it any more."""
    effects = Effects("memory:", wait=600)
    outlived, ended = [], asyncio.Event()

    @effects.once(key="number")
    async def count(number):
        return await again(number)

    @effects.once(key="number")
    async def again(number):
        return await count(number)

    with pytest.raises(InDoubtError) as caught:
        async with asyncio.timeout(30):
            await count(1)
    inner = caught.value.__cause__.__cause__
    assert isinstance(inner, EffectRunningError)
    assert "part of it" in str(inner)

    @effects.once(key="number")
    async def start(number):
        async def later():
            await ended.wait()
            return await start(2)

        if number == 1:
            outlived.append(asyncio.ensure_future(later()))
        return number

    assert await start(1) == 1
    ended.set()
    assert await outlived[0] == 2


@pytest.mark.parametrize("details", [{"o": object()}, "cyclic", {"s": "\ud800", "n": 10**400}])
def test_a_failure_after_the_effect_is_kept_whatever_its_details_are(details):
    """The caller gets its own exception, and a later call the same failure."""
    if details == "cyclic":
        details = {}
        details["self"] = details
    effects, happened = Effects("memory:"), []

    @effects.once(key="number")
    def pay(number):
        happened.append(number)
        raise ConflictError("paid, but not booked", executed="yes", details=details)

    for _ in range(2):
        with pytest.raises(ConflictError, match="not booked"):
            pay(1)
    assert happened == [1]
    assert effects.get("pay:1").state == "done"
