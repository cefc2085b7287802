"""
The instants of a call, and what happens at one of them: processes are killed or stopped, once.

The plan of a run is the file `plan` in its folder. Processes write their ids to the folder `pids`. At the instant of
the plan the processes that it names are killed or stopped: by a server at an instant of its own work, by the proxy at one between
both ends.
"""

import json
import os
import signal
import time
from pathlib import Path

INSTANTS = (
    "before sending",
    "sent",
    "before the effect",
    "after the effect",
    "after the record",
    "in the answer",
    "between answer and client",
)
INSIDE = INSTANTS[2:5]
"""Those that only the process with the effect sees; the others are seen between both ends."""


def enter(folder, name):
    """Say that this process has the part `name` now."""
    pids = Path(folder) / "pids"
    pids.mkdir(exist_ok=True)
    (pids / f".{name}").write_text(str(os.getpid()))
    (pids / f".{name}").replace(pids / name)


def pid_of(folder, name):
    """Return the process that has a part, or None."""
    try:
        return int((Path(folder) / "pids" / name).read_text())
    except (OSError, ValueError):
        return None


def state_of(pid):
    """Return the state of a process as /proc names it: T is stopped; Z or nothing is ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def plan(folder, how, dies, instant):
    """Write the plan of a run."""
    (Path(folder) / "plan").write_text(json.dumps([how, dies, instant]))


def reach(folder, instant):
    """Kill or stop the processes of the plan, if this is its instant and it has not happened yet. Return whether it was."""
    folder = Path(folder)
    how, dies, at = json.loads((folder / "plan").read_text())
    if instant != at:
        return False
    try:
        (folder / "died").touch(exist_ok=False)
    except FileExistsError:
        return False
    if how == "cut":
        return True
    if dies == ["lock"]:
        _wait_for_lock(folder)
        return True
    victims = [pid for pid in (pid_of(folder, name) for name in dies) if pid]
    for pid in sorted(victims, key=lambda pid: pid == os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        except ProcessLookupError:
            continue
    if os.getpid() in victims:
        time.sleep(0.1)  # until all threads are stopped
    return True


def _wait_for_lock(folder):
    (folder / "lock").touch()
    until = time.monotonic() + 20
    while not (folder / "locked").exists() and time.monotonic() < until:
        time.sleep(0.01)
