"""Real kills: a process on SQLite is killed before or after each operation of the store, and in the call."""

import sqlite3
from contextlib import closing

from amends.effects import Effects, InDoubtError
from amends.stores.clock import SystemClock
from tests.fork_server import Forks

FORKS = Forks()
CHILD = """
import asyncio, os, signal, sqlite3, sys
from contextlib import closing
from amends import stores
from amends.effects import Effects

folder, at = sys.argv[1], int(sys.argv[2])
seen = 0

def point():
    global seen
    seen += 1
    if seen == at:
        os.kill(os.getpid(), signal.SIGKILL)

class Dying:
    def __init__(self, part):
        self.part = part
    def __getattr__(self, name):
        found = getattr(self.part, name)
        if name == "table":
            return lambda *given: Dying(found(*given))
        if name not in {"transaction", "get", "put", "create", "delete"}:
            return found
        async def call(*given, **options):
            point()
            result = await found(*given, **options)
            point()
            return result
        return call

async def main():
    async with await stores.open(f"sqlite:///{folder}/e.db") as store:
        effects = Effects(Dying(store), lease=0.3)
        @effects.once(key="order")
        async def pay(order):
            point()
            with closing(sqlite3.connect(f"{folder}/paid.db", timeout=20)) as file, file:
                file.execute("INSERT INTO paid VALUES (1)")
            point()
            return "receipt"
        await pay(1)
        print(seen)

asyncio.run(main())
"""


class Later(SystemClock):
    """A minute later: the lease of the dead process has ended."""

    @staticmethod
    def steady():
        return SystemClock.steady() + 60


def paid(folder):
    with closing(sqlite3.connect(f"{folder}/paid.db", timeout=20)) as file, file:
        file.execute("CREATE TABLE IF NOT EXISTS paid (n)")
        return file.execute("SELECT count(*) FROM paid").fetchone()[0]


def test_a_process_is_killed_at_every_point(tmp_path):
    """Afterwards the payment was made at most once, and is done, pending, or runs now."""
    (tmp_path / "0").mkdir()
    paid(tmp_path / "0")
    points = int(FORKS.run(CHILD, [tmp_path / "0", 0]).stdout)
    assert points >= 6
    outcomes = set()
    for at in range(1, points + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        before = paid(folder)
        assert FORKS.run(CHILD, [folder, at]).returncode == -9
        happened = paid(folder) - before
        with Effects(f"sqlite:///{folder}/e.db", clock=Later()) as effects:

            @effects.once(key="order", ignore="folder")
            def pay(order, folder=folder):
                with closing(sqlite3.connect(f"{folder}/paid.db", timeout=20)) as file, file:
                    file.execute("INSERT INTO paid VALUES (1)")
                return "now"

            pending = [each.key for each in effects.pending()]
            try:
                outcome = pay(1)
            except InDoubtError:
                outcome = "doubt"
                assert pending == ["pay:1"]
        assert paid(folder) <= 1
        assert not (happened and outcome == "now")
        outcomes.add(outcome)
    assert outcomes == {"now", "doubt", "receipt"}
