"""What an agent is registered with: concurrency, rate, time limit, priority, and retries by the runtime."""

import asyncio
import logging
import random
from datetime import timedelta

import pytest

from amends import Policy
from amends.arcp import Limits, Runtime, connect
from amends.arcp.errors import InternalError, PermissionDeniedError
from amends.core.backoff import Backoff
from amends.core.policy import Rule
from amends.errors.arcp import ARCPError
from amends.errors.arcp import TimeoutError as JobTimeoutError

QUICK = Policy(attempts=3, backoff=Backoff(first=0.01, spread=0.0))
STORES = ["memory:", "sqlite"]


def runtime(store="memory:", tmp_path=None, **options):
    url = f"sqlite:///{tmp_path}/jobs.db" if store == "sqlite" else store
    return Runtime(url, tokens={"t": "alice"}, **options)


class Counted:
    """An agent that counts how many of its jobs run at once."""

    def __init__(self):
        self.now = self.most = self.runs = 0
        self.order, self.going = [], asyncio.Event()

    async def __call__(self, input, ctx):
        self.runs += 1
        self.now += 1
        self.most = max(self.most, self.now)
        self.order.append(input)
        await self.going.wait()
        self.now -= 1
        return input


async def submitted(client, agent, count, **options):
    return [await client.submit(agent, number, **options) for number in range(count)]


async def results(handles):
    async with asyncio.timeout(30):
        return [await handle.done for handle in handles]


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("store", STORES)
async def test_concurrency(store, tmp_path):
    """At most so many jobs of the agent run at once; further ones wait in order, and other agents are not held back."""
    host, limited, other = runtime(store, tmp_path), Counted(), Counted()
    host.register_agent("limited", limited, concurrency=2)
    host.register_agent("other", other)
    async with host, connect(host, token="t") as client:
        handles = await submitted(client, "limited", 6)
        others = await submitted(client, "other", 3)
        await until(lambda: limited.now == 2 and other.now == 3)
        await asyncio.sleep(0.05)
        assert limited.now == 2
        limited.going.set()
        other.going.set()
        assert await results(handles) == list(range(6))
        assert await results(others) == list(range(3))
        assert (limited.most, limited.order) == (2, list(range(6)))
        assert not host.node.capacity.running_of["limited@1.0.0"]


async def test_a_rate(tmp_path):
    """No more than so many jobs start in the time, and the others start when they may."""
    host, starts = runtime(), []

    async def agent(input, ctx):
        starts.append(asyncio.get_running_loop().time())

    host.register_agent("paced", agent, rate=(2, timedelta(seconds=0.2)))
    async with host, connect(host, token="t") as client:
        await results(await submitted(client, "paced", 6))
    gaps = [later - earlier for earlier, later in zip(starts, starts[2:], strict=False)]
    assert min(gaps) >= 0.15  # two starts in 0.2 s; each is noted a moment after its place was taken


async def test_a_time_limit():
    """It ends the job whatever the submission asks for; a shorter one of the submission counts."""
    host, agent = runtime(), Counted()
    host.register_agent("slow", agent, time_limit=0.05)
    host.register_agent("slower", agent, time_limit=60)
    async with host, connect(host, token="t") as client:
        for name, more in (
            ("slow", {}),
            ("slow", {"max_runtime_sec": 60}),
            ("slower", {"max_runtime_sec": 0.05}),
        ):
            with pytest.raises(JobTimeoutError) as late:
                await (await client.submit(name, **more)).done
            assert late.value.details["max_runtime_sec"] == 0.05


@pytest.mark.parametrize("store", STORES)
async def test_priority(store, tmp_path):
    """While jobs wait for a place, those of the agent with the highest priority start first."""
    host = runtime(store, tmp_path, limits=Limits(running=1))
    first, going, order = asyncio.Event(), asyncio.Event(), []

    async def agent(input, ctx):
        order.append(ctx.agent.partition("@")[0])
        first.set()
        await going.wait()

    for name, priority in (("low", -5), ("normal", 0), ("high", 10)):
        host.register_agent(name, agent, priority=priority)
    async with host, connect(host, token="t") as client:
        handles = await submitted(client, "low", 1)
        await first.wait()
        for name in ("low", "normal", "high"):
            handles += await submitted(client, name, 3)
        going.set()
        await results(handles)
    assert order == ["low", *["high"] * 3, *["normal"] * 3, *["low"] * 3]


async def test_a_blocked_agent_of_a_high_priority_holds_nobody_back():
    """Its jobs wait because of its own limit, so a place is free for others."""
    host, high, low = runtime(), Counted(), Counted()
    host.register_agent("high", high, priority=10, concurrency=1)
    host.register_agent("low", low)
    low.going.set()
    async with host, connect(host, token="t") as client:
        waiting = await submitted(client, "high", 3)
        assert await results(await submitted(client, "low", 3)) == [0, 1, 2]
        high.going.set()
        await results(waiting)


async def test_a_delegated_job_of_a_limited_agent_is_refused_rather_than_waited_for():
    """A job that waits for another one of its own agent would wait for ever."""
    host = runtime()

    async def nested(input, ctx):
        return await ctx.delegate("nested", input)

    host.register_agent("nested", nested, concurrency=1)
    async with host, connect(host, token="t") as client:
        handle = await client.submit("nested", lease={"agent.delegate": ["nested"]})
        async with asyncio.timeout(20):
            with pytest.raises(InternalError) as refused:
                await handle.done
    assert refused.value.details["limit"] == "concurrency"


# -- retries by the runtime


def failing(*errors):
    """An agent that raises the errors one after the other, and then returns how often it was called."""
    raised = list(errors)
    calls = []

    async def agent(input, ctx):
        calls.append(ctx.run)
        if raised:
            raise raised.pop(0)
        return len(calls)

    return agent, calls


def busy(**more):
    return InternalError("busy", executed="no", **more)


async def test_a_run_without_effect_is_repeated_before_the_job_ends():
    """The client sees one job, its status, and one result."""
    host = runtime()
    agent, calls = failing(busy(), busy(retry_after=0.01))
    host.register_agent("flaky", agent, retry=QUICK)
    async with host, connect(host, token="t") as client:
        handle = await client.submit("flaky")
        phases = [event.body["phase"] async for event in handle.events()]
        assert await handle.done == 3
    assert (phases, calls) == (["retrying", "retrying"], [1, 1, 1])


async def test_attempts_are_limited():
    host = runtime()
    agent, calls = failing(*(busy() for _ in range(9)))
    host.register_agent("flaky", agent, retry=QUICK)
    async with host, connect(host, token="t") as client:
        with pytest.raises(InternalError, match="busy"):
            await (await client.submit("flaky")).done
    assert len(calls) == 3


@pytest.mark.parametrize(
    "error",
    [
        InternalError("it may have happened"),
        PermissionDeniedError("never"),
        RuntimeError("a bug"),
        ConnectionError("an answer was lost"),
    ],
)
async def test_what_may_have_happened_or_cannot_help_is_not_repeated(error, monkeypatch):
    host = runtime()
    agent, calls = failing(error)
    host.register_agent("flaky", agent, retry=QUICK)
    monkeypatch.setattr(logging.getLogger("amends.arcp"), "level", logging.CRITICAL)
    async with host, connect(host, token="t") as client:
        with pytest.raises(ARCPError):
            await (await client.submit("flaky")).done
    assert len(calls) == 1


async def test_only_the_codes_of_the_policy_are_repeated():
    host = runtime()
    rules = {"INTERNAL_ERROR": Rule(attempts=3)}
    wanted, seen = failing(busy())
    other, others = failing(JobTimeoutError("late", executed="no"))
    one = Policy(attempts=1, rules=rules, backoff=Backoff(first=0.01))
    host.register_agent("wanted", wanted, retry=one)
    host.register_agent("other", other, retry=one)
    async with host, connect(host, token="t") as client:
        assert await (await client.submit("wanted")).done == 2
        with pytest.raises(JobTimeoutError):
            await (await client.submit("other")).done
    assert (len(seen), len(others)) == (2, 1)


async def test_a_repeatable_agent_is_repeated_whatever_it_did():
    host = runtime()
    agent, calls = failing(InternalError("it may have happened"))
    host.register_agent("flaky", agent, retry=QUICK, repeatable=True)
    async with host, connect(host, token="t") as client:
        assert await (await client.submit("flaky")).done == len(calls) == 2


async def test_a_run_whose_steps_have_ended_is_repeated_without_calling_them_again():
    """A step with an end is not called again; one without an end keeps the run from being repeated."""
    host, done = runtime(), []

    async def charge(order):
        done.append(order)
        return "paid"

    async def agent(input, ctx):
        receipt = await ctx.step("charge", charge, input)
        if len(done) < 2 and input == "once":
            done.append("failed after it")
            raise InternalError("the printer is busy")
        return receipt

    async def lost(order):
        done.append(order)
        raise ConnectionResetError

    async def in_doubt(input, ctx):
        await ctx.step("charge", lost, input)

    host.register_agent("orders", agent, retry=QUICK)
    host.register_agent("doubts", in_doubt, retry=QUICK)
    async with host, connect(host, token="t") as client:
        assert await (await client.submit("orders", "once")).done == "paid"
        assert done == ["once", "failed after it"]
        done.clear()
        with pytest.raises(ARCPError):
            await (await client.submit("doubts", "x")).done
    assert done == ["x"]


async def test_no_part_of_a_result_is_sent_twice():
    """A run that has begun to stream its result is not repeated."""
    host, calls = runtime(), []

    async def agent(input, ctx):
        calls.append(1)
        yield "the first part"
        raise busy()

    host.register_agent("streams", agent, retry=QUICK, repeatable=True)
    async with host, connect(host, token="t") as client:
        with pytest.raises(InternalError):
            await (await client.submit("streams")).done
    assert len(calls) == 1


async def test_a_wait_before_a_repeat_ends_with_the_job():
    """Cancelled, out of time, or stopped with its runtime."""
    patient = Policy(attempts=3, max_wait=None, backoff=Backoff(first=3600.0, spread=0.0))
    host = runtime()
    for name, limit in (("flaky", None), ("limited", 0.05)):
        agent, _ = failing(busy(), busy())
        host.register_agent(name, agent, retry=patient, time_limit=limit)
    async with host, connect(host, token="t") as client:
        handle = await client.submit("flaky")
        async for event in handle.events():
            assert event.body["phase"] == "retrying"
            await handle.cancel("enough")
        with pytest.raises(ARCPError, match="cancel"):
            await handle.done
        # A wait that would end after the time limit is not begun.
        with pytest.raises(InternalError, match="busy"):
            await (await client.submit("limited")).done


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("concurrency", 0, ValueError),
        ("concurrency", True, TypeError),
        ("concurrency", "2", TypeError),
        ("rate", 3, TypeError),
        ("rate", (0, 1), ValueError),
        ("rate", (1, 0), ValueError),
        ("rate", (1, "s"), TypeError),
        ("time_limit", 0, ValueError),
        ("time_limit", float("nan"), ValueError),
        ("priority", 101, ValueError),
        ("priority", 1.5, ValueError),
        ("retry", 3, TypeError),
        ("retry", Policy(attempts=None), ValueError),
    ],
)
def test_wrong_options(option, value, error):
    """The error names the option."""
    with pytest.raises(error, match=option):
        Runtime(tokens="t").register_agent("a", failing()[0], **{option: value})


@pytest.mark.parametrize("seed", range(3))
async def test_any_mixture_ends(seed, tmp_path):
    """Jobs of agents with random limits all end once, and leave no place taken."""
    draw = random.Random(seed)
    host = runtime("sqlite", tmp_path, limits=Limits(running=draw.choice([1, 3, 50])))
    agents, most = {}, {}
    for number in range(5):
        name = f"agent-{number}"
        agents[name] = Counted()
        agents[name].going.set()
        most[name] = draw.choice([None, 1, 3])
        rate = draw.choice([None, (5, 0.05)])
        host.register_agent(
            name, agents[name], concurrency=most[name], rate=rate, priority=draw.randint(-3, 3)
        )
    async with host, connect(host, token="t") as client:
        names = [draw.choice(list(agents)) for _ in range(80)]
        handles = [await client.submit(name, number) for number, name in enumerate(names)]
        assert await results(handles) == list(range(80))
        await until(lambda: not host.node.capacity.running)
        assert not sum(host.node.capacity.running_of.values())
    for name, agent in agents.items():
        assert agent.runs == names.count(name)
        assert most[name] is None or agent.most <= most[name]
