"""Idempotency keys (R9, design section 8): one job per key, for all sessions and nodes, also after a crash."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import pytest

from amends.arcp.wire import text_of
from tests.arcp.raw import connected


async def accepted(raw, agent, input=None, **more):
    answer = await raw.submit(agent, input, **more)
    assert answer["type"] == "job.accepted", answer
    return answer["payload"]


async def test_repeated_in_flight_joins(store_url, begin):
    """Repeated in the same or another session, a key returns the same job id; each session gets the end once."""
    runtime = await begin(store_url)
    raw, other = await connected(runtime), await connected(runtime)
    more = {"idempotency_key": "k", "lease_request": {"fs.read": ["/w/**"]}}
    first = await accepted(raw, "counting", {"count": 10, "pause": 0.02}, **more)
    again = await accepted(raw, "counting", {"pause": 0.02, "count": 10}, **more)
    there = await accepted(other, "counting", {"count": 10, "pause": 0.02}, **more)
    ours = {name: value for name, value in first.items() if name != "request_id"}
    assert ours == {name: value for name, value in again.items() if name != "request_id"}
    assert ours == {name: value for name, value in there.items() if name != "request_id"}
    end, end_there = await raw.end(first["job_id"]), await other.end(first["job_id"])
    assert end["payload"] == end_there["payload"]
    lines = [m["payload"]["body"]["message"].strip() for m in raw.events(first["job_id"])]
    assert lines == [str(n) for n in range(10)]
    await asyncio.gather(raw.close(), other.close())


async def test_repeated_after_success_replays(store_url, begin):
    """The outcome, also a streamed one, is replayed under new numbers; the agent does not run again."""
    runtime = await begin(store_url)
    runs = []

    async def counted(input, ctx):
        runs.append(ctx.run)
        await ctx.log("not part of the outcome")
        return len(runs)

    runtime.register_agent("counted", counted)
    raw, other = await connected(runtime), await connected(runtime)
    end = await raw.run("counted", 1, idempotency_key="k")
    for session in (raw, other):
        again = await session.run("counted", 1, idempotency_key="k")
        assert (again["job_id"], again["payload"]) == (end["job_id"], end["payload"])
    assert runs == [1]
    assert not other.events(end["job_id"])
    streamed = await raw.run("yielding", {"pieces": ["a", "b"]}, idempotency_key="s")
    again = await other.run("yielding", {"pieces": ["a", "b"]}, idempotency_key="s")
    assert again["payload"] == streamed["payload"]
    assert [m["payload"]["body"]["data"] for m in other.events(again["job_id"])] == ["a", "b"]
    assert [m["event_seq"] for m in other.seen if "event_seq" in m] == [1, 2, 3, 4]
    await asyncio.gather(raw.close(), other.close())


async def test_repeated_after_a_retryable_failure_runs_again(store_url, begin):
    """The job runs again under the same id, with the run number in every message; each run ends once."""
    raw = await connected(await begin(store_url))
    ends = [await raw.run("flaky", {"fails": 2}, idempotency_key="k") for _ in range(4)]
    assert len({end["job_id"] for end in ends}) == 1
    assert [end["type"] for end in ends] == ["job.error", "job.error", "job.result", "job.result"]
    assert [end["payload"].get("run") for end in ends] == [None, 2, 3, 3]
    assert [end["payload"].get("details") for end in ends] == [{"run": 1}, {"run": 2}, None, None]
    assert {m["payload"].get("run") for m in raw.events(ends[0]["job_id"])} == {3}
    streamed = await raw.run("yielding", {"pieces": ["a"]}, idempotency_key="other")
    assert streamed["payload"].get("run") is None
    await raw.close()


async def test_a_streamed_result_of_a_later_run_is_replayed_whole(begin):
    """Only the chunks of the successful run are replayed."""
    runtime = await begin()

    async def second(input, ctx):
        yield f"run {ctx.run}"
        if ctx.run == 1:
            raise RuntimeError

    runtime.register_agent("second", second)
    raw, other = await connected(runtime), await connected(runtime)
    assert (await raw.run("second", idempotency_key="k"))["type"] == "job.error"
    end = await raw.run("second", idempotency_key="k")
    again = await other.run("second", idempotency_key="k")
    assert again["payload"] == end["payload"]
    assert [m["payload"]["body"]["data"] for m in other.events(end["job_id"])] == ["run 2"]
    await asyncio.gather(raw.close(), other.close())


@pytest.mark.parametrize("code", ["INVALID_REQUEST", "CANCELLED", "LEASE_EXPIRED"])
async def test_repeated_after_a_permanent_failure_replays_it(code, begin):
    """The same error is returned without a run, because a retry would not change it."""
    raw = await connected(await begin())
    first = await raw.run("flaky", {"fails": 1, "code": code}, idempotency_key="k")
    again = await raw.run("flaky", {"fails": 1, "code": code}, idempotency_key="k")
    assert first["payload"] == again["payload"]
    assert again["payload"]["code"] == code
    await raw.close()


async def test_a_conflict_concerns_one_request_alone(store_url, begin):
    """R9: a submission that differs in anything gets DUPLICATE_KEY; the running job is not affected."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    job_id = (await accepted(raw, "counting", {"count": 5, "pause": 0.03}, idempotency_key="k"))["job_id"]
    for agent, input, more in [
        ("echo", {"count": 5, "pause": 0.03}, {}),
        ("counting", {"count": 6, "pause": 0.03}, {}),
        ("counting", {"count": 5, "pause": 0.03}, {"max_runtime_sec": 5}),
        ("counting", {"count": 5, "pause": 0.03}, {"lease_request": {"fs.read": ["/w/**"]}}),
        ("counting@1.0.0", {"count": 5, "pause": 0.03}, {}),
    ]:
        answer = await raw.submit(agent, input, idempotency_key="k", **more)
        assert answer["payload"]["code"] == "DUPLICATE_KEY"
        assert answer["payload"]["details"] == {"job_id": job_id}
        assert answer.get("job_id") != job_id
    assert (await raw.end(job_id))["payload"]["result"] == 5
    other = await connected(runtime, "bob-token")
    assert (await other.run("echo", 2, idempotency_key="k"))["payload"]["result"] == 2
    await asyncio.gather(raw.close(), other.close())


async def test_a_key_outlives_the_end_of_its_lease(begin):
    """A repeated submission finds its job after the requested lease has expired."""
    raw = await connected(await begin())
    more = {"idempotency_key": "k", "lease_constraints": {"expires_at": text_of(time.time() + 0.2)}}
    end = await raw.run("echo", 1, **more)
    await asyncio.sleep(0.3)
    assert (await raw.run("echo", 1, **more))["job_id"] == end["job_id"]
    await raw.close()


async def test_budgets_are_shared_by_all_runs(begin):
    """A later run gets the rest of the budget that the earlier ones left."""
    runtime = await begin()

    async def spending(input, ctx):
        await ctx.metric("cost.x", "0.4", "USD")
        if ctx.run < 3:
            raise RuntimeError
        return ctx.budget

    runtime.register_agent("costly", spending)
    raw = await connected(runtime)
    more = {"idempotency_key": "k", "lease_request": {"cost.budget": ["USD:1.00"]}}
    for _ in range(2):
        await raw.run("costly", **more)
    assert (await raw.run("costly", **more))["payload"]["result"] == {"USD": "-0.20"}
    await raw.close()


async def test_keys_survive_the_runtime(sqlite_url, begin):
    """Another process, or the same one after a restart, finds every key."""
    runtime = await begin(sqlite_url)
    raw = await connected(runtime)
    done = await raw.run("flaky", {"fails": 0}, idempotency_key="done")
    failed = await raw.run("flaky", {"fails": 1}, idempotency_key="failed")
    await raw.close()
    await runtime.stop()
    raw = await connected(await begin(sqlite_url))
    assert (await raw.run("flaky", {"fails": 0}, idempotency_key="done"))["payload"] == done["payload"]
    again = await raw.run("flaky", {"fails": 1}, idempotency_key="failed")
    assert (again["job_id"], again["payload"]["result"]) == (failed["job_id"], {"run": 2})
    assert (await raw.submit("echo", 1, idempotency_key="done"))["payload"]["code"] == "DUPLICATE_KEY"
    await raw.close()


async def test_deleted_jobs_free_their_keys(begin):
    """After its job was deleted, a key can be used for a new job."""
    runtime = await begin(limits={"keyed": 1})
    raw = await connected(runtime)
    first = await raw.run("echo", 1, idempotency_key="first")
    for number in range(150):
        await raw.run("echo", 1, idempotency_key=f"k{number}")
    again = await raw.run("echo", 1, idempotency_key="first")
    assert again["job_id"] != first["job_id"]
    await raw.close()


@pytest.mark.parametrize("keyed", [True, False])
async def test_after_a_crash_a_job_is_in_doubt(keyed, store_url, begin):
    """A job that was running fails with INTERNAL_ERROR, in doubt; its key returns that error and does not run it."""
    from amends.arcp import Limits, Runtime
    from tests.arcp.agents import register
    from tests.arcp.raw import TOKENS, dial

    limits = {"node_lease": 0.4}
    dying = register(Runtime(store_url, tokens=TOKENS, limits=Limits(**limits)))
    await dying.start()
    raw = await connected(dying)
    more = {"idempotency_key": "k"} if keyed else {}
    job_id = (await accepted(raw, "waiting", **more))["job_id"]
    await raw.until("job.event")
    await dying.abandon()
    runtime = await begin(store_url, limits=limits)
    raw2 = dial(runtime)
    assert (await raw2.hello(resume=raw.resume_block()))["type"] == "session.welcome"
    end = await raw2.end(job_id)
    assert end["payload"]["code"] == "INTERNAL_ERROR"
    assert end["payload"]["details"] == {"in_doubt": True, "executed": "maybe"}
    assert [m["event_seq"] for m in raw2.seen if "event_seq" in m] == [2]
    if keyed:
        again = await raw2.run("waiting", **more)
        assert (again["job_id"], again["payload"]) == (job_id, end["payload"])
    await raw2.close()


async def test_after_a_crash_a_repeatable_job_runs_again(store_url, begin):
    """It is taken over within the lease, in the same run, with a "restarted" status; the old node is fenced."""
    from amends.arcp import Limits, Runtime
    from tests.arcp.raw import TOKENS

    async def tenacious(input, ctx):
        await ctx.log(f"at {input}")
        if not release.is_set():
            await asyncio.Event().wait()
        return "done"

    release = asyncio.Event()
    limits = {"node_lease": 0.4}
    dying = Runtime(store_url, tokens=TOKENS, limits=Limits(**limits))
    dying.register_agent("tenacious", tenacious, repeatable=True)
    await dying.start()
    raw = await connected(dying)
    job_id = (await accepted(raw, "tenacious", 1, idempotency_key="k"))["job_id"]
    await raw.until("job.event")
    await dying.abandon()
    release.set()
    runtime = await begin(store_url, limits=limits)
    runtime.register_agent("tenacious", tenacious, repeatable=True)
    raw2 = await connected(runtime)
    again = await raw2.submit("tenacious", 1, idempotency_key="k")
    assert again["payload"]["job_id"] == job_id
    end = await raw2.end(job_id)
    assert end["payload"]["result"] == "done"
    assert "run" not in end["payload"]
    phases = [m["payload"]["body"]["phase"] for m in raw2.events(job_id, "status")]
    assert phases == ["restarted"]
    await raw2.close()


async def test_jobs_in_a_queue_survive_a_crash(store_url, begin):
    """Jobs that had not started run normally."""
    from amends.arcp import Limits, Runtime
    from tests.arcp.agents import register
    from tests.arcp.raw import TOKENS

    dying = register(Runtime(store_url, tokens=TOKENS, limits=Limits(running=1, node_lease=0.4)))
    await dying.start()
    raw = await connected(dying)
    await accepted(raw, "waiting")
    job_id = (await accepted(raw, "echo", 7, idempotency_key="k"))["job_id"]
    await dying.abandon()
    raw2 = await connected(await begin(store_url, limits={"node_lease": 0.4}))
    end = await raw2.run("echo", 7, idempotency_key="k")
    assert (end["job_id"], end["payload"]["result"]) == (job_id, 7)
    await raw2.close()


RACER = """
import asyncio, json, sys
from amends.arcp import Runtime
from tests.arcp.raw import TOKENS, connected

async def agent(input, ctx):
    await asyncio.sleep(0.02)
    print(json.dumps(["ran", input]), flush=True)
    return ctx.job_id

async def main(url, count):
    runtime = Runtime(url, tokens=TOKENS)
    runtime.register_agent("agent", agent)
    async with runtime:
        raw = await connected(runtime)
        print(json.dumps(["ready"]), flush=True)
        sys.stdin.readline()
        for number in range(count):
            end = await raw.run("agent", number, idempotency_key=f"k{number}")
            print(json.dumps(["end", number, end["job_id"], end["payload"]["result"]]), flush=True)
        # Keep the runtime running: jobs of the other process may run here.
        sys.stdin.readline()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def test_two_processes_race_and_start_one_job(sqlite_url):
    """Two processes submit the same keys on one file: one of them runs each job, and both get its result."""
    count = 12
    racers = []
    for _ in range(2):
        # One after another: SQLite does not wait for its lock when two processes create the same file.
        racer = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RACER, sqlite_url, str(count)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert json.loads(await racer.stdout.readline()) == ["ready"]
        racers.append(racer)
    for racer in racers:
        racer.stdin.write(b"go\n")
    output = [[], []]

    async def read_lines(racer, lines):
        while sum(line[0] == "end" for line in lines) < count:
            lines.append(json.loads(await racer.stdout.readline()))

    async with asyncio.timeout(100):
        await asyncio.gather(*(read_lines(*pair) for pair in zip(racers, output, strict=True)))
        for racer in racers:
            racer.stdin.write(b"done\n")
            assert await racer.wait() == 0
    ran = [line[1] for lines in output for line in lines if line[0] == "ran"]
    assert sorted(ran) == list(range(count))
    ends = [[line[1:] for line in lines if line[0] == "end"] for lines in output]
    assert ends[0] == ends[1]
