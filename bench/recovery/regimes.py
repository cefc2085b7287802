"""
The regimes outside a to h, run on the pure controller in a discrete event simulator.

    python -m bench.recovery.regimes [names] [--seeds N] [--first SEED]

One run costs a tenth of a run on the whole engine. `tests/bench/test_regimes.py` checks on samples that both agree.
The operation here follows `amends.recovery.operation_flow`: five calls, 300 s of waiting, the default backoff.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import deque
from heapq import heappop, heappush

from amends.recovery.controller import OPEN, Controller
from amends.recovery.evidence import HINT, PLAIN, REFUSED, SILENT
from amends.recovery.process_quota import ProcessQuota
from amends.recovery.quota import Quota
from bench.recovery.metrics import percentile
from bench.recovery.regime_list import REGIMES, Regime

ATTEMPTS, PATIENCE = 5, 300.0


class Op:
    __slots__ = (
        "at", "attempt", "client", "index", "over", "repeats", "sent", "successes", "waited", "waits_since",
    )  # fmt: skip

    def __init__(self, index: int, at: float, client: Process) -> None:
        self.index, self.at, self.client = index, at, client
        self.attempt, self.waited, self.over, self.sent, self.waits_since = 0, 0.0, 0.0, 0.0, 0.0
        self.successes = 0
        self.repeats = False  # without an Upstream: whether it shares that of the repeats


class Process:
    """One client process: a controller, a quota, and the queue."""

    __slots__ = ("bare", "controller", "queue", "quota", "timer")

    def __init__(self, policy: str) -> None:
        self.controller = Controller(aside=policy == "bare")
        self.quota = Quota()
        self.bare = ProcessQuota()
        self.queue: deque[Op] = deque()
        self.timer = math.inf


class Result:
    def __init__(self, regime: Regime, ends: list[float], ok: list[bool], arrivals: list, calls: int) -> None:
        self.regime, self.ends, self.ok, self.arrivals, self.calls = regime, ends, ok, arrivals, calls


class Simulation:
    """One run."""

    def __init__(self, regime: Regime, seed: int, policy: str = "amends") -> None:
        self.regime = regime
        self.service = regime.build(seed)
        self.arrivals = regime.load(seed)
        self.policy = policy
        self.draw = random.Random(f"{policy}:{seed}").random
        self.now = 0.0
        self.heap: list = []
        self.order = 0
        self.calls = self.refused = 0
        count = 1 + max((client for _, client in self.arrivals), default=0)
        self.processes = [Process(policy) for _ in range(count)]
        self.ends = [math.nan] * len(self.arrivals)
        self.ok = [False] * len(self.arrivals)
        self.trace: list | None = None

    def later(self, at: float, function, *args) -> None:
        self.order += 1
        heappush(self.heap, (at, self.order, function, args))

    def run(self) -> Simulation:
        arrivals, index, heap = self.arrivals, 0, self.heap
        begin = self.begin if self.policy == "amends" else self.begin_plain
        while heap or index < len(arrivals):
            if index < len(arrivals) and (not heap or arrivals[index][0] <= heap[0][0]):
                self.now = arrivals[index][0]
                begin(Op(index, self.now, self.processes[arrivals[index][1]]))
                index += 1
            else:
                self.now, _, function, args = heappop(heap)
                function(*args)
        return self

    # A call and its outcome ------------------------------------------------------------------------------------

    def send(self, op: Op) -> None:
        op.attempt += 1
        op.sent, op.successes = self.now, op.client.bare.successes
        self.calls += 1
        op.client.controller.sent += self.policy == "amends" or op.repeats
        when, status, hint = self.service.call(self.now, op.index, op.attempt, self.arrivals[op.index][1])
        self.refused += status == 429
        limit = self.now + self.regime.timeout
        if when is None or when > limit:
            self.later(limit, self.finished if self.policy == "amends" else self.finished_plain, op, 0, None)
        else:
            self.later(
                when, self.finished if self.policy == "amends" else self.finished_plain, op, status, hint
            )

    def end(self, op: Op, ok: bool) -> None:
        self.ends[op.index], self.ok[op.index] = self.now, ok

    # amends ----------------------------------------------------------------------------------------------------

    def begin(self, op: Op) -> None:
        process = op.client
        if process.controller.state == OPEN and not process.queue:
            self.send(op)
        else:
            process.controller.traffic.arrived()
            self.park(op)

    def park(self, op: Op) -> None:
        process = op.client
        over = self.now + PATIENCE - op.waited
        controller = process.controller
        soon = controller.hold.doubted and controller.hold.resume_at < over
        if controller.held_until() > over and controller.hold.resume_at > self.now and not soon:
            self.end(op, False)
            return
        op.over, op.waits_since = over, self.now
        process.queue.append(op)
        self.later(over, self.expire, op, op.attempt)
        self.let_out(process)

    def expire(self, op: Op, attempt: int) -> None:
        process = op.client
        if op.attempt != attempt or op not in process.queue:
            return
        process.queue.remove(op)
        if attempt == 0 and process.controller.may_force(self.now):
            self.send(op)
        else:
            self.end(op, False)
        self.let_out(process)

    def let_out(self, process: Process) -> None:
        queue, controller = process.queue, process.controller
        while queue:
            head = queue[0]
            if head.attempt and controller.probes_fresh:
                head = next((op for op in queue if not op.attempt), head)
            at = controller.admit(self.now, tries=head.attempt)
            if at:
                if at < process.timer:
                    process.timer = at
                    self.later(at, self.tick, process, at)
                return
            if head is queue[0]:
                queue.popleft()
            else:
                queue.remove(head)
            head.waited += self.now - head.waits_since
            self.send(head)

    def tick(self, process: Process, at: float) -> None:
        if process.timer == at:
            process.timer = math.inf
        self.let_out(process)

    def finished(self, op: Op, status: int, hint: float | None) -> None:
        process, controller = op.client, op.client.controller
        if status in {200, 422}:
            process.quota.earned += 1
            controller.succeeded(self.now, op.sent, waiting=bool(process.queue), repeat=op.attempt > 1)
            self.end(op, status == 200)
            self.let_out(process)
            return
        kind = SILENT if status == 0 else HINT if hint is not None else REFUSED if status == 429 else PLAIN
        added = 0.0 if hint is None else self.draw() * min(0.5 * hint, max(0.25, hint / 10))
        wait = added + (hint or 0.0)
        kept = (hint or 0.0) + min(added, 5.0)
        held = controller.failed(
            self.now,
            op.sent,
            self.draw(),
            kind,
            kept,
            repeat=op.attempt - 1,
            waiting=len(process.queue),
        )
        if op.attempt >= ATTEMPTS or (hint is not None and op.waited + hint > PATIENCE):
            self.end(op, False)
        elif held:
            self.park(op)
        else:
            delay = wait if hint is not None else min(60.0, 2.0 ** (op.attempt - 1)) * (1 - 0.5 * self.draw())
            if op.waited + delay > PATIENCE:
                self.end(op, False)
            else:
                op.waited += delay
                self.later(self.now + delay, self.repeat, op, self.now + 2 * delay)
        self.let_out(process)

    def repeat(self, op: Op, over: float) -> None:
        process = op.client
        if process.controller.state == OPEN and not process.queue:
            at = process.quota.take(self.now, process.controller.traffic.good_rate(self.now))
            if at == 0.0:
                self.send(op)
            elif at <= over:
                op.waited += at - self.now
                self.later(at, self.repeat, op, over)
            else:
                self.end(op, False)
        else:
            self.park(op)

    # no retry, and a plain loop of five with backoff ----------------------------------------------------------------

    def begin_plain(self, op: Op) -> None:
        self.send(op)

    def finished_plain(self, op: Op, status: int, hint: float | None) -> None:
        process, held = op.client, False
        process.bare.successes += status == 200
        if op.repeats:
            held = self.report_repeat(op, status, hint)
        if status in {200, 422} or self.policy == "no retry" or op.attempt >= ATTEMPTS:
            self.end(op, status == 200)
            return
        if held:
            self.park(op)
            return
        delay = hint if hint is not None else min(60.0, 2.0 ** (op.attempt - 1)) * (1 - 0.5 * self.draw())
        if op.waited + delay > PATIENCE:
            self.end(op, False)
        else:
            op.waited += delay
            if self.policy == "loop" or (status == 429 and hint is not None and op.attempt == 1):
                self.later(self.now + delay, self.send, op)
            else:
                self.later(self.now + delay, self.repeat_bare, op, status, hint)

    def report_repeat(self, op: Op, status: int, hint: float | None) -> bool:
        """Without an Upstream: report a call to that of the repeats. Return whether it holds back all of them."""
        process, controller, held = op.client, op.client.controller, False
        if status in {200, 422}:
            controller.succeeded(self.now, op.sent, waiting=bool(process.queue))
        else:
            kind = (
                SILENT if status == 0 else HINT if hint is not None else REFUSED if status == 429 else PLAIN
            )
            held = controller.failed(self.now, op.sent, self.draw(), kind, hint or 0.0, limited=status == 429)
        self.let_out(process)
        return held

    def repeat_bare(self, op: Op, status: int, hint: float | None) -> None:
        """Without an Upstream: the quota of the process, and the queue of its repeats."""
        process, controller = op.client, op.client.controller
        upstream = process.bare.repeats_of(None, self.now)
        if not op.repeats:
            op.repeats = True
            if not controller.limited or controller.state == OPEN:
                controller.traffic.know(self.now, upstream._controller.traffic.rate(self.now))
            controller.traffic.failed(self.now)
        silent = 0.0 if status else self.now - op.sent
        if controller.state == OPEN and not process.queue:
            if process.bare.take(self.now, silent=silent, before=op.successes) == 0.0:
                self.send(op)
                return
            kind = (
                SILENT if status == 0 else HINT if hint is not None else REFUSED if status == 429 else PLAIN
            )
            controller.shut(self.now, op.sent, self.draw(), kind, hint or 0.0, limited=status == 429)
        self.park(op)


def measure(run: Simulation) -> dict[str, float]:
    """Return success %, calls per success, p50/p99 and, where the regime has them, goodput and recovery."""
    regime = run.regime
    chosen = [i for i in range(len(run.arrivals)) if regime.counted(run.service, i, run.arrivals[i])]
    spans = [(run.ends[i] - run.arrivals[i][0]) / regime.latency for i in chosen if run.ok[i]]
    found = {
        "success": 100.0 * len(spans) / max(1, len(chosen)),
        "calls": run.calls / max(1, sum(run.ok)),
        "p50": percentile(spans, 0.5),
        "p99": percentile(spans, 0.99),
    }
    if regime.refused:
        found["refused"] = float(run.refused)
    last = run.arrivals[-1][0]
    if regime.capacity:
        good = sum(ok and regime.settled <= end < last for ok, end in zip(run.ok, run.ends, strict=True))
        found["goodput"] = good / (last - regime.settled) / regime.capacity
    if regime.spell_end:
        width = max(5.0, 150 * last / len(run.arrivals))
        bins = int(last / width)
        came, went = [0] * bins, [0] * bins
        for i, (at, _) in enumerate(run.arrivals):
            if at < bins * width:
                came[int(at / width)] += 1
            if run.ok[i] and run.ends[i] < bins * width:
                went[int(run.ends[i] / width)] += 1
        first = math.ceil(regime.spell_end / width)
        low = [i for i in range(first, bins) if went[i] < 0.9 * came[i]]
        back = next((i for i in range(first, bins) if i not in low), bins)
        found["back"] = back * width - regime.spell_end
        found["relapses"] = sum(1 for i in low if i > back and i - 1 in low)
    return found


def table(names: list[str], seeds: range, policies: tuple[str, ...]) -> None:
    for name in names:
        regime = REGIMES[name]
        for policy in policies:
            runs = [measure(Simulation(regime, seed, policy).run()) for seed in seeds]
            mean = {key: sum(run[key] for run in runs) / len(runs) for key in runs[0]}
            worst = min(run["success"] for run in runs)
            text = "  ".join(f"{key} {value:.4g}" for key, value in mean.items())
            print(f"{name:44} {policy:9} {text}  (worst {worst:.1f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all by default")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--policies", default="amends,no retry")
    options = parser.parse_args()
    names = [name for name in REGIMES if not options.names or any(part in name for part in options.names)]
    table(names, range(options.first, options.first + options.seeds), tuple(options.policies.split(",")))


if __name__ == "__main__":
    sys.exit(main())
