"""Ids of messages and jobs."""

from __future__ import annotations

import re
import subprocess
import sys

from amends.arcp import wire


def test_ids():
    """Unique, sortable by time and of one form; a forked child generates different ones."""
    ids = [wire.message_id() for _ in range(10_000)]
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids)
    assert all(re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", id) for id in ids[:100])
    assert re.fullmatch(r"job_[0-7][0-9A-HJKMNP-TV-Z]{25}", wire.new_id("job"))
    assert len({wire.new_id("job")[14:] for _ in range(1000)}) == 1000
    script = """
import os
from amends.arcp.wire import message_id
message_id()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, message_id()[10:].encode())
    os._exit(0)
os.wait()
assert os.read(reading, 100).decode()[:8] != message_id()[10:18]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
