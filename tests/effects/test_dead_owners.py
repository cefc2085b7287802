"""An effect whose process was killed is in doubt at once: a lock proves that the process has ended."""

import subprocess
import sys
import time

import pytest

from amends.effects import Effects, InDoubtError

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no such locks; leases end by time"
)

CHILD = """
import sys, time
from amends.effects import Effects

effects = Effects(f"sqlite:///{sys.argv[1]}/e.db")

@effects.once(key="order")
def pay(order):
    print("paying", flush=True)
    time.sleep(600)

pay(1)
"""


def test_a_killed_process_leaves_a_doubt_at_once(tmp_path):
    """While it lives, even stopped, its effect runs; after kill -9 it is in doubt, long before the lease of 30 s ends."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "paying\n"
        with Effects(f"sqlite:///{tmp_path}/e.db", wait=1) as effects:

            @effects.once(key="order")
            def pay(order):
                return "paid twice"

            with pytest.raises(Exception) as running:
                pay(1)
            assert running.value.fault.code != InDoubtError.code
            child.kill()
            child.wait()
            began = time.monotonic()
            with pytest.raises(InDoubtError):
                pay(1)
            assert time.monotonic() - began < 20
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
