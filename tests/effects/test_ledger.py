"""The ledger: one effect per key, outcomes that are handed out, doubts that wait for an answer."""

import asyncio
import sqlite3
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from amends.durable.keys import Keys
from amends.effects import (
    AlreadyDoneError,
    EffectRunningError,
    Effects,
    InDoubtError,
    KeyReusedError,
    LedgerUnavailableError,
    Similar,
    SimilarError,
    current_key,
)
from amends.errors import NotFoundError, RateLimitedError, ValidationError
from amends.stores import StoreError


@dataclass
class Order:
    number: int
    amount: int = 5


class Shop:
    """Counts payments; `fail` is raised after the payment was made."""

    def __init__(self):
        self.paid, self.fail, self.gate = [], None, None
        self.called = asyncio.Event()

    async def pay(self, order):
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        self.paid.append(order)
        if self.fail is not None:
            raise self.fail
        return {"receipt": len(self.paid)}


async def test_the_first_call_runs_and_the_outcome_is_replayed(effects):
    """A key has one effect; the same key with other arguments is refused; another key runs."""
    shop = Shop()

    @effects.once(key=lambda order: order.number)
    async def pay(order):
        return await shop.pay(order)

    assert await pay(Order(1)) == await pay(Order(1)) == {"receipt": 1}
    with pytest.raises(KeyReusedError) as refused:
        await pay(Order(1, amount=6))
    assert refused.value.fault.executed == "no"
    assert await pay(Order(2)) == {"receipt": 2}
    assert len(shop.paid) == 2
    found = await effects.aget("pay:1")
    assert (found.state, found.tool, found.outcome, found.call) == (
        "done",
        "pay",
        {"receipt": 1},
        'pay({"order":{"amount":5,"number":1}})',
    )


def waiting_tasks(effects, monkeypatch):
    """Return the set of tasks that wait for another call from now on."""
    waiting, add = set(), type(effects._waiters).add

    def added(self, *arguments):
        waiting.add(asyncio.current_task())
        add(self, *arguments)

    monkeypatch.setattr(type(effects._waiters), "add", added)
    return waiting


async def test_concurrent_callers_wait_for_the_one_that_runs(effects, monkeypatch):
    """Ten callers, one effect, and ten times the same outcome."""
    shop = Shop()
    shop.gate = asyncio.Event()
    for key in ("order", None):

        @effects.once(key=key, name=f"pay-{key}")
        async def pay(order):
            return await shop.pay(order)

        shop.paid.clear()
        shop.gate.clear()
        waiting = waiting_tasks(effects, monkeypatch)
        calls = [asyncio.ensure_future(pay(7)) for _ in range(10)]
        while len(waiting) < 9:
            await asyncio.sleep(0)
        shop.gate.set()
        assert await asyncio.gather(*calls) == [{"receipt": 1}] * 10
        assert len(shop.paid) == 1


async def test_a_call_waits_no_longer_than_its_bound(store):
    """After `wait` seconds the caller gets EffectRunningError; the effect goes on."""
    effects, gate, called = Effects(store, wait=0.05), asyncio.Event(), asyncio.Event()

    @effects.once(key="order")
    async def pay(order):
        called.set()
        await gate.wait()
        return order

    first = asyncio.ensure_future(pay(1))
    await called.wait()
    with pytest.raises(EffectRunningError) as refused:
        await pay(1)
    assert (refused.value.fault.recovery, refused.value.fault.executed) == ("transient", "no")
    gate.set()
    assert await first == await pay(1) == 1


async def test_a_call_that_surely_did_not_happen_frees_the_key(effects):
    """`executed` "no": the failure is raised, and the next call runs."""
    shop = Shop()

    @effects.once(key="order")
    async def pay(order):
        return await shop.pay(order)

    for failure in (RateLimitedError(retry_after=1), ValidationError("no such account")):
        shop.fail = failure
        with pytest.raises(type(failure)):
            await pay(1)
    shop.fail = None
    assert await pay(1) == {"receipt": 3}


async def test_without_verify_an_unknown_outcome_is_in_doubt(effects):
    """It is never repeated and never dropped; a person's answer decides."""
    shop = Shop()
    shop.fail = TimeoutError()

    @effects.once(key="order")
    async def pay(order):
        return await shop.pay(order)

    for order in (1, 2, 2, 1):
        with pytest.raises(InDoubtError) as unknown:
            await pay(order)
        assert unknown.value.key == f"pay:{order}"
        assert "Did it happen?" in unknown.value.question
        assert (unknown.value.fault.code, unknown.value.fault.executed) == ("EFFECT_UNKNOWN", "maybe")
    assert shop.paid == [1, 2]
    pending = await effects.pending()
    assert {each.key for each in pending} == {"pay:1", "pay:2"}
    assert [each.question async for each in effects.pending()] == [each.question for each in pending]
    assert (await effects.averify("pay:1", happened=True, outcome={"receipt": 9})).state == "done"
    assert await effects.averify("pay:2", happened=False) is None
    shop.fail = None
    assert await pay(1) == {"receipt": 9}
    assert await pay(2) == {"receipt": 3}
    assert not await effects.pending()
    with pytest.raises(NotFoundError):
        await effects.averify("pay:3", happened=True)


async def test_verify_decides(effects):
    """`verify` gets the arguments. It returns the outcome, True, False or None; if it raises, it has found out nothing."""
    shop, found = Shop(), {}
    shop.fail = TimeoutError()

    async def find(order):
        if isinstance(found[order], Exception):
            raise found[order]
        return found[order]

    @effects.once(key="order", verify=find)
    async def pay(order):
        return await shop.pay(order)

    found[1] = {"receipt": "found"}
    assert await pay(1) == await pay(1) == {"receipt": "found"}
    found[2] = True
    assert await pay(2) is None
    found[3] = False
    with pytest.raises(Exception) as refused:
        await pay(3)
    assert refused.value.fault.executed == "no"
    assert shop.paid == [1, 2, 3]
    for unknown in (None, RuntimeError("down")):
        found[4] = unknown
        with pytest.raises(InDoubtError):
            await pay(4)
    assert shop.paid.count(4) == 1
    # The next call asks again, before it does anything.
    found[4], shop.fail = False, None
    assert await pay(4) == {"receipt": 5}


async def test_derived_keys(effects):
    """Equal arguments share a key; a delivered outcome is answered "already done"; `again` does it once more."""
    shop = Shop()

    @effects.once
    async def order(item, *, count=1):
        return await shop.pay(item)

    first = await order("tea")
    with pytest.raises(AlreadyDoneError) as done:
        await order(item="tea", count=1.0)
    assert 'pass again="reason" to do it once more' in str(done.value)
    assert (done.value.outcome, done.value.fault.executed, done.value.fault.field) == (first, "yes", "again")
    assert await order("tea", again="the customer wants another") == {"receipt": 2}
    with pytest.raises(AlreadyDoneError, match="another reason"):
        await order("tea", again="the customer wants another")
    assert await order("tea", again="and one for a friend") == {"receipt": 3}
    assert await order("tea", count=2) == {"receipt": 4}
    for scope in ("task-42", "task-43"):
        with effects.scope(scope):
            await order("tea")
        with pytest.raises(AlreadyDoneError):
            async with effects.scope(scope):
                await order("tea")
    assert len(shop.paid) == 6
    with pytest.raises(ValidationError):
        await order("tea", again="")


async def test_a_lost_outcome_of_a_derived_key_is_handed_out(effects):
    """The caller was cancelled; the outcome was found later, so it is handed out once and then was delivered."""
    shop = Shop()
    shop.gate = asyncio.Event()

    @effects.once(verify=lambda item: True)
    async def order(item):
        return await shop.pay(item)

    lost = asyncio.ensure_future(order("tea"))
    await shop.called.wait()
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)
    assert await order("tea", again="a model that guesses") is None
    with pytest.raises(AlreadyDoneError):
        await order("tea")
    assert not shop.paid


async def test_a_scope_has_its_own_decorator(effects):
    """A function decorated with a scope's `once` always has that scope; `acall` takes any call."""
    scope = effects.scope("task-42")
    runs = []

    @scope.once
    async def order(item):
        runs.append(item)

    async def send():
        runs.append(current_key())
        return "sent"

    await order("tea")
    with pytest.raises(AlreadyDoneError), effects.scope("other"):
        await order("tea")
    assert await scope.acall("send", send, {"to": "a"}, key="k") == "sent"
    assert await scope.acall("send", send, {"to": "a"}, key="k") == "sent"
    assert runs == ["tea", "send:k"]
    assert current_key() is None


def test_plain_functions(url):
    """The same for functions without async, from several threads."""
    with Effects(url) as effects:
        paid, gate = [], threading.Event()

        @effects.once(key="order", verify=lambda order: None)
        def pay(order):
            assert gate.wait(30)
            paid.append(order)
            if order < 0:
                raise TimeoutError
            return [order]

        results = []
        threads = [threading.Thread(target=lambda: results.append(pay(1))) for _ in range(4)]
        for each in threads:
            each.start()
        gate.set()
        for each in threads:
            each.join(30)
        assert (results, paid) == ([[1]] * 4, [1])
        with pytest.raises(InDoubtError):
            pay(-1)
        assert len(effects.pending()) == 1
        assert effects.pending()[0].key == "pay:-1"
        assert effects.verify("pay:-1", happened=True, outcome=[3]).delivered is False
        assert pay(-1) == [3]
        assert {each.key for each in effects.list()} == {"pay:1", "pay:-1"}
        assert effects.get("pay:1").state == "done"


async def test_a_ledger_that_cannot_be_reached(tmp_path):
    """Nothing runs without its claim."""
    effects, runs = Effects(f"sqlite:///{tmp_path}/no/such/folder/effects.db"), []

    @effects.once(key="order")
    async def pay(order):
        runs.append(order)

    with pytest.raises(LedgerUnavailableError) as refused:
        await pay(1)
    assert (refused.value.fault.executed, runs) == ("no", [])


async def test_a_process_that_stops_leaves_a_doubt(store, monkeypatch):
    """When its lease has expired, the effect is pending and is not repeated; if the process continues, it ends the doubt."""
    runs, gate = [], asyncio.Event()

    async def fail(*_):
        raise StoreError("paused")

    monkeypatch.setattr(Keys, "renew", fail)

    async def pay(order):
        runs.append(order)
        await gate.wait()
        return "paid"

    first, second = (Effects(store, lease=0.2).once(key="order")(pay) for _ in range(2))
    ledger = Effects(store)
    running = asyncio.ensure_future(first(1))
    while not await ledger.pending():
        await asyncio.sleep(0.05)
    with pytest.raises(InDoubtError):
        await second(1)
    gate.set()
    assert await running == await second(1) == "paid"
    assert (runs, await ledger.pending()) == ([1], [])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"key": "nothing"}, ValueError, "no argument 'nothing'"),
        ({"key": ()}, ValueError, "at least one argument"),
        ({"verify": "later"}, TypeError, "verify is a function"),
        ({"expires_in": 0}, ValueError, "positive"),
        ({"expires_in": "2 days"}, TypeError, "timedelta"),
        ({"ignore": "nothing"}, ValueError, "no argument 'nothing'"),
    ],
)
def test_wrong_options(options, error, text):
    """A wrong option is refused where the function is decorated, with what to do."""
    with pytest.raises(error, match=text):
        Effects("memory:").once(**options)(lambda order: order)


async def test_arguments_without_a_key(effects):
    """A connection is no part of a derived key: `ignore` leaves it out; with a key it is left out by itself."""
    connection = SimpleNamespace(close=lambda: None)

    async def pay(order, connection):
        return order

    with pytest.raises(TypeError, match="ignore"):
        await effects.once(pay)(1, connection)
    assert await effects.once(ignore="connection")(pay)(1, connection) == 1
    assert await effects.once(key="order", name="keyed")(pay)(2, connection) == 2
    with pytest.raises(ValueError, match="empty"):
        await effects.once(key="order", name="keyed")(pay)(None, connection)


def test_two_functions_do_not_share_a_name():
    """The ledger knows tools by name, so a second function needs a name of its own."""
    effects = Effects("memory:")
    effects.once(name="size")(len)
    with pytest.raises(ValueError, match="name of its own"):
        effects.once(name="size")(abs)
    with pytest.raises(TypeError, match="generator"):
        effects.once(name="items")(lambda: (yield))


async def test_similar_calls_are_asked_about(effects):
    """Within the window a nearly identical call is a question; `again` answers it; a call that did not happen is forgotten."""
    sent = []

    @effects.once(similar=600)
    async def send(to, text):
        sent.append(text)
        if text == "refused":
            raise ValidationError("refused")

    await send("ann", "Dear Ann, the order 17 is ready.")
    with pytest.raises(SimilarError) as asked:
        await send("Ann", "dear ann! The order 17 is  ready")
    assert asked.value.fault.executed == "no"
    assert "again=" in str(asked.value)
    await send("Ann", "dear ann! The order 17 is  ready", again="she asked for it once more")
    await send("ann", "Dear Ann, the order 18 is ready.")
    await send("bob", "Dear Bob, the order 17 is ready.")
    with pytest.raises(ValidationError):
        await send("eve", "refused")
    with effects.scope("other"):
        await send("ann", "Dear Ann, the order 17 is ready!")
    assert len(sent) == 6

    @effects.once(key="number", similar=Similar(within=600, on=("amount",)))
    async def pay(number, amount):
        return number

    assert await pay(1, 5) == await pay(1, 5) == 1
    with pytest.raises(SimilarError):
        await pay(2, 5)
    assert await pay(2, 5, again="another invoice") == 2
    assert await pay(3, 6) == 3
    with pytest.raises(TypeError, match="similar"):
        effects.once(similar="often")(lambda a: a)


async def test_objects_with_a_coroutine_as_their_call(effects):
    """An object whose `__call__` is a coroutine function is awaited inside the ledger."""

    class Pay:
        async def __call__(self, order):
            await asyncio.sleep(0)
            raise RateLimitedError("Slow down", retry_after=1)

    pay = effects.once(key="order", name="pay")(Pay())
    with pytest.raises(RateLimitedError):
        await pay(1)
    assert await effects.alist() == []


def test_a_plain_function_that_returns_a_coroutine():
    """Its effect would happen after the ledger recorded it, so it is in doubt and not done."""
    effects, paid = Effects("memory:"), []

    async def work(order):
        paid.append(order)

    pay = effects.once(key="order", name="pay")(lambda order: work(order))
    with pytest.raises(InDoubtError) as doubt:
        pay(1)
    assert isinstance(doubt.value.__cause__, TypeError)
    assert (paid, effects.get("pay:1").state) == ([], "doubt")


@pytest.mark.parametrize("kind", [classmethod, staticmethod])
def test_methods_are_decorated_below(kind):
    """`once` above `@classmethod` could not be called, and is refused where it is written."""
    with pytest.raises(TypeError, match=f"write @{kind.__name__} above"):
        Effects("memory:").once(kind(lambda order: order))


def test_an_object_with_a_generator_as_its_call():
    """As a generator function, it has no single outcome."""

    class Pay:
        def __call__(self, order):
            yield order

    with pytest.raises(TypeError, match="no single outcome"):
        Effects("memory:").once(name="pay")(Pay())


@pytest.mark.parametrize("key", ["", 17])
def test_an_empty_key_is_refused(key):
    """Calls with an empty key, such as an unset variable, would share it."""
    with pytest.raises(ValidationError) as refused:
        Effects("memory:").call("pay", lambda: 1, {"order": 17}, key=key)
    assert (refused.value.fault.field, refused.value.fault.executed) == ("key", "no")


def test_an_interrupted_verify_leaves_a_doubt():
    """Ctrl-C while `verify` runs: the next caller gets the question at once, and does not wait for the lease."""
    effects = Effects("memory:", wait=0.01)

    def find(order):
        raise KeyboardInterrupt

    @effects.once(key="order", verify=find)
    def pay(order):
        raise TimeoutError

    with pytest.raises(KeyboardInterrupt):
        pay(1)
    assert effects.get("pay:1").state == "doubt"


@pytest.mark.parametrize("wait", [-1, float("nan"), "60", True])
def test_a_wrong_wait_is_refused(wait):
    """At once, and not when two calls meet for the first time."""
    with pytest.raises((TypeError, ValueError), match="wait"):
        Effects("memory:", wait=wait)


@pytest.mark.parametrize("plain", [True, False])
async def test_a_verify_that_hangs_has_found_out_nothing(plain, caplog):
    """It has the time of a lease; then the effect is in doubt, and the caller goes on."""
    effects = Effects("memory:", lease=0.1)
    ended = threading.Event()

    def find(order):
        ended.wait(60)

    def lost(order):
        raise TimeoutError

    async def alost(order):
        raise TimeoutError

    try:
        pay = effects.once(key="order", verify=find, name="pay")(lost if plain else alost)
        with pytest.raises(InDoubtError):
            pay(1) if plain else await pay(1)
        assert effects.get("pay:1").state == "doubt"
    finally:
        ended.set()
    assert "verify hook failed" in caplog.text


def test_a_class_is_refused():
    """A class has no single outcome, and would become a function."""
    with pytest.raises(TypeError, match="Order is a class"):
        Effects("memory:").once(Order)


@pytest.mark.parametrize("lazy", [lambda: (each for each in "a"), lambda: asyncio.sleep(0)])
async def test_a_result_that_runs_later_is_refused(lazy):
    """Its effect would happen after the record says that it did; what the function did before is not known."""
    effects = Effects("memory:")

    @effects.once(name="plain")
    def plain():
        return lazy()

    @effects.once(name="later")
    async def later():
        return lazy()

    for call in (lambda: asyncio.to_thread(plain), later):
        with pytest.raises(InDoubtError) as doubt:
            await call()
        assert isinstance(doubt.value.__cause__, TypeError)


def test_names_of_tools_and_keys_do_not_run_into_each_other():
    """The key "a:b" of one tool is not the key "b" of a tool named with a colon."""
    effects = Effects("memory:")
    assert effects.call("pay", lambda: 1, {}, key="a:b") == 1
    assert effects.call("pay:a", lambda: 2, {}, key="b") == 2
    assert effects.call("pay%3Aa", lambda: 3, {}, key="b") == 3


def test_a_positional_argument_and_a_keyword_of_the_same_name():
    """Both count for the key: two calls that differ in one of them are two calls."""
    effects, calls = Effects("memory:"), []

    @effects.once
    def send(text, /, **headers):
        calls.append((text, headers))

    for text, header in ((1, 2), (3, 2), (1, 4)):
        send(text, text=header)
    assert len(calls) == 3


def test_texts_that_a_store_refuses():
    """A reason and a scope with a lone surrogate, as JSON parsers produce them."""
    effects = Effects("memory:")

    @effects.once
    def order(item):
        return item

    with effects.scope("task \ud800"):
        assert order("tea") == order("tea", again="\ud800") == "tea"


async def test_a_caller_that_is_cancelled_while_another_process_has_the_lock(tmp_path):
    """The store completes the claim after the cancellation; it is withdrawn then, so the next call runs. A doubt stays."""
    shop, path = Shop(), tmp_path / "effects.db"
    with sqlite3.connect(path, isolation_level=None) as other:
        async with Effects(f"sqlite:///{path}") as effects:

            @effects.once(key=lambda order: order.number)
            async def pay(order):
                return await shop.pay(order)

            @effects.once(key="number", verify=lambda number: None)
            async def refund(number):
                raise ConnectionResetError

            async def cancel(call):
                other.execute("BEGIN IMMEDIATE")
                calling = asyncio.ensure_future(call)
                # The claim is being written and waits for the lock. There is no event for that.
                await asyncio.sleep(0.2)
                calling.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await calling
                other.execute("COMMIT")

            await pay(Order(0))
            await cancel(pay(Order(1)))
            assert shop.paid == [Order(0)]
            assert await asyncio.wait_for(pay(Order(1)), 20) == {"receipt": 2}

            with pytest.raises(InDoubtError):
                await refund(1)
            await cancel(refund(1))
            with pytest.raises(InDoubtError):
                await asyncio.wait_for(refund(1), 20)
            assert [each.key async for each in effects.pending()] == ["refund:1"]
