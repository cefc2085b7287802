"""
OpenTelemetry metrics of a runtime: running jobs, sessions, queues and finished jobs.

    import amends.arcp.otel
    amends.arcp.otel.instrument(runtime)

- `amends.arcp.jobs.running`, `amends.arcp.sessions` and `amends.arcp.nodes` are gauges of this node; the last one is the
  number of live nodes that it knows.
- `amends.arcp.queue.waiting` and `amends.arcp.queue.lag` (seconds since the oldest was submitted) are gauges by `amends.agent`
  for the whole cluster, updated three times per lease.
- `amends.arcp.jobs.ended` counts by `error.code` (absent: success), `amends.arcp.jobs.taken_over` the jobs of dead nodes.

All have the attribute `amends.node`, the runtime's name. The module needs only the API package and never configures a
provider. The metrics contain names and numbers, never the input or output of a job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

try:
    from opentelemetry import metrics
except ImportError as missing:
    raise ImportError("amends.arcp.otel needs an extra: pip install 'amends[otel]'") from missing

from amends._version import __version__

if TYPE_CHECKING:
    from amends.arcp.runtime import Runtime
    from amends.arcp.runtime.node import Node

__all__ = ["instrument", "uninstrument"]

_SCOPE = "amends.arcp"

_Numbers = Iterable[tuple[float, dict[str, str]]]


_instrumented: WeakSet[Runtime] = WeakSet()


def instrument(runtime: Runtime) -> None:
    """
    Report a runtime whenever metrics are collected while it runs. A second call has no effect.

        runtime = Runtime("nats://localhost:4222/jobs", tokens={"secret": "alice"})
        amends.arcp.otel.instrument(runtime)
    """
    _instrumented.add(runtime)
    _instruments()


def uninstrument(runtime: Runtime) -> None:
    """
    Stop reporting a runtime.

        amends.arcp.otel.uninstrument(runtime)
    """
    _instrumented.discard(runtime)


@cache
def _instruments() -> None:
    """Create the instruments once for all runtimes of a process: a second one of the same name would not be collected."""
    meter = metrics.get_meter(_SCOPE, __version__)
    for create, name, unit, description, read in (
        (meter.create_observable_gauge, "jobs.running", "{job}", "Jobs this node runs", _running),
        (meter.create_observable_gauge, "sessions", "{session}", "Sessions with a connection", _sessions),
        (meter.create_observable_gauge, "nodes", "{node}", "Nodes known to be alive", _nodes),
        (meter.create_observable_gauge, "queue.waiting", "{job}", "Jobs that wait, by agent", _waiting),
        (meter.create_observable_gauge, "queue.lag", "s", "Since the oldest was submitted", _lag),
        (meter.create_observable_counter, "jobs.ended", "{job}", "Jobs that ended, by code", _ended),
        (meter.create_observable_counter, "jobs.taken_over", "{job}", "Jobs of dead nodes", _taken_over),
    ):
        create(f"{_SCOPE}.{name}", callbacks=[_callback(read)], unit=unit, description=description)


def _callback(read: Callable[[Node], _Numbers]) -> Callable[[Any], list[metrics.Observation]]:
    def observe(_: object) -> list[metrics.Observation]:
        return [
            metrics.Observation(value, {"amends.node": node.name, **attributes})
            for node in [runtime.node for runtime in list(_instrumented)]
            if node is not None
            for value, attributes in read(node)
        ]

    return observe


def _running(node: Node) -> _Numbers:
    return [(node.capacity.running, {})]


def _sessions(node: Node) -> _Numbers:
    return [(len(node.sessions.attached), {})]


def _nodes(node: Node) -> _Numbers:
    return [(1 + len(node.membership.peers), {})]


def _waiting(node: Node) -> _Numbers:
    return [(count, {"amends.agent": agent}) for agent, (count, _) in list(node.takeover.waiting.items())]


def _lag(node: Node) -> _Numbers:
    now = time.time()
    return [
        (max(0.0, now - since), {"amends.agent": agent})
        for agent, (_, since) in list(node.takeover.waiting.items())
    ]


def _ended(node: Node) -> _Numbers:
    return [(count, {"error.code": code} if code else {}) for code, count in list(node.runner.counts.items())]


def _taken_over(node: Node) -> _Numbers:
    return [(node.takeover.taken_over, {})]
