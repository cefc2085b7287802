"""ARCP jobs on the page: delegations as a tree, what is left of budgets, and cancel."""

import asyncio
import contextlib
import re

import amends
from amends.arcp import Limits, Runtime, connect
from amends.errors import FaultError
from tests.page.test_app import client


async def test_jobs(tmp_path):
    """A child is below its parent, the budget shows what is left, and cancel ends a running job."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    running = asyncio.Event()
    runtime = Runtime(url, tokens={"secret": "alice"}, limits=Limits(drain=0.0))

    @runtime.register_agent("leaf")
    async def leaf(input, ctx):
        await ctx.metric("cost.inference", "0.25", "USD")
        return "done"

    @runtime.register_agent("parent")
    async def parent(input, ctx):
        await ctx.metric("cost.inference", "0.5", "USD")
        await ctx.delegate("leaf", 1, lease={})
        running.set()
        await asyncio.Event().wait()

    async with runtime, connect(runtime, token="secret") as session:
        lease = {"cost.budget": ["USD:5.00"], "agent.delegate": ["*"]}
        job = await session.submit("parent", 1, lease=lease)
        async with asyncio.timeout(30):
            await running.wait()
        page = amends.dashboard(
            f"sqlite:///{tmp_path}/failures.db", jobs=runtime, token="the-t0ken-of-these-tests"
        )
        async with client(page, token=None) as browser:
            await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"})
            # The child's cost is deducted from its parent's budget when its end is written.
            async with asyncio.timeout(30):
                while "4.25 of 5.00 USD" not in (text := (await browser.get("/jobs")).text):
                    await asyncio.sleep(0.02)
            assert text.index("parent@") < text.index("leaf@")
            assert 'class="d1"' in text
            cancel = f"/jobs/{job.job_id}/cancel"
            assert (await browser.post(cancel)).status_code == 403
            await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"})
            csrf = re.search(r'name="csrf" value="(\w+)"', (await browser.get("/jobs")).text)[1]
            assert (await browser.post(cancel, data={"csrf": csrf})).status_code == 303
            async with asyncio.timeout(30):
                while ">cancelled<" not in (await browser.get("/jobs")).text:
                    await asyncio.sleep(0.02)
            assert (await browser.post(cancel, data={"csrf": csrf})).status_code == 409
            assert (await browser.post("/jobs/none/cancel", data={"csrf": csrf})).status_code == 404
    async with client(amends.dashboard(f"sqlite:///{tmp_path}/failures.db", jobs=url)) as browser:
        assert "parent@" in (await browser.get("/jobs")).text


async def test_jobs_are_cancelled_by_their_store(tmp_path):
    """Without the runtime: one that runs, and one that waits in its queue."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    running = asyncio.Event()
    runtime = Runtime(url, tokens={"secret": "alice"}, limits=Limits(drain=0.0, running=1))

    @runtime.register_agent("wait")
    async def wait(input, ctx):
        running.set()
        await asyncio.Event().wait()

    async with runtime, connect(runtime, token="secret") as session:
        first = await session.submit("wait", 1)
        async with asyncio.timeout(30):
            await running.wait()
        second = await session.submit("wait", 2)
        page = amends.dashboard(
            f"sqlite:///{tmp_path}/failures.db", jobs=url, token="the-t0ken-of-these-tests"
        )
        async with client(page, token=None) as browser:
            await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"})
            csrf = re.search(r'name="csrf" value="(\w+)"', (await browser.get("/jobs")).text)[1]
            for job in (second, first):
                answer = await browser.post(f"/jobs/{job.job_id}/cancel", data={"csrf": csrf})
                assert answer.status_code == 303
            async with asyncio.timeout(30):
                while (await browser.get("/jobs")).text.count(">cancelled<") < 2:
                    await asyncio.sleep(0.02)
            answer = await browser.post(f"/jobs/{first.job_id}/cancel", data={"csrf": csrf})
            assert answer.status_code == 409


async def test_the_steps_of_a_job(tmp_path):
    """Their states, the question about one in doubt and how to answer it, without results."""
    runtime = Runtime(f"sqlite:///{tmp_path}/jobs.db", tokens={"secret": "alice"}, limits=Limits(drain=0.0))

    @runtime.register_agent("plan", repeatable=True)
    async def plan(input, ctx):
        async def pay(order):
            raise TimeoutError

        await ctx.step("look <b>", lambda: "s3cret")
        await ctx.step("pay", pay, 5, key="order-5")

    async with runtime, connect(runtime, token="secret") as session:
        job = await session.submit("plan")
        await asyncio.wait_for(_end(job), 30)
        page = amends.dashboard(f"sqlite:///{tmp_path}/failures.db", jobs=runtime)
        async with client(page) as browser:
            text = (await browser.get(f"/jobs/{job.job_id}")).text
            assert f'jobs/{job.job_id}"' in (await browser.get("/jobs")).text
            assert (await browser.get("/jobs/none")).status_code == 404
    assert "pay/order-5" in text
    assert "amends runtime answer URL JOB pay/order-5 --happened" in text
    assert ">doubt<" in text
    assert ">done<" in text
    assert "look &lt;b&gt;#1" in text
    assert "s3cret" not in text


async def _end(job):
    with contextlib.suppress(FaultError):
        await job.done
