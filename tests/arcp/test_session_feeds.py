"""A session's subscription to a job: live if the job runs here, from its log otherwise, and every entry once."""

from types import SimpleNamespace

from amends.arcp.runtime.entries import JobEntry
from amends.arcp.runtime.server.session import OUTCOME, SUBMITTED, Feed


class Jobs:
    exclusive = True

    def __init__(self, **running):
        self.running = running
        self.waiting = []
        self.spawned = []
        self.tasks = SimpleNamespace(spawn=self._spawn)

    def _spawn(self, work):
        work.close()
        self.spawned.append(work)

    def __contains__(self, job_id):
        return job_id in self.running

    def get(self, job_id):
        return self.running.get(job_id)

    def wait_in_queue(self, job_id, follower):
        self.waiting.append(follower)


class Session:
    full = False

    def __init__(self, jobs):
        self.jobs = jobs
        self.feed = None
        self.queued = []

    def is_subscribed(self, feed):
        return feed is self.feed

    def enqueue_event(self, feed, position, entry):
        self.queued.append((position, entry.kind))

    def follow_child(self, accepted):
        self.queued.append(("child", accepted))


def feed(jobs, start=2, mode=SUBMITTED):
    session = Session(jobs)
    session.feed = Feed(session, "job_1", "", start, mode)
    return session.feed, session


def entry(kind, label=""):
    return JobEntry(kind, 1, 1, "node_1", 0.0, label=label)


def test_a_job_that_runs_here_pushes_its_entries():
    """If the feed has all entries so far; else it reads the log first."""
    job = SimpleNamespace(last=1, followers=[])
    jobs = Jobs(job_1=job)
    one, session = feed(jobs)
    one.begin()
    assert (job.followers, jobs.spawned) == ([one], [])
    one.push(2, [entry("event", "log"), entry("started"), entry("result")])
    assert (session.queued, one.next) == ([(2, "event"), (4, "result")], 5)
    late, _ = feed(jobs, start=1)
    late.begin()
    assert len(jobs.spawned) == 1


def test_a_queued_job_is_waited_for():
    """Only if no other node can start it, and without reading its log again and again."""
    jobs = Jobs()
    one, _ = feed(jobs)
    one.begin(waiting=True)
    assert (jobs.waiting, jobs.spawned) == ([one], [])
    jobs.exclusive = False
    one.begin(waiting=True)
    assert len(jobs.spawned) == 1


def test_a_feed_that_was_replaced_does_nothing():
    jobs = Jobs()
    one, session = feed(jobs)
    session.feed = None
    one.begin()
    assert (jobs.waiting, jobs.spawned) == ([], [])


def test_modes_are_flags():
    assert SUBMITTED & OUTCOME == 0
