"""
The limits that a service publishes in its answers: so many calls or tokens are left until a time. Pure.

They are a peer's word. They hold calls back for at most LONGEST seconds, each limit by itself, and a limit in spite of which calls
succeed is ignored for a while. What is left is the least that an answer of the window named, less what the calls in flight will
take that were sent after the call it answers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf

from amends.carriers.limits import Limit

__all__ = ["LONGEST", "NOTHING", "Published"]

LONGEST = 60.0
"""The most seconds for which a published limit holds a call back; a limit whose window ends later is paced instead. Longer: a
wrong header costs more; shorter: calls are refused at the end of a minute that was used up at its beginning."""
IGNORED = 600.0
"""Seconds for which a limit is ignored in spite of which a call succeeded. Longer: a limit that was wrong once is found later;
shorter: a wrong header costs more."""
SLACK = 2.0
"""Seconds by which the end of a window may move without being another window. More: a renewed limit is used late."""
MARGIN = 8.0
"""Calls that may be left, beside those in flight, before each call is counted. More: more calls pass through the queue; fewer:
calls that start at the same time are refused."""
_MOST = 16
"""Limits that are kept for one Upstream."""
_MOST_SENT = 10_000
"""Calls in flight whose times are kept."""


class _Count:
    """What is left of one limit."""

    __slots__ = (
        "began", "cost", "empty_since", "held_since", "ignored_until", "limit", "per_byte", "remaining", "resets_at", "sent", "tokens",
    )  # fmt: skip

    def __init__(self, *, tokens: bool) -> None:
        self.tokens = tokens
        self.limit = self.remaining = self.resets_at = inf
        self.sent = -inf
        """When the call was sent whose answer named what remains."""
        self.began: float | None = None
        """When the window began, if every call since then was counted."""
        self.cost, self.per_byte = 1.0, 0.0
        """The units that a call takes on average, and that a byte of a request takes."""
        self.held_since = self.ignored_until = -inf
        self.empty_since = inf
        """Since when calls are held back, and since when nothing is left as an answer said."""

    def takes(self, size: float) -> float:
        """Return the units that a call of this size will take, as far as the calls before it show."""
        if not self.tokens:
            return 1.0
        return self.per_byte * size if size and self.per_byte else self.cost


class Published:
    """The limits of one Upstream."""

    __slots__ = ("_counts", "_log", "_sizes", "_sums", "tight", "times")

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        self.tight = False
        """Whether so little is left that every call has to be counted."""
        self.times: list[float] = []
        """When the calls in flight were let out that were counted, in order; and the sizes of these."""
        self._sizes: list[float] = []
        # When calls were let out lately, and how many and how many bytes those were together.
        self._log: list[float] = []
        self._sums: list[tuple[int, float]] = []

    def shown(self, now: float) -> dict[str, float]:
        """Return what was left of each limit whose window has not ended."""
        return {
            name: each.remaining
            for name, each in self._counts.items()
            if each.remaining < inf and now < each.resets_at and now >= each.ignored_until
        }

    def note(self, now: float, sent: float, found: Iterable[Limit], inflight: int, *, ok: bool) -> None:
        """
        Note the limits that the answer to the call sent at `sent` named.

        `inflight`: the calls in flight with this one; `ok`: it was not refused.
        """
        for each in found:
            if each.remaining is None or each.reset is None or not 0 < each.reset <= LONGEST:
                continue
            count = self._counts.get(each.name)
            if count is None:
                if len(self._counts) >= _MOST:
                    continue
                count = self._counts[each.name] = _Count(tokens="token" in each.name)
            if each.limit is not None and each.limit > 0:
                count.limit = each.limit
            self._note(count, now, sent, each.remaining, now + each.reset, inflight, ok=ok)
        near = (MARGIN + 2.0 * inflight) * 2.0
        self.tight = any(each.remaining < near * each.cost for each in self._counts.values())

    def _note(
        self,
        count: _Count,
        now: float,
        sent: float,
        remaining: float,
        ends: float,
        inflight: int,
        *,
        ok: bool,
    ) -> None:
        # An answer that took long may name the time that was left when the call arrived.
        same = now < count.resets_at < inf and ends - count.resets_at <= max(SLACK, now - sent)
        if same and ok and remaining <= 0.0 and count.empty_since < sent:
            count.ignored_until = now + IGNORED
        if not same:
            count.empty_since = inf
            if count.resets_at < inf and now < count.resets_at:
                count.began = None  # a window that moves
        if not same or remaining < count.remaining or (remaining == count.remaining and sent > count.sent):
            count.remaining, count.sent = remaining, sent
            if ok:
                self._learn(count, remaining, sent)
        if ok and count.began is None and count.cost == 1.0 and count.limit < inf:
            # The first answer: about as many calls as are in flight took what was used.
            count.cost = (count.limit - count.remaining) / max(1, inflight) if count.tokens else 1.0
        if remaining <= 0.0:
            count.empty_since = min(count.empty_since, now)
        count.resets_at = min(count.resets_at, ends) if same else ends

    def _learn(self, count: _Count, remaining: float, sent: float) -> None:
        """Learn what calls take from what was used since the window began."""
        used = count.limit - remaining
        if not count.tokens or count.began is None or not 0.0 < used < inf:
            return
        calls, size = self._sum(bisect_right(self._log, sent))
        calls_before, size_before = self._sum(bisect_left(self._log, count.began))
        if calls > calls_before:
            count.cost = used / (calls - calls_before)
        if size > size_before:
            count.per_byte = used / (size - size_before)

    def _sum(self, place: int) -> tuple[int, float]:
        """Return how many calls were let out before that place of the log, and their bytes."""
        return self._sums[place - 1] if place else (0, 0.0)

    def wait(self, now: float, inflight: int, size: float = 0.0) -> float:
        """Return 0 if a call may be sent as far as the limits say, else the time to ask again."""
        until = 0.0
        for count in self._counts.values():
            if now < count.ignored_until:
                continue
            if now >= count.resets_at:  # a new window, of which no answer has told yet
                count.remaining, count.sent, count.resets_at = count.limit, now, inf
                count.began, count.empty_since = now, inf
            takes = min(count.takes(size), count.limit)
            if count.remaining - self._pending(count, inflight) >= takes:
                continue
            if count.held_since < 0.0:
                count.held_since = now
            tried_at = count.held_since + LONGEST
            if now < tried_at:  # after that, one call tries whether the limit is true
                until = max(until, min(count.resets_at, tried_at))
        return until

    def _pending(self, count: _Count, inflight: int) -> float:
        """Return what the calls in flight will take that were sent after the call whose answer is known."""
        first = bisect_left(self.times, count.sent)
        counted = (
            sum(map(count.takes, self._sizes[first:])) if count.tokens else float(len(self.times) - first)
        )
        unknown = max(0, inflight - len(self.times)) if count.resets_at < inf else 0
        return counted + unknown * count.cost

    def let_out(self, now: float, size: float = 0.0) -> None:
        """Count a call that is sent now."""
        for count in self._counts.values():
            count.held_since = -inf
        if not self._counts or len(self.times) >= _MOST_SENT:
            return
        self.times.append(now)
        self._sizes.append(size)
        calls, total = self._sums[-1] if self._sums else (0, 0.0)
        self._log.append(now)
        self._sums.append((calls + 1, total + size))
        if len(self._log) > 2 * _MOST_SENT:
            del self._log[:_MOST_SENT], self._sums[:_MOST_SENT]

    def ended(self, sent: float) -> None:
        """Count the end of the call that was sent at `sent`."""
        place = bisect_right(self.times, sent) - 1
        if place >= 0:
            del self.times[place], self._sizes[place]


NOTHING = Published()
"""Shared by all Upstreams that have published no limit: it stays empty."""
