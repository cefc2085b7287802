"""Cases specific to NATS: servers killed and restarted, clusters that lose a node, messages that are too large."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import time
import warnings

import pytest

from amends import stores
from amends.effects import Effects
from amends.effects.errors import InDoubtError, LedgerUnavailableError
from amends.stores import ConflictError, LeaseLostError, StoreUnavailableError, ValueTooLargeError
from amends.stores.nats import retried_sends, scan
from amends.stores.nats.deliveries import Deliveries
from amends.stores.nats.subjects import from_header, key_filters, key_subject, token
from tests.stores.clocks import SetClock
from tests.stores.odd import ODD_KEYS
from tests.stores.servers import NatsCluster, NatsServer


class Work:
    """Writers, workers and a follower on one store, and the results they got; `verify` checks them at the end."""

    def __init__(self, url, lease):
        self.url = url
        self.lease = lease
        self.running = True
        self.appended = {}
        self.puts = {}
        self.put = set()
        self.finishing = set()
        self.finished = {}
        self.twice = []
        self.held = {}
        self.followed = []
        self.unavailable = 0
        self.lost = 0

    async def append(self, store, i):
        n = 0
        while self.running:
            id = f"{i}-{n}"
            n += 1
            try:
                self.appended[await store.log("l").append(id.encode())] = id
            except StoreUnavailableError:
                self.unavailable += 1

    async def set(self, store, i):
        n, revision = 0, 0
        while self.running:
            n += 1
            try:
                revision = await store.table("t").put(f"k{i}", b"%d" % n, revision=revision)
            except StoreUnavailableError:
                self.unavailable += 1
                row = await store.table("t").get(f"k{i}")
                revision = row.revision if row else 0
            self.puts[f"k{i}"] = (n, revision)

    async def produce(self, store, i):
        n = 0
        while self.running:
            id = f"{i}-{n}"
            n += 1
            try:
                await store.queue("q", lease=self.lease).put(id.encode())
                self.put.add(id)
            except StoreUnavailableError:
                self.unavailable += 1
            await asyncio.sleep(0.01)

    async def consume(self, store, i):
        rng = random.Random(i)
        queue = store.queue("q", lease=self.lease)
        while self.running:
            try:
                lease = await queue.take(wait=0.5)
                if lease is None:
                    continue
                now = time.monotonic()
                until, epoch = self.held.get(lease.id, (0, 0))
                # Another worker's lease has not expired by its own count, and yet this one got the message.
                if until > now or lease.epoch <= epoch:
                    self.twice.append((lease.id, until - now, epoch, lease.epoch))
                id = lease.value.decode()
                if id in self.finished:
                    self.twice.append((id, "after it was finished"))
                self.held[lease.id] = (now + lease.expires_in, lease.epoch)
                await asyncio.sleep(rng.random() * 0.03)
                if rng.random() < 0.1:
                    await asyncio.sleep(self.lease * 1.3)  # longer than the lease
                if rng.random() < 0.1:
                    self.held[lease.id] = (0, lease.epoch)
                    await lease.give_back()
                else:
                    self.finishing.add(id)
                    await lease.done()
                    self.held[lease.id] = (0, lease.epoch)
                    self.finished[id] = lease.epoch
            except LeaseLostError:
                self.lost += 1
            except StoreUnavailableError:
                self.unavailable += 1

    async def follow(self, store):
        start = 1
        while self.running:
            try:
                async for entry in store.log("l").follow(start):
                    assert entry.seq == start
                    self.followed.append((entry.seq, entry.value.decode()))
                    start += 1
            except StoreUnavailableError:
                self.unavailable += 1

    async def run(self, disturb):
        opened = [await stores.open(self.url) for _ in range(2)]
        one, two = opened
        tasks = [
            asyncio.ensure_future(work)
            for work in (
                self.append(one, 0),
                self.append(two, 1),
                self.set(one, 0),
                self.set(two, 1),
                self.produce(one, 0),
                self.consume(one, 0),
                self.consume(two, 1),
                self.consume(two, 2),
            )
        ]
        follower = asyncio.ensure_future(self.follow(two))
        await disturb()
        async with asyncio.timeout(100):
            # Until there is enough to check, however slow the machine is.
            while len(self.appended) <= 50 or len(self.finished) <= 10:
                await asyncio.sleep(0.05)
        self.running = False
        await asyncio.wait_for(asyncio.gather(*tasks), 100)
        await self.verify(one, follower)
        for store in opened:
            await store.close()

    async def verify(self, store, follower):
        bounds = await store.log("l").bounds()
        end = time.monotonic() + 100
        while len(self.followed) < bounds.last and time.monotonic() < end:
            await asyncio.sleep(0.05)
        follower.cancel()
        followed = dict(self.followed)
        assert list(followed) == list(range(1, bounds.last + 1)), "the follower saw a gap"
        for seq, id in self.appended.items():
            assert followed[seq] == id, "an acknowledged entry is lost"
        values = list(followed.values())
        assert len(set(values)) == len(values), "an entry was appended twice"
        for key, (_, revision) in self.puts.items():
            assert (await store.table("t").get(key)).revision >= revision, "an acknowledged put is lost"
        assert not self.twice, "a message had two live holders, or was delivered after it was finished"
        left = {message.value.decode() async for message in store.queue("q", lease=self.lease).messages()}
        assert self.put - self.finishing <= left, "an acknowledged message is lost"
        assert not left & set(self.finished), "a finished message is back"
        end = time.monotonic() + 100
        while (problems := await store.check()) and time.monotonic() < end:
            await asyncio.sleep(0.2)  # a node that was down has to catch up first
        assert problems == []


async def kill_again_and_again(server, times, rng):
    for _ in range(times):
        await asyncio.sleep(rng.uniform(0.2, 0.8))
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(rng.uniform(0, 0.2))
        await asyncio.to_thread(server.start)
    await asyncio.sleep(1)


@pytest.fixture(autouse=True)
def collect_sockets():
    """nats-py leaves the half-open socket of a failed reconnect unclosed; ignore its ResourceWarning."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def killing(tmp_path, times, seed):
    server = NatsServer(tmp_path / "server")
    await asyncio.to_thread(server.start)
    try:
        work = Work(f"{server.url}/kills?timeout=20", lease=1.0)
        await work.run(lambda: kill_again_and_again(server, times, random.Random(seed)))
    finally:
        server.stop()
    return work


async def test_a_server_killed_and_restarted(tmp_path):
    """Four kills here, a hundred in the soak run."""
    await killing(tmp_path, 4, 3)


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_a_hundred_server_kills(tmp_path):
    start = time.monotonic()
    work = await killing(tmp_path, 100, 4)
    print(
        f"100 kills in {time.monotonic() - start:.0f} s: {len(work.appended)} appends, {len(work.put)} messages put, "
        f"{len(work.finished)} finished, {work.lost} leases lost, {work.unavailable} times unavailable"
    )


async def test_a_server_that_is_down_too_long_raises_and_recovers_when_it_is_back(tmp_path):
    server = NatsServer(tmp_path / "server")
    await asyncio.to_thread(server.start)
    async with await stores.open(f"{server.url}/away?timeout=100") as store:
        await store.log("l").append(b"1")
    async with await stores.open(f"{server.url}/away?timeout=0.8") as store:
        server.kill()
        with pytest.raises(StoreUnavailableError):
            await store.log("l").append(b"2")
        with pytest.raises(StoreUnavailableError):
            await store.table("t").get("k")
        await asyncio.to_thread(server.start)
        end = time.monotonic() + 100
        while True:
            try:
                await store.log("l").append(b"3")
                assert [e.value for e in await store.log("l").read()][-1] == b"3"
                break
            except StoreUnavailableError:
                assert time.monotonic() < end
    server.stop()


async def test_a_value_larger_than_the_server_takes(nats_server):
    async with await stores.open(f"{nats_server.url}/large") as store:
        for write in (
            store.log("l").append(bytes(1_048_576)),
            store.table("t").put("k", bytes(1_048_576)),
            store.queue("q").put(bytes(1_048_576)),
        ):
            with pytest.raises(ValueTooLargeError) as caught:
                await write
            assert caught.value.limit < 1_048_576
        assert await store.log("l").append(bytes(1_000_000)) == 1


async def test_requests_above_the_limit_in_flight_wait(nats_server):
    """Far more concurrent writes than may be in flight, of a size that would fill buffers."""
    async with await stores.open(f"{nats_server.url}/pressure?timeout=100") as store:
        seqs = await asyncio.gather(*(store.log("l").append(bytes(20_000)) for _ in range(3000)))
        assert sorted(seqs) == list(range(1, 3001))


async def test_a_cluster_that_loses_a_node(tmp_path):
    """With three replicas any one node may fail, also the leader, and nothing acknowledged is lost."""
    cluster = NatsCluster(tmp_path)
    await asyncio.to_thread(cluster.start)
    try:
        url = cluster.url("c")
        end = time.monotonic() + 100
        while True:
            try:
                async with await stores.open(url) as store:
                    assert await store.log("first").append(b"x") == 1
                break
            except stores.StoreError:
                assert time.monotonic() < end

        async def lose_nodes():
            for node in cluster.nodes[:2]:
                await asyncio.sleep(0.5)
                await asyncio.to_thread(node.kill)
                await asyncio.sleep(1)
                await asyncio.to_thread(node.start)
                await asyncio.sleep(0.5)

        await Work(url, lease=3.0).run(lose_nodes)
    finally:
        cluster.stop()


@pytest.mark.parametrize("seconds", [10.0, 0.3])
async def test_a_cluster_that_is_forming_or_too_small(nats_server, monkeypatch, seconds):
    """It finds no server for a new stream at first, and finds one a moment later; if not, the error says what to check."""
    async with await stores.open(f"{nats_server.url}/peers{round(seconds)}?timeout={seconds}") as store:
        connection = store._streams.connection
        request, refused = connection.request, []

        async def refusing(subject, *given, **more):
            answer = await request(subject, *given, **more)
            if ".STREAM.CREATE." in subject and (not refused or seconds < 1.0):
                error = {"code": 400, "err_code": 10005, "description": "no suitable peers for placement"}
                answer.data = json.dumps({"error": error}).encode()
                refused.append(subject)
            return answer

        monkeypatch.setattr(connection, "request", refusing)
        if seconds > 1.0:
            assert await store.log("l").append(b"1") == 1
            assert len(refused) == 1
        else:
            with pytest.raises(stores.StoreUnavailableError, match="as many servers as replicas"):
                await store.log("l").append(b"1")


def test_subjects_are_unique_per_text():
    texts = {*ODD_KEYS, "", "=", "==", "a", "A", "a/", "=2E", "k" * 2999, *("/" * n for n in range(1, 12))}
    for encode in (token, key_subject):
        subjects = [encode(text) for text in texts]
        assert len(set(subjects)) == len(texts)
        for subject in subjects:
            assert len(subject) < 600
            assert not set(subject) & set(" \t\n\r*>\0")
            assert "" not in subject.split(".")


def test_filters_cover_every_key_with_the_prefix():
    def matches(subject, pattern):
        return subject.startswith(pattern.removesuffix(">"))

    for key in [*ODD_KEYS, "a/b/c", "a/b/c/d/e/f/g/h/i/j"]:
        for cut in range(min(len(key), 700)):
            assert any(matches(key_subject(key), pattern) for pattern in key_filters(key[:cut])), (key, cut)


def test_headers_hold_any_text():
    from amends.stores.nats.subjects import as_header

    for text in ODD_KEYS:
        assert from_header(as_header(text)) == text
        assert as_header(text).isascii()
        assert as_header(text).isprintable()


async def test_a_finished_message_is_removed_though_its_acknowledgement_is_lost(nats_server, monkeypatch):
    """No caller waits for the removal of a message without a key; it is sent again until it succeeds."""
    monkeypatch.setattr(retried_sends, "_RESEND_AFTER", 0.05)
    async with await stores.open(f"{nats_server.url}/retried") as store:
        queue = store.queue("q", lease=60)
        connection = queue.connection
        send, lost = connection.send, []

        async def lose_the_first(subject, payload, reply, headers):
            if payload == b"+ACK" and not lost:
                lost.append(subject)
                return True
            return await send(subject, payload, reply, headers)

        monkeypatch.setattr(connection, "send", lose_the_first)
        await queue.put(b"x")
        await (await queue.take(wait=5)).done()
        assert lost
        # A finished message is not listed any more, before the server has removed it.
        assert (await queue.size()).ready == (await queue.size()).leased == 0
        async with asyncio.timeout(100):
            while (await queue.streams.info("queue", "q"))["state"]["messages"]:
                await asyncio.sleep(0.02)
            while any(
                isinstance(replies, retried_sends._RetriedSend) for replies in connection.pending.values()
            ):
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("machine", ["first boot", "another machine"])
@pytest.mark.parametrize("days", [-1, 1])
async def test_no_clock_of_a_server_ends_the_lease_of_a_message(nats_server, monkeypatch, days, machine):
    """A server whose clock is a day wrong delivers again what a worker still has: no other one gets it before its lease is over."""
    url = f"{nats_server.url}/clocks-{days + 1}-{len(machine)}"
    async with await stores.open(url) as first, await stores.open(url) as second:
        first.clock, second.clock = SetClock(), SetClock()
        second.clock.booted = machine
        monkeypatch.setattr(second._streams.connection.clock, "now", wrong_clock(days))
        await first.queue("q", lease=30).put(b"x")
        held = await first.queue("q", lease=30).take(wait=5)
        queue = second.queue("q", lease=30)
        returned = []

        async def return_at_once(message, delay):
            returned.append(delay)
            await queue.connection.publish(message.reply, b"-NAK")

        monkeypatch.setattr(queue, "_return", return_at_once)
        # As a server does that was killed, and has forgotten to whom it delivered the message.
        await held._queue.connection.publish(held._message.reply, b"-NAK")
        assert await queue.take(wait=0.5) is None
        assert returned
        assert set(returned) == {30.0}
        assert (await queue.size()).leased == 1
        second.clock.up += 29
        assert await queue.take(wait=0.2) is None
        second.clock.up += 1
        taken = await queue.take(wait=5)
        assert (taken.value, taken.attempt) == (b"x", 2)
        with pytest.raises(LeaseLostError):
            await held.done()
        await taken.done()


@pytest.mark.parametrize("days", [-1, 1])
async def test_no_clock_of_a_replica_lets_an_effect_happen_again(nats_server, monkeypatch, days):
    """A server whose clock is a day wrong answers: what is kept for hours is still there, and is not created again."""
    url = f"{nats_server.url}/kept-{days + 1}"
    async with await stores.open(url) as first, await stores.open(url) as second:
        revision = await first.table("t").create("key", b"done", expires_in=3600)
        monkeypatch.setattr(second._streams.connection.clock, "now", wrong_clock(days))
        table = second.table("t")
        row = await table.get("key")
        assert (row.value, row.revision) == (b"done", revision)
        assert 0 < row.expires_in <= 3600
        with pytest.raises(ConflictError):
            await table.create("key", b"again", expires_in=3600)
        assert [row.key async for row in table.scan()] == ["key"]
        calls = []
        for store in (first, second):
            async with Effects(store) as effects:
                paid = effects.once(lambda order: calls.append(order) or "paid", key="order", expires_in=3600)
                assert await asyncio.to_thread(paid, 17) == "paid"
        assert calls == [17]


def wrong_clock(days):
    """Return a clock of a server that is so many days wrong."""

    async def now(_):
        return time.time() + days * 86_400

    return now


async def test_a_retried_send_ends_after_the_timeout(nats_server, monkeypatch):
    monkeypatch.setattr(retried_sends, "_RESEND_AFTER", 0.05)
    async with await stores.open(f"{nats_server.url}/retried-2?timeout=0.3") as store:
        connection = store.queue("q").connection

        async def lose(*_):
            return True

        monkeypatch.setattr(connection, "send", lose)
        await connection.retried_sends.send("unserved", b"")
        assert connection.pending
        async with asyncio.timeout(100):
            while connection.pending:
                await asyncio.sleep(0.02)
        monkeypatch.undo()


async def test_a_check_during_writes(nats_server):
    """Appends, trims and drops between two reads are not reported as damage; a missing message is."""
    async with await stores.open(f"{nats_server.url}/busy") as store:
        await store.log("g/torn").append(b"1")
        await store.log("g/torn").append(b"2")
        await store.log("g/torn").append(b"3")

        async def busy(number):
            log = store.log(f"g/{number}")
            while True:
                for _ in range(3):
                    await log.append(b"x")
                await log.trim((await log.bounds()).last)
                await log.drop()

        writing = [asyncio.ensure_future(busy(number)) for number in range(12)]
        for _ in range(15):
            assert await store.check() == []
        # Delete the second of the log's three messages.
        streams = store._streams
        stream = streams.stream("logs", "g")
        await streams.connection.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 2})
        found = await store.check()
        assert found == ["log 'g/torn' should contain 3 entries, but contains 2"]
        for task in writing:
            task.cancel()
        await asyncio.wait(writing)


@pytest.mark.parametrize("during", ["_send_unsubscribe", "flush"])  # both are steps of nats-py's drain
async def test_a_message_put_while_a_waiting_store_closes_goes_to_the_next(nats_server, monkeypatch, during):
    """A delivery to the closing store is returned to the server; after that nothing is delivered to it."""
    url = f"{nats_server.url}/goes{during.strip('_')}"
    async with await stores.open(url) as store:
        queue, leaving = store.queue("q", lease=300), await stores.open(url)
        waiting = asyncio.ensure_future(leaving.queue("q", lease=300).take(wait=100))
        await queue._prepare()
        consumer = f"CONSUMER.INFO.{store._streams.stream('queue', 'q')}.workers"
        async with asyncio.timeout(100):
            while not (await queue.connection.api(consumer))["num_waiting"]:
                await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        client = leaving._streams.connection.client
        real, put = getattr(client, during), []

        async def meanwhile(*given, **more):
            if not put:
                put.append(await queue.put(b"x"))
            return await real(*given, **more)

        monkeypatch.setattr(client, during, meanwhile)
        await leaving.close()
        assert put == [True]
        lease = await queue.take(wait=100)
        assert (lease.value, lease.attempt) == (b"x", 1)
        await lease.done()


async def test_a_scan_includes_what_was_acknowledged(nats_server):
    """A replica that lags is asked again."""
    async with await stores.open(f"{nats_server.url}/waits") as store:
        await _check_scan(store.table("t"), store._streams)


async def _check_scan(table, streams):
    await table.put("a/1", b"1")
    base = streams.subject("table", "t")
    barrier = await scan._write_barrier(streams, "table", "t")
    for prefix, expected in ((".k.>", 1), (".k.no.>", 0)):
        filters = [base + prefix, base + scan._BARRIER]
        assert len(await scan._read_direct(streams, "table", "t", filters, barrier)) == expected
        # A replica that has not got the barrier is asked again, also if it has nothing at all.
        behind = asyncio.ensure_future(scan._read_direct(streams, "table", "t", filters, barrier + 1))
        await asyncio.sleep(0.2)
        assert not behind.done()
        barrier = await scan._write_barrier(streams, "table", "t")
        async with asyncio.timeout(60):
            assert len(await behind) == expected
    assert [row.key async for row in table.scan()] == ["a/1"]


async def test_a_scan_larger_than_one_reply(nats_server, monkeypatch):
    """Many rows or large ones are read through a consumer; an empty table yields none."""
    monkeypatch.setattr(scan, "PAGE_BYTES", 1_000_000)
    async with await stores.open(f"{nats_server.url}/much") as store:
        await _check_large_scan(store)


async def _check_large_scan(store):
    table = store.table("t")
    await asyncio.gather(*(table.put(f"many/{number:04}", b"x") for number in range(1030)))
    for number in range(4):
        await table.put(f"large/{number}", b"y" * 600_000)
    assert sorted([row.key async for row in table.scan("many/")]) == [f"many/{n:04}" for n in range(1030)]
    assert [row.key async for row in table.scan("large/")] == [f"large/{number}" for number in range(4)]
    assert len([row async for row in table.scan()]) == 1034
    assert [row async for row in table.scan("none/")] == []
    assert [row async for row in store.table("never created").scan()] == []


async def test_a_scan_whose_delivery_is_lost_begins_again(nats_server, monkeypatch):
    """The server has sent the messages and reports that none are left; each row is returned once all the same."""
    monkeypatch.setattr(scan, "PAGE_BYTES", 1000)
    monkeypatch.setattr(scan, "_BATCH", 10)
    pulls, pull = [], Deliveries.pull

    async def lossy(*arguments, **options):
        pulls.append(arguments)
        for number, message in enumerate([each async for each in pull(*arguments, **options)]):
            if len(pulls) != 2 or number == 0:
                yield message

    monkeypatch.setattr(Deliveries, "pull", lossy)
    async with await stores.open(f"{nats_server.url}/lossy") as store:
        table = store.table("t")
        for number in range(25):
            await table.put(str(number), b"x" * 200)
        found = [row.key async for row in table.scan()]
    assert sorted(found) == sorted(map(str, range(25)))
    assert len(pulls) > 3


async def test_a_scan_is_complete_whichever_replica_answers(tmp_path):
    """One of three servers is stopped while the others acknowledge; a scan right after it continues is complete."""
    cluster = NatsCluster(tmp_path)
    await asyncio.to_thread(cluster.start)
    try:
        async with await stores.open(cluster.url("behind")) as store:
            table = store.table("t")
            await table.put("first", b"")
            here = store._streams.connection.client._server_info["server_name"]

            async def found(prefix):
                return len([row async for row in table.scan(prefix)])

            for number, rows in enumerate((1200, 300, 1200, 300)):
                leader = (await store._streams.info("table", "t"))["cluster"]["leader"]
                behind = next(node for node in cluster.nodes if node.name not in {leader, here})
                os.kill(behind.process.pid, signal.SIGSTOP)
                try:
                    await asyncio.gather(*(table.put(f"{number}/{n}", b"x" * 10_000) for n in range(rows)))
                finally:
                    os.kill(behind.process.pid, signal.SIGCONT)
                assert await asyncio.gather(*(found(f"{number}/") for _ in range(8))) == [rows] * 8
    finally:
        cluster.stop()


@pytest.mark.soak
async def test_a_store_on_the_side_of_the_minority(tmp_path):
    """Two of three servers do not answer: nothing is read as complete, written or done, and afterwards all of it works."""
    cluster = NatsCluster(tmp_path)
    await asyncio.to_thread(cluster.start)
    url = cluster.url("parted")
    try:
        async with await stores.open(url) as store:
            # The servers have found each other, and the store exists.
            await store.table("t").put("before", b"0")
        async with await stores.open(f"{url}&timeout=5") as store, Effects(store) as effects:
            table, paid = store.table("t"), []

            @effects.once(key="order")
            async def pay(order):
                paid.append(order)
                return "receipt"

            await table.put("first", b"1")
            assert await pay(1) == "receipt"
            here = store._streams.connection.client._server_info["server_name"]
            others = [node for node in cluster.nodes if node.name != here]
            for node in others:
                os.kill(node.process.pid, signal.SIGSTOP)
            try:
                with pytest.raises(stores.StoreUnavailableError):
                    await table.put("second", b"2")
                with pytest.raises(stores.StoreUnavailableError):
                    _ = [row async for row in table.scan()]
                with pytest.raises(LedgerUnavailableError):
                    await pay(2)
                assert paid == [1]
            finally:
                for node in others:
                    os.kill(node.process.pid, signal.SIGCONT)
            end = time.monotonic() + 60
            while True:
                try:
                    await table.put("third", b"3")
                    assert await pay(2) == "receipt"
                    expected = [1, 2]
                    break
                except InDoubtError:
                    # The claim without an acknowledgement may have arrived. It is asked about, and nothing is paid.
                    expected = [1]
                    break
                except (stores.StoreError, LedgerUnavailableError):
                    assert time.monotonic() < end
            assert await pay(1) == "receipt"
            assert paid == expected
            keys = {row.key async for row in table.scan()}
            # The write without an acknowledgement may have arrived.
            assert keys >= {"before", "first", "third"}
            assert keys <= {"before", "first", "second", "third"}
    finally:
        cluster.stop()


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_a_scan_during_an_election(tmp_path):
    """A follower that was paused for longer than an election takes starts one when it returns; 0 of 40 scans are incomplete."""
    await _scan_during_elections(tmp_path, rounds=5)


async def _scan_during_elections(tmp_path, rounds):
    cluster = NatsCluster(tmp_path)
    await asyncio.to_thread(cluster.start)
    incomplete = scans = 0
    try:
        async with await stores.open(cluster.url("elects")) as store:
            table = store.table("t")
            await table.put("first", b"")
            here = store._streams.connection.client._server_info["server_name"]

            async def found(prefix):
                return len([row async for row in table.scan(prefix)])

            for number in range(rounds):
                rows = (1200, 60)[number % 2]
                leader = (await store._streams.info("table", "t"))["cluster"]["leader"]
                behind = next(node for node in cluster.nodes if node.name not in {leader, here})
                os.kill(behind.process.pid, signal.SIGSTOP)
                try:
                    await asyncio.sleep(12)
                    await asyncio.gather(*(table.put(f"{number}/{n}", b"x" * 5_000) for n in range(rows)))
                finally:
                    os.kill(behind.process.pid, signal.SIGCONT)
                counts = await asyncio.gather(*(found(f"{number}/") for _ in range(4)))
                await asyncio.sleep(0.3)
                counts += await asyncio.gather(*(found(f"{number}/") for _ in range(4)))
                scans += len(counts)
                incomplete += sum(count != rows for count in counts)
    finally:
        cluster.stop()
    assert (incomplete, scans) == (0, rounds * 8)
