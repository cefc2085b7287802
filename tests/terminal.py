"""Run a command at a pseudo-terminal."""

import os
import pty
import select
import subprocess
import time


def at_a_terminal(argv, typed=b"", after=b"", *, env=None, **streams):
    """
    Run a command whose streams are a terminal, and return its exit code and output.

    Once the output contains `after`, `typed` is sent as the whole input. `env` is the whole environment. `streams`
    connects single streams to something else.
    """
    ours, theirs = pty.openpty()
    connected = {name: theirs for name in ("stdin", "stdout", "stderr")} | streams
    env = {**os.environ, "TERM": "xterm"} if env is None else env
    child = subprocess.Popen(argv, env=env, start_new_session=True, **connected)
    os.close(theirs)
    seen, until = b"", time.monotonic() + 60
    while time.monotonic() < until:
        if typed and after in seen:
            os.write(ours, typed + b"\n\x04")
            typed = b""
        if select.select([ours], [], [], 0.1)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break  # a terminal reports this when its last writer has closed it
            if not piece:
                break
            seen += piece
    os.close(ours)
    return child.wait(30), seen.decode()
