"""
What recovery costs a call that succeeds at once: ours and the others, interleaved, CPU time, medians.

Every library wraps the same function that does nothing, at its plain defaults. A round measures each contender once,
in shuffled order, so that a slow moment of the machine hits all of them; the overhead is the contender's time minus that
of the bare call in the same round, and the ratio is against google-api-core's in the same round.
"""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Callable

import backoff
import redress
import stamina
import tenacity
from google.api_core import retry as google
from google.api_core import retry_async as google_async

from amends import Operation, Upstream, arecover, recover
from amends.recovery import recovering

ROUNDS = 60
CALLS = 4000
REFERENCE = "google-api-core"


def work() -> int:
    return 1


async def awork() -> int:
    return 1


def by_hand() -> int:
    for _ in range(5):
        try:
            return work()
        except OSError:
            time.sleep(1)
    raise OSError


async def by_hand_async() -> int:
    for _ in range(5):
        try:
            return await awork()
        except OSError:
            await asyncio.sleep(1)
    raise OSError


def sync_contenders() -> dict[str, Callable[[], int]]:
    upstream, second = Upstream("one"), Upstream("two")
    read = Operation(name="work", read_only=True)
    policy = redress.Policy(
        retry=redress.Retry(classifier=redress.default_classifier, strategy=redress.decorrelated_jitter())
    )
    return {
        "bare call": work,
        "bare for loop": by_hand,
        "amends, decorator": recovering(upstream=None)(work),
        "amends, recover()": lambda: recover(work),
        "amends, recover(operation)": lambda: recover(work, operation=read),
        "amends, decorator(operation)": recovering(operation=read, upstream=None)(work),
        "amends, decorator, shared Upstream": recovering(upstream=upstream)(work),
        "amends, recover(), shared Upstream": lambda: recover(work, upstream=second),
        REFERENCE: google.Retry()(work),
        "backoff": backoff.on_exception(backoff.expo, OSError)(work),
        "redress": lambda: policy.call(work),
        "stamina": stamina.retry(on=OSError)(work),
        "tenacity": tenacity.retry(work),
    }


def async_contenders() -> dict[str, Callable[[], object]]:
    upstream, second = Upstream("one"), Upstream("two")
    read = Operation(name="work", read_only=True)
    policy = redress.AsyncPolicy(
        retry=redress.AsyncRetry(
            classifier=redress.default_classifier, strategy=redress.decorrelated_jitter()
        )
    )
    return {
        "bare call": awork,
        "bare for loop": by_hand_async,
        "amends, decorator": recovering(upstream=None)(awork),
        "amends, recover()": lambda: arecover(awork),
        "amends, recover(operation)": lambda: arecover(awork, operation=read),
        "amends, decorator(operation)": recovering(operation=read, upstream=None)(awork),
        "amends, decorator, shared Upstream": recovering(upstream=upstream)(awork),
        "amends, recover(), shared Upstream": lambda: arecover(awork, upstream=second),
        REFERENCE: google_async.AsyncRetry()(awork),
        "backoff": backoff.on_exception(backoff.expo, OSError)(awork),
        "redress": lambda: policy.call(awork),
        "stamina": stamina.retry(on=OSError)(awork),
        "tenacity": tenacity.retry(awork),
    }


def timed(call: Callable[[], int], calls: int) -> float:
    """Seconds of CPU per call."""
    clock = time.process_time_ns
    began = clock()
    for _ in range(calls):
        call()
    return (clock() - began) / calls / 1e9


def timed_async(call: Callable[[], object], calls: int) -> float:
    async def main() -> float:
        clock = time.process_time_ns
        began = clock()
        for _ in range(calls):
            await call()
        return (clock() - began) / calls / 1e9

    return asyncio.run(main())


def measure(contenders: dict, timer: Callable, rounds: int, calls: int) -> dict[str, list[float]]:
    """CPU seconds per call of each contender, one number per round."""
    order, found = list(contenders), {name: [] for name in contenders}
    for name in order:
        timer(contenders[name], calls // 4)  # warm
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            found[name].append(timer(contenders[name], calls))
    return found


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median, and the 95 % interval of the median by ranks."""
    ordered = sorted(values)
    half = 0.98 * len(ordered) ** 0.5
    low = max(0, int(len(ordered) / 2 - half))
    high = min(len(ordered) - 1, int(len(ordered) / 2 + half))
    return statistics.median(ordered), ordered[low], ordered[high]


def report(title: str, found: dict[str, list[float]]) -> list[str]:
    """One table in Markdown."""
    lines = [f"| {title} | overhead µs | × google-api-core (95 %) |", "|---|---|---|"]
    bare = found["bare call"]
    over = {name: [a - b for a, b in zip(times, bare, strict=True)] for name, times in found.items()}
    for name, times in over.items():
        if name == "bare call":
            continue
        middle, *_ = interval(times)
        ratio, low, high = interval([a / b for a, b in zip(times, over[REFERENCE], strict=True)])
        lines.append(f"| {name} | {middle * 1e6:.2f} | {ratio:.2f} ({low:.2f}–{high:.2f}) |")
    return lines


def main(rounds: int = ROUNDS, calls: int = CALLS) -> list[str]:
    stamina.instrumentation.set_on_retry_hooks([])
    lines = report("sync", measure(sync_contenders(), timed, rounds, calls))
    return [*lines, "", *report("async", measure(async_contenders(), timed_async, rounds, calls))]


if __name__ == "__main__":
    print("\n".join(main(*(int(each) for each in sys.argv[1:]))))
