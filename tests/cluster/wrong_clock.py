"""Agents of a node with a wrong clock: importing this module shifts it by TESTS_CLOCK_WRONG seconds."""

from __future__ import annotations

import os
import time

from tests.cluster.work import patient, steps

__all__ = ["patient", "steps"]

_right, _shift = time.time, float(os.environ["TESTS_CLOCK_WRONG"])
time.time = lambda: _right() + _shift
