"""The periodic work of a node: one round after another, whatever the store does."""

import asyncio
from types import SimpleNamespace

import pytest

from amends.arcp import Limits
from amends.arcp.runtime.cluster.maintenance import Maintenance
from amends.stores import StoreUnavailableError


class Part:
    """Records calls of any method."""

    def __init__(self, calls, name, **facts):
        self._calls, self._name = calls, name
        self.__dict__.update(facts)

    def __getattr__(self, method):
        async def called(*arguments):
            self._calls.append((f"{self._name}.{method}", *arguments))

        return called


def maintenance(calls, *, exclusive, sessions=None):
    facts = {"exclusive": exclusive, "id": "n1", "dead_peers": {"n2"}, "is_responsible": lambda one: True}

    async def active(_):
        for row in ():
            yield row

    class Quota:
        def counting(self):
            class Context:
                __enter__ = lambda self: ()  # noqa: E731
                __exit__ = lambda self, *error: None  # noqa: E731

            return Context()

        def update(self, *rows):
            calls.append(("quota.update",))

    jobs = SimpleNamespace(limits=Limits(node_lease=0.003), ledger=SimpleNamespace(active=active))
    return Maintenance(
        jobs,
        sessions or Part(calls, "sessions"),
        Part(calls, "membership", **facts),
        Quota(),
        Part(calls, "ended"),
        Part(calls, "takeover"),
        Part(calls, "credentials"),
    )


async def rounds(one, until):
    task = asyncio.create_task(one.maintain())
    while not until():
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("exclusive", [True, False])
async def test_a_round(exclusive):
    """A node alone counts its jobs; otherwise it looks for dead nodes and takes their jobs over."""
    calls = []
    one = maintenance(calls, exclusive=exclusive)
    await rounds(one, lambda: ("credentials.clean_up",) in calls)
    names = [name for name, *_ in calls]
    assert names[:2] == ["sessions.expire", "ended.expire"]
    assert ("quota.update" in names) is exclusive
    assert ("takeover.recover_orphans" in names) is not exclusive
    if not exclusive:
        # The first round looks at all nodes, and the ended jobs of the dead one are taken over.
        assert ("takeover.recover_orphans", None) in calls
        assert "ended.take_over" in names
        assert one._membership.dead_peers == set()


async def test_a_round_that_fails_is_followed_by_another():
    calls = []

    class Failing:
        async def expire(self):
            calls.append("tried")
            raise StoreUnavailableError("no")

    await rounds(maintenance(calls, exclusive=True, sessions=Failing()), lambda: len(calls) >= 3)
    assert set(calls) == {"tried"}
