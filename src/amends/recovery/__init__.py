"""
Getting calls through, within hard bounds, and never making an outage worse.

    recover(call, …)   arecover(call, …)   @recovering(…)   for attempt in attempts(…)

The verdict is pure (`amends.decide`, `Stepper`); what callers of one service share is an `Upstream`; the drivers
only call, wait and report.
"""

from __future__ import annotations

from amends.recovery.decorator import recovering
from amends.recovery.drivers import arecover, recover
from amends.recovery.events import Event, EventHook, add_hook, remove_hook, set_hooks
from amends.recovery.health import Tuning
from amends.recovery.history import Attempt
from amends.recovery.iterators import Attempts, Try, attempts
from amends.recovery.policies import ADCP, CLI, NONE, TASK, from_retry_policy
from amends.recovery.scope import current_operation, time_left
from amends.recovery.stepper import Stepper
from amends.recovery.to_fault import failed_answer
from amends.recovery.upstream import Snapshot, Upstream

__all__ = [
    "ADCP",
    "CLI",
    "NONE",
    "TASK",
    "Attempt",
    "Attempts",
    "Event",
    "EventHook",
    "Snapshot",
    "Stepper",
    "Try",
    "Tuning",
    "Upstream",
    "add_hook",
    "arecover",
    "attempts",
    "current_operation",
    "failed_answer",
    "from_retry_policy",
    "recover",
    "recovering",
    "remove_hook",
    "set_hooks",
    "time_left",
]
