"""T12: the timeline of a failed task shows nothing of the inside."""

from amends.errors import task as errors
from amends.tasks import Agent
from amends.tasks.timeline import timeline

SECRETS = ("hunter2", "db.internal", "10.0.0.5", "/srv/app")
LEAKING = "postgres://svc:hunter2@db.internal/x refused 10.0.0.5:5432, see /srv/app/settings.py"


async def test_the_timeline_of_a_failed_task(manual):
    """The message of an error is redacted; its code stays."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def leak(payload, ctx):
        raise errors.KnowledgeNotFoundError(LEAKING)

    manual.register(agent)
    await manual.submit("leak", id="t")
    await manual.drain()
    shown = str(timeline(await manual.records("t")))
    assert "KNOWLEDGE_NOT_FOUND" in shown
    assert [secret for secret in SECRETS if secret in shown] == []
