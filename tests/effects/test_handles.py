"""Store handles: event loops that come and go, threads, forks, and stores that were given open."""

import asyncio
import os

import pytest

from amends import stores
from amends.effects import Effects


def counting(effects):
    runs = []

    @effects.once(key="n")
    async def act(n):
        runs.append(n)
        return n

    @effects.once(key="n", name="act_plain")
    def act_plain(n):
        runs.append(n)
        return n

    return act, act_plain, runs


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_event_loops_and_threads_share_the_ledger(kind, tmp_path):
    """One ledger in three event loops after each other, and in plain functions inside and outside of them."""
    effects = Effects("memory:" if kind == "memory" else f"sqlite:///{tmp_path}/e.db")
    act, act_plain, runs = counting(effects)

    async def main(n):
        assert act_plain(7) == 7
        assert await act(n) == n
        assert await act(1) == 1

    for n in (1, 2, 3):
        asyncio.run(main(n))
    assert act_plain(7) == 7
    assert runs == [7, 1, 2, 3]
    effects.close()


async def test_a_store_that_was_given_open(tmp_path):
    """Coroutines use it; a plain function opens the file by its own handle; closing the ledger leaves the store open."""
    async with await stores.open(f"sqlite:///{tmp_path}/e.db") as store:
        async with Effects(store) as effects:
            act, act_plain, runs = counting(effects)
            assert await act(1) == await act(1) == 1
            assert await asyncio.to_thread(act_plain, 1) == await asyncio.to_thread(act_plain, 1) == 1
            assert runs == [1, 1]
            assert len(await effects.alist()) == 2
        assert await store.names()


def test_after_a_fork(tmp_path):
    """A child process opens the store again, and knows what its parent did."""
    effects = Effects(f"sqlite:///{tmp_path}/e.db")
    _, act_plain, runs = counting(effects)
    act_plain(1)
    child = os.fork()
    if child == 0:
        try:
            ok = act_plain(1) == 1 and act_plain(2) == 2 and runs == [1, 2]
        finally:
            os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert act_plain(2) == 2
    assert runs == [1]
    effects.close()


def test_wrong_stores():
    """A mistake in the URL is refused at once."""
    with pytest.raises(ValueError, match="store URL"):
        Effects("mysql://x")
