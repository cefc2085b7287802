"""
Each backend compared with a plain model, with sequences of calls that Hypothesis generates.

The model is deliberately simple (lists and dicts, a few lines each). It has no time, so delays and leases are either zero
or endless; other tests cover time.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from amends import stores
from amends.stores import Bounds, ConflictError, LeaseLostError, TrimmedError
from tests.stores.backends import backends, new_database

_numbers = itertools.count()

names = st.sampled_from(["a", "b.c", "ü x"])
keys = st.sampled_from(["k", "k/1", "k/2", "", "*", "long" * 300])
values = st.binary(max_size=20)


class StoreMachine(RuleBasedStateMachine):
    """The calls, the model beside them, and the comparison after each."""

    transactions = False

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.logs, self.rows, self.queues = {}, {}, {}
        self.leases = []
        self.dead = {}
        self.revisions = {}

    def do(self, awaitable):
        async def wrapped():
            return await awaitable

        return self.runner.run(wrapped())

    @initialize()
    def open(self):
        self.store = self.do(stores.open(self.url()))

    def url(self):
        raise NotImplementedError

    def teardown(self):
        if hasattr(self, "store"):
            self.do(self.store.close())
        self.runner.close()

    # -- log

    def log_model(self, name):
        return self.logs.setdefault(name, {"first": 1, "last": 0, "entries": {}})

    @rule(name=names, value=values, dedupe=st.none() | keys)
    def append(self, name, value, dedupe):
        model = self.log_model(name)
        seq = self.do(self.store.log(name).append(value, dedupe=dedupe))
        known = [s for s, (_, d) in model["entries"].items() if dedupe is not None and d == dedupe]
        if known:
            assert seq == known[0]
            return
        if dedupe is not None and dedupe in model.get("trimmed", ()) and seq <= model["last"]:
            return  # NATS remembers an id for its window, also of an entry that was trimmed
        model["last"] += 1
        assert seq == model["last"]
        model["entries"][seq] = (value, dedupe)

    @rule(name=names, value=values, off=st.integers(-1, 1))
    def append_after(self, name, value, off):
        model = self.log_model(name)
        expected = max(0, model["last"] + off)
        try:
            seq = self.do(self.store.log(name).append(value, last=expected))
        except ConflictError:
            assert expected != model["last"]
        else:
            assert expected == model["last"]
            model["last"] = seq
            model["entries"][seq] = (value, None)

    @rule(name=names, before=st.integers(0, 12))
    def trim(self, name, before):
        model = self.log_model(name)
        model["first"] = max(model["first"], min(before, model["last"] + 1))
        assert self.do(self.store.log(name).trim(before)) == model["first"]
        gone = [seq for seq in model["entries"] if seq < model["first"]]
        model.setdefault("trimmed", set()).update(
            d for s in gone for d in [model["entries"].pop(s)[1]] if d is not None
        )

    @rule(name=names, start=st.none() | st.integers(1, 15), limit=st.integers(1, 5))
    def read(self, name, start, limit):
        model = self.log_model(name)
        begin = model["first"] if start is None else start
        try:
            entries = self.do(self.store.log(name).read(start, limit=limit))
        except TrimmedError as error:
            assert begin < model["first"] == error.first  # noqa: PT017
            return
        assert begin >= model["first"]
        expected = [
            (s, *model["entries"][s]) for s in range(begin, min(model["last"], begin + limit - 1) + 1)
        ]
        assert [(e.seq, e.value, e.dedupe) for e in entries] == expected

    @rule(name=names)
    def bounds(self, name):
        model = self.log_model(name)
        assert self.do(self.store.log(name).bounds()) == Bounds(model["first"], model["last"])

    # -- table

    @rule(name=names, key=keys, value=values, condition=st.sampled_from(["none", "right", "stale", "absent"]))
    def put(self, name, key, value, condition):
        held = self.rows.get((name, key))
        revision = {"none": None, "absent": 0, "right": held[1] if held else 0, "stale": 10**6}[condition]
        try:
            new = self.do(self.store.table(name).put(key, value, revision=revision))
        except ConflictError as error:
            assert revision is not None
            assert revision != (held[1] if held else 0)
            assert error.actual == (held[1] if held else 0)  # noqa: PT017
            return
        assert revision in {None, held[1] if held else 0}
        assert new > self.revisions.get((name, key), 0)
        self.revisions[name, key] = new
        self.rows[name, key] = (value, new)

    @rule(name=names, key=keys, conditional=st.booleans(), stale=st.booleans())
    def delete(self, name, key, conditional, stale):
        held = self.rows.get((name, key))
        revision = None
        if conditional:
            revision = 10**6 if stale or not held else held[1]
        try:
            found = self.do(self.store.table(name).delete(key, revision=revision))
        except ConflictError:
            assert conditional
            assert stale or not held
            return
        assert found == (held is not None)
        self.rows.pop((name, key), None)

    @rule(name=names, key=keys)
    def get(self, name, key):
        row = self.do(self.store.table(name).get(key))
        assert (None if row is None else (row.value, row.revision)) == self.rows.get((name, key))

    @rule(name=names, prefix=st.sampled_from(["", "k", "k/", "*", "none"]))
    def scan(self, name, prefix):
        async def collect():
            return {row.key: (row.value, row.revision) async for row in self.store.table(name).scan(prefix)}

        expected = {k: v for (n, k), v in self.rows.items() if n == name and k.startswith(prefix)}
        assert self.do(collect()) == expected

    # -- queue

    def queue(self, name):
        return self.store.queue(name, lease=3600, max_attempts=3)

    def queue_model(self, name):
        return self.queues.setdefault(name, [])

    @rule(name=names, value=values, key=st.none() | keys, later=st.booleans())
    def queue_put(self, name, value, key, later):
        model = self.queue_model(name)
        put = self.do(self.queue(name).put(value, key=key, delay=3600 if later else 0))
        assert put == (key is None or all(message["key"] != key for message in model))
        if put:
            model.append(
                {"value": value, "key": key, "later": later, "held": False, "attempts": 0, "epoch": 0}
            )

    @rule(name=names)
    def queue_take(self, name):
        model = self.queue_model(name)
        free = [message for message in model if not message["held"] and not message["later"]]
        spent = [message for message in free if message["attempts"] >= 3]
        lease = self.do(self.queue(name).take(wait=2.0 if len(free) > len(spent) else 0.0))
        if lease is None:
            assert len(free) == len(spent)
            dead_now = spent
        else:
            (message,) = [m for m in free if m["epoch"] < lease.epoch and self.same(m, lease)][:1]
            assert message not in spent
            message.update(held=True, attempts=lease.attempt, epoch=lease.epoch)
            self.leases.append((name, lease, message))
            dead_now = []
        for message in dead_now:
            model.remove(message)
            self.dead.setdefault(name, []).append(message["value"])
        if lease is not None and spent:
            # The store dead-lettered the spent messages it came across; only it knows which.
            dead = [letter.value for letter in self.do(self.queue(name).dead())]
            for message in spent:
                known = self.dead.setdefault(name, [])
                if dead.count(message["value"]) > known.count(message["value"]):
                    model.remove(message)
                    known.append(message["value"])

    @staticmethod
    def same(message, lease):
        expected = (message["value"], message["key"], message["attempts"] + 1)
        return expected == (lease.value, lease.key, lease.attempt)

    @precondition(lambda self: self.leases)
    @rule(
        how=st.sampled_from(["done", "back", "later", "dead", "extend"]),
        where=st.sampled_from(["lease", "transaction", "fails"]),
        data=st.data(),
    )
    def queue_end(self, how, where, data):
        name, lease, message = data.draw(st.sampled_from(self.leases))
        valid = message["held"] and message["epoch"] == lease.epoch
        try:
            if not self.transactions or where == "lease" or how == "extend":
                self.do(
                    {
                        "done": lease.done,
                        "back": lease.give_back,
                        "later": lambda: lease.give_back(delay=3600),
                        "dead": lambda: lease.dead_letter("model"),
                        "extend": lease.extend,
                    }[how]()
                )
            else:
                self.do(
                    self.store.transaction(lambda tx: self.end_in(tx, lease, how, fails=where == "fails"))
                )
        except LeaseLostError:
            assert not valid
            return
        except KeyError:
            assert where == "fails"
            return
        assert valid
        if how == "extend":
            return
        message["held"] = False
        model = self.queue_model(name)
        if how == "later":
            message["later"] = True
        if how in {"done", "dead"}:
            model.remove(message)
            message["epoch"] = -1
        if how == "dead":
            self.dead.setdefault(name, []).append(message["value"])

    @staticmethod
    def end_in(tx, lease, how, *, fails):
        if how == "done":
            tx.done(lease)
        elif how == "dead":
            tx.dead_letter(lease, "model")
        else:
            tx.give_back(lease, delay=3600 if how == "later" else 0)
        if fails:
            raise KeyError("on purpose")

    @rule(name=names)
    def queue_list(self, name):
        model = self.queue_model(name)
        size = self.do(self.queue(name).size())
        leased = sum(message["held"] for message in model)
        delayed = sum(message["later"] and not message["held"] for message in model)
        assert (size.ready, size.delayed, size.leased) == (len(model) - leased - delayed, delayed, leased)
        letters = self.do(self.queue(name).dead())
        assert sorted(letter.value for letter in letters) == sorted(self.dead.get(name, []))

    # -- all

    @rule()
    def reopen(self):
        # Held messages stay held, by leases of the closed store that cannot be used any more.
        self.leases = []
        self.do(self.store.close())
        self.store = self.do(stores.open(self.opened))

    @precondition(lambda self: self.transactions)
    @rule(name=names, value=values, fails=st.booleans())
    def transact(self, name, value, fails):
        def work(tx):
            seq = tx.log(name).append(value)
            revision = tx.table(name).put("k", value)
            put = tx.queue(name).put(value, key="k")
            if fails:
                raise KeyError("on purpose")
            return seq, revision, put

        try:
            seq, revision, put = self.do(self.store.transaction(work))
        except KeyError:
            assert fails
            return
        model = self.log_model(name)
        model["last"] += 1
        model["entries"][seq] = (value, None)
        assert seq == model["last"]
        self.rows[name, "k"] = (value, revision)
        self.revisions[name, "k"] = revision
        queue = self.queue_model(name)
        assert put == all(message["key"] != "k" for message in queue)
        if put:
            queue.append(
                {"value": value, "key": "k", "later": False, "held": False, "attempts": 0, "epoch": 0}
            )


class MemoryMachine(StoreMachine):
    transactions = True

    def url(self):
        self.opened = f"memory:model-{next(_numbers)}"
        return self.opened


class SqliteMachine(StoreMachine):
    transactions = True

    def url(self):
        self.directory = tempfile.mkdtemp()
        self.opened = f"sqlite:///{self.directory}/store.db?synchronous=normal"
        return self.opened

    def teardown(self):
        super().teardown()
        shutil.rmtree(self.directory, ignore_errors=True)


class PostgresMachine(StoreMachine):
    transactions = True

    def url(self):
        self.opened = new_database()
        return self.opened


def nats_machine(server):
    class NatsMachine(StoreMachine):
        def url(self):
            self.opened = f"{server.url}/model-{next(_numbers)}?storage=memory"
            return self.opened

        def teardown(self):
            if hasattr(self, "store"):
                for kind, found in self.do(self.store.names()).items():
                    for name in found:
                        self.do(getattr(self.store, kind.removesuffix("s"))(name).drop())
            super().teardown()

    return NatsMachine


def examples(**numbers):
    """The number of examples for each backend that runs here."""
    names = backends(*(name for name in numbers if name != "postgres"))
    return [(name, numbers[name]) for name in names]


def check(machine, examples, steps):
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("backend", "examples"), examples(memory=60, sqlite=25, nats=8, postgres=15))
def test_backends_match_the_model(backend, examples, request):
    check(machine(backend, request), examples, 30)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("backend", "examples"), examples(memory=1000, sqlite=400, nats=100, postgres=200))
def test_backends_match_the_model_in_a_long_run(backend, examples, request):
    check(machine(backend, request), examples, 60)


def machine(backend, request):
    if backend == "nats":
        return nats_machine(request.getfixturevalue("nats_server"))
    return {"memory": MemoryMachine, "sqlite": SqliteMachine, "postgres": PostgresMachine}[backend]
