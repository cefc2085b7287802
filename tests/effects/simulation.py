"""
Agents that lose answers, plan again, work at the same time and die, on a ledger with virtual time.

Each operation is something that has to be done once. One or two agents try to do it through the ledger, step by step, in an
order that the seed decides. The service executes calls and loses answers; it can also fail before it executes anything. An
agent dies before or after any operation of the store, or inside the call, and is started again later. Doubts are answered
with the truth, by `verify` or by a person. A process that stopped counts as dead: one that is only paused for longer than
its lease, and continues after its doubt was answered, is outside of what a ledger can decide.

At the end, every operation whose agents finished was done exactly once, and every other one was done at most once and is
recorded as done, as in doubt, or not at all.
"""

import heapq
import itertools
import random
from collections import Counter

from amends.durable.keys import Keys
from amends.effects.calls import Tool
from amends.effects.errors import AlreadyDoneError, EffectRunningError, InDoubtError, LedgerUnavailableError
from amends.effects.flow import CallStep, StoreStep, VerifyStep, WaitStep, perform
from amends.effects.handles import run_at_once
from amends.effects.ledger import decide
from amends.effects.records import TABLE, EffectRecord
from amends.errors import RateLimitedError
from amends.stores.address import parse
from amends.stores.memory import open_memory

LEASE = 30.0


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def wall(self):
        return self.now

    steady = wall

    def boot(self):
        return "simulated"


class Killed(BaseException):
    """The process ended here."""


class Process:
    """A store as one process sees it, until the process dies before or after one of its operations."""

    def __init__(self, store, dies_at, after):
        self._store, self._left, self._after = store, dies_at, after
        self.traits, self.url, self.clock, self.dead = store.traits, store.url, store.clock, False

    def table(self, name):
        return _Table(self, self._store.table(name))

    async def call(self, function, *given, **options):
        self.point(after=False)
        result = await function(*given, **options)
        self.point(after=True)
        return result

    def point(self, *, after):
        if not self.dead and self._left is not None:
            if not after:
                self._left -= 1
            self.dead = self._left <= 0 and after is self._after
        if self.dead:
            raise Killed


class _Table:
    def __init__(self, process, table):
        self._process, self._table = process, table

    def __getattr__(self, name):
        method = getattr(self._table, name)

        async def call(*given, **options):
            return await self._process.call(method, *given, **options)

        return call


class World:
    """One seed: a store, its clock and a service that counts what it did."""

    def __init__(self, seed):
        self.random, self.clock = random.Random(seed), Clock()
        self.store = open_memory(parse("memory:"), self.clock)
        self.done, self.seen = Counter(), Counter()

    def keys(self, store):
        return Keys(store, TABLE, EffectRecord, expires_in=172800.0, lease=LEASE, keep_unsettled=True)

    def operation(self, number):
        """Let the agents of one operation work until the last one has finished or given up, then check the ledger."""
        chance = self.random.random
        verified = chance() < 0.5
        derived = chance() < 0.5
        tool = Tool(
            "pay",
            key=None if derived else "number",
            verify=(lambda number: None) if verified else None,
        )
        self.work(tool, number, None)
        record = run_at_once(self.keys(self.store).get(name_of(tool, number)))
        if derived and record is not None and record.state == "done" and record.delivered and chance() < 0.3:
            # It is meant once more, and says so.
            self.work(tool, number, "another one")
            self.seen["repeats"] += 1
        self.seen["operations"] += 1
        run_at_once(self.store.table(TABLE).discard(name_of(tool, number)))

    def work(self, tool, number, again):
        chance = self.random.random
        agents = [Agent(self, tool, number, again) for _ in range(2 if chance() < 0.4 else 1)]
        order = itertools.count()
        ready = [(self.clock.now + chance(), next(order), agent) for agent in agents]
        heapq.heapify(ready)
        for turns in itertools.count():
            if not ready:
                break
            assert turns < 100_000, "an agent does not end"
            at, _, agent = heapq.heappop(ready)
            self.clock.now = max(self.clock.now, at)
            pause = agent.turn()
            if pause is not None:
                heapq.heappush(ready, (self.clock.now + pause, next(order), agent))
        self.check(number, agents, 1 if again is None else 2)

    def check(self, number, agents, wanted):
        name = agents[0].name
        record = run_at_once(self.keys(self.store).get(name))
        times = self.done[number]
        assert times <= wanted, f"{number}: a duplicate"
        if any(agent.finished for agent in agents):
            assert times == wanted, f"{number}: an agent was told that it is done, and it is not"
        if times:
            assert record is not None, f"{number}: it was done, and the ledger does not know"
        if record is not None and record.state == "done":
            assert times == len(record.times) + 1, f"{number}: the ledger says done, and it is not"
        self.seen["duplicates"] += times > wanted
        self.seen["calls"] += sum(agent.calls for agent in agents)
        self.seen["deaths"] += sum(agent.deaths for agent in agents)
        self.seen["lost answers"] += sum(agent.lost for agent in agents)
        self.seen["doubts"] += sum(agent.doubts for agent in agents)
        self.seen["given up"] += not any(agent.finished for agent in agents)


def name_of(tool, number):
    return tool.request((), {"number": number}, now=lambda: 0.0, wait=60.0).name


class Agent:
    """Calls the tool until it knows that the operation is done; each call may lose its answer or its process."""

    def __init__(self, world, tool, number, again):
        self.world, self.tool, self.number, self.again = world, tool, number, again
        self.wanted = 1 if again is None else 2
        self.finished, self.flow, self.process = False, None, None
        self.name = self.request().name
        self.deaths = self.lost = self.doubts = self.calls = 0
        self.lives = world.random.randrange(1, 8)
        self.value, self.error = None, None

    def request(self):
        return self.tool.request(
            (), {"number": self.number}, now=self.world.clock.wall, wait=60.0, again=self.again
        )

    def turn(self):
        """Do one step; return the seconds until the next one, or None at the end."""
        chance = self.world.random.random
        if self.flow is None:
            self.begin()
        try:
            step = self.flow.send(self.value) if self.error is None else self.flow.throw(self.error)
        except StopIteration:
            return self.answered()
        except AlreadyDoneError:
            return self.answered(lossless=True)
        except InDoubtError:
            return self.in_doubt()
        except (EffectRunningError, RateLimitedError, LedgerUnavailableError):
            self.flow = None
            return 1 + 10 * chance()
        except Exception as error:
            fault = getattr(error, "fault", None)
            if fault is not None and fault.executed != "no":
                raise
            # A failure after `verify` said that nothing happened.
            self.flow = None
            return 1 + 10 * chance()
        self.value = self.error = None
        try:
            return self.perform(step)
        except Killed:
            return self.died()
        except Exception as error:
            self.error = error
            return 0.001 + 0.01 * chance()

    def begin(self):
        chance = self.world.random.random
        dies_at = self.world.random.randrange(1, 9) if chance() < 0.25 else None
        self.process = Process(self.world.store, dies_at, chance() < 0.5)
        self.flow, self.value, self.error = perform(self.request()), None, None
        self.calls += 1

    def perform(self, step):
        chance, world = self.world.random.random, self.world
        if isinstance(step, WaitStep):
            # Woken early now and then, as by another caller of the same process.
            waited = step.seconds if chance() < 0.7 else step.seconds * chance()
            self.value = waited
            return waited
        if isinstance(step, StoreStep):
            self.value = run_at_once(step.work(world.keys(self.process)))
            return 0.001 + 0.02 * chance()
        # While a call or `verify` runs, its lease is renewed.
        run_at_once(world.keys(world.store).renew(step.claim))
        if isinstance(step, VerifyStep):
            self.value = (
                None
                if chance() < 0.2
                else ({"number": self.number} if world.done[self.number] == self.wanted else False)
            )
            return 0.01 + 5 * chance()
        assert isinstance(step, CallStep)
        fate = chance()
        if fate < 0.05:
            raise Killed
        if fate < 0.15:
            raise RateLimitedError(retry_after=1)
        if fate < 0.2:
            raise TimeoutError
        world.done[self.number] += 1
        if fate < 0.25:
            raise Killed
        if fate < 0.4:
            self.lost += 1
            raise TimeoutError
        self.value = {"number": self.number}
        return 0.01 + 5 * chance()

    def answered(self, *, lossless=False):
        """The ledger answered; perhaps the agent never got it, and plans again."""
        self.flow = None
        if not lossless and self.world.random.random() < 0.15 and self.lives:
            self.lives -= 1
            self.lost += 1
            return 1 + 30 * self.world.random.random()
        self.finished = True
        return None

    def in_doubt(self):
        """A person looks it up and answers, unless another one does at the same time."""
        self.doubts += 1
        self.flow = None
        if self.world.random.random() < 0.8:
            happened = self.world.done[self.number] == self.wanted
            try:
                run_at_once(
                    decide(
                        self.world.keys(self.world.store),
                        self.name,
                        happened,
                        {"number": self.number},
                        self.world.clock.wall,
                    )
                )
            except Exception as error:
                if error.fault.code not in {"CONFLICT", "NOT_FOUND"}:
                    raise
        elif not self.lives:
            return None
        return 10 * self.world.random.random()

    def died(self):
        """The process is gone: nothing of it runs any more. Another one may continue later, or never."""
        self.deaths += 1
        self.flow.close()
        self.flow, self.value, self.error = None, None, None
        if self.lives == 0 or self.world.random.random() < 0.03:
            return None
        self.lives -= 1
        return 120 * self.world.random.random()


def run(operations, seed):
    """Run operations in several worlds; return what was seen."""
    seen, batch = Counter(), 2000
    for number in range(0, operations, batch):
        world = World(seed + number)
        for each in range(number, min(number + batch, operations)):
            world.operation(each)
        seen += world.seen
    return seen
