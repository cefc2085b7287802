"""Agents of a node whose clock is wrong: importing them shifts it by TESTS_CLOCK_WRONG seconds."""

from __future__ import annotations

import os
import time

from tests.cluster.work import patient, steps

__all__ = ["patient", "steps"]

_right, _shift = time.time, float(os.environ["TESTS_CLOCK_WRONG"])
time.time = lambda: _right() + _shift
