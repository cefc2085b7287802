"""What a call becomes when any operation of the store fails or is its last, and what each kind of failure means."""

import asyncio
import sqlite3

import pytest

from amends import stores
from amends.chain import relay
from amends.core.enums import Executed
from amends.effects import Effects, InDoubtError
from amends.effects.flow import _executed
from amends.effects.records import TABLE
from amends.errors import NotFoundError, RateLimitedError, ServiceUnavailableError, ValidationError
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
