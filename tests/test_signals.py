"""The suite sets the signal dispositions that its tests need, whatever the shell that started it has set."""

import subprocess
import sys
from pathlib import Path

CHILD = "import signal; print(signal.getsignal(signal.SIGHUP).name, signal.getsignal(signal.SIGINT))"
PROGRAM = f"""
import os, signal, subprocess, sys
import tests.conftest
subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
os.kill(os.getpid(), signal.SIGHUP)
print("alive")
"""


def test_programs_do_not_inherit_ignored_signals():
    """Under `nohup` and in the background of a shell: programs get the defaults, and a hang-up does not end the suite."""
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", ignoring, PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    default, alive = done.stdout.splitlines()
    assert default.startswith("SIG_DFL <built-in function default_int_handler>")
    assert alive == "alive"
