"""
Recovery: call a function, and call it again where that can help and is safe, within hard bounds.

    recover(call, …)   arecover(call, …)   @recovering(…)   for attempt in attempts(…)
    recover_stream(source, …)   arecover_stream(source, …)

How a retry runs, file by file: `drivers` takes the options (`plan`), makes the calls and waits, `operation_flow` has the
order of events, `classify` says what a failure means, `stepper` keeps the attempts and asks `amends.decide`, `events` tells
the hooks, `give_up` builds the final error. `Upstream` is the state that all callers of one service share; its `controller`
decides which calls may be sent, and `queueing` waits for it. Decisions are pure; only `drivers` and `clock` wait.
"""

from __future__ import annotations

from amends.recovery.classify import fault_in_response
from amends.recovery.decorator import recovering
from amends.recovery.drivers import arecover, recover
from amends.recovery.events import Event, EventHook, add_hook, remove_hook, set_hooks
from amends.recovery.failover import Failover, Target, current_target
from amends.recovery.history import Attempt, History
from amends.recovery.iterators import Attempts, Try, attempts
from amends.recovery.origins import configure, route_scope, upstream_for
from amends.recovery.plan import Options
from amends.recovery.policies import ADCP, CLI, NONE, TASK, TOOL, from_retry_policy
from amends.recovery.scope import current_operation, time_left
from amends.recovery.sharing import Shared
from amends.recovery.stepper import Stepper
from amends.recovery.streams import arecover_stream, recover_stream
from amends.recovery.upstream import Snapshot, Upstream

__all__ = [
    "ADCP",
    "CLI",
    "NONE",
    "TASK",
    "TOOL",
    "Attempt",
    "Attempts",
    "Event",
    "EventHook",
    "Failover",
    "History",
    "Options",
    "Shared",
    "Snapshot",
    "Stepper",
    "Target",
    "Try",
    "Upstream",
    "add_hook",
    "arecover",
    "arecover_stream",
    "attempts",
    "configure",
    "current_operation",
    "current_target",
    "fault_in_response",
    "from_retry_policy",
    "recover",
    "recover_stream",
    "recovering",
    "remove_hook",
    "route_scope",
    "set_hooks",
    "time_left",
    "upstream_for",
]
