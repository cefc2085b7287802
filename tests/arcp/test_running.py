"""The jobs of a node: their places, and the followers of jobs that wait in a queue."""

from types import SimpleNamespace

from amends.arcp import Limits
from amends.arcp.runtime.agents import Agents
from amends.arcp.runtime.cluster.quota import Capacity
from amends.arcp.runtime.jobs.running import RunningJobs


class Quota:
    def __init__(self):
        self.ended = []

    def job_ended(self, principal):
        self.ended.append(principal)


class Follower:
    def __init__(self):
        self.begun = 0

    def begin(self):
        self.begun += 1


def job(job_id="job_1", **more):
    spec = SimpleNamespace(job_id=job_id, principal="alice", agent="a@1")
    return SimpleNamespace(spec=spec, followers=[], dropped=0, is_running=True, **more)


async def running():
    capacity, quota = Capacity(Limits(running=2), Agents()), Quota()
    jobs = RunningJobs(None, Limits(), None, None, capacity, quota, exclusive=True)
    return jobs, capacity, quota


async def test_an_ended_job_frees_its_place_once():
    """Its followers continue with its log."""
    jobs, capacity, quota = await running()
    one, follower = job(), Follower()
    one.followers.append(follower)
    capacity.reserve("a@1")
    jobs.add(one)
    assert ("job_1" in jobs, len(jobs), jobs["job_1"], list(jobs)) == (True, 1, one, [one])
    jobs.remove(one)
    jobs.remove(one)
    assert (capacity.running, quota.ended, follower.begun, jobs.get("job_1")) == (0, ["alice"], 1, None)


async def test_a_job_that_was_started_again_replaces_the_old_run():
    jobs, _, _ = await running()
    dropped = []
    jobs.add(job(drop=lambda: dropped.append(1)))
    new = job()
    jobs.add(new)
    assert (dropped, jobs["job_1"]) == ([1], new)


async def test_followers_wait_for_a_queued_job():
    jobs, _, _ = await running()
    waiting = [Follower(), Follower()]
    for follower in waiting:
        jobs.wait_in_queue("job_1", follower)
    jobs.add(job())
    jobs.left_queue("job_1")
    assert [follower.begun for follower in waiting] == [1, 1]


async def test_places():
    """No job of an agent overtakes the jobs in its queue."""
    _, capacity, _ = await running()
    assert capacity.has_room("a@1")
    capacity.add_to_backlog("a@1")
    assert (capacity.has_room("a@1"), capacity.has_room("b@1")) == (False, True)
    capacity.reserve("b@1")
    capacity.reserve("b@1")
    assert (capacity.full, capacity.has_room("b@1")) == (True, False)
    capacity.queue_wakeup.clear()
    capacity.release("b@1")
    assert capacity.queue_wakeup.is_set()
    capacity.draining = True
    assert not capacity.has_room("b@1")
