"""`summarise`: figures of many events, for a page or a report. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from amends.core.enums import Action
from amends.recorder.event import ENDS, Event

__all__ = ["CodeCount", "Summary", "UpstreamSummary", "summarise"]


class CodeCount(msgspec.Struct, frozen=True):
    """
    How often a code occurred.

    >>> from amends import Fault
    >>> ended = Event(at=1.0, where="call", outcome="gave-up", fault=Fault(code="TIMEOUT"))
    >>> summarise([ended]).codes
    (CodeCount(code='TIMEOUT', count=1),)
    """

    code: str
    count: int


class UpstreamSummary(msgspec.Struct, frozen=True, kw_only=True):
    """
    The failures of one service.

    >>> from amends import Fault
    >>> ended = Event(at=1.0, where="call", outcome="gave-up", fault=Fault(code="TIMEOUT"), upstream="shop")
    >>> [(each.upstream, each.failures) for each in summarise([ended]).upstreams]
    [('shop', 1)]
    """

    upstream: str
    failures: int
    """The operations that met at least one failure and ended."""
    recovered: int
    codes: tuple[CodeCount, ...]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """
    Figures of a set of events.

    `summarise` makes it.

    >>> from amends import Fault
    >>> figures = summarise([Event(at=1.0, where="call", outcome="gave-up", fault=Fault(code="TIMEOUT"))])
    >>> figures.failures, figures.recovered
    (1, 0)
    """

    events: int = 0
    since: float | None = None
    until: float | None = None
    failures: int = 0
    """The operations that met at least one failure and ended …"""
    recovered: int = 0
    """… and those of them that had a result in the end."""
    tries: int = 0
    """Further tries that were made."""
    waited: float = 0.0
    """Seconds waited before them."""
    duplicates_avoided: int = 0
    """Calls that were not repeated, because they may have had their effect."""
    bytes_saved: int = 0
    """Bytes of failures that a model did not have to read."""
    lost: int = 0
    """Events that could not be written."""
    recovery_p50: float | None = None
    """Seconds that a recovered operation took."""
    recovery_p99: float | None = None
    outcomes: dict[str, int] = {}
    where: dict[str, int] = {}
    codes: tuple[CodeCount, ...] = ()
    """The most frequent first."""
    upstreams: tuple[UpstreamSummary, ...] = ()
    """Those with the most failures first."""


def summarise(events: Iterable[Event]) -> Summary:
    """
    Return the figures of events in any order.

    >>> from amends import Fault
    >>> fault = Fault(code="TIMEOUT")
    >>> first = Event(at=1.0, where="call", outcome="retry", fault=fault, wait=2.0)
    >>> then = Event(at=3.0, where="call", outcome="recovered", fault=fault, elapsed=2.1)
    >>> figures = summarise([first, then])
    >>> figures.failures, figures.recovered, figures.tries, figures.waited
    (1, 1, 1, 2.0)
    """
    found = sorted(events, key=lambda event: event.at)
    ends = [event for event in found if event.outcome in ENDS]
    recovered = [event for event in ends if event.succeeded]
    times = sorted(event.elapsed for event in recovered if event.elapsed is not None)
    retries = [event for event in found if event.outcome == "retry"]
    by_upstream: dict[str, list[Event]] = {}
    for event in ends:
        if event.upstream:
            by_upstream.setdefault(event.upstream, []).append(event)
    upstreams = [_upstream(name, of_it) for name, of_it in by_upstream.items()]
    saved = (event.facts.get("bytes_saved", 0) for event in found)
    return Summary(
        events=len(found),
        since=found[0].at if found else None,
        until=found[-1].at if found else None,
        failures=len(ends),
        recovered=len(recovered),
        tries=len(retries),
        waited=sum(event.wait or 0.0 for event in retries),
        duplicates_avoided=sum(_not_repeated(event) for event in ends),
        bytes_saved=sum(each for each in saved if isinstance(each, int)),
        lost=sum(event.count for event in found if event.outcome == "lost"),
        recovery_p50=_quantile(times, 0.5),
        recovery_p99=_quantile(times, 0.99),
        outcomes=dict(Counter(event.outcome for event in found).most_common()),
        where=dict(Counter(event.where for event in found).most_common()),
        codes=_codes(ends),
        upstreams=tuple(sorted(upstreams, key=lambda each: (-each.failures, each.upstream))),
    )


def _not_repeated(event: Event) -> bool:
    decision = event.decision
    return decision is not None and decision.action is Action.VERIFY


def _upstream(name: str, ends: list[Event]) -> UpstreamSummary:
    recovered = sum(event.succeeded for event in ends)
    return UpstreamSummary(upstream=name, failures=len(ends), recovered=recovered, codes=_codes(ends))


def _codes(ends: list[Event]) -> tuple[CodeCount, ...]:
    counted = Counter(event.fault.code for event in ends)
    return tuple(CodeCount(code, count) for code, count in counted.most_common())


def _quantile(ordered: list[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
