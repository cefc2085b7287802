"""
When an unavailable service is probed. Pure.

A hold begins with a failure. It ends at `resume_at` with one call, the probe. If that fails as well, the next hold is longer.
The gaps depend on the kind of the failure and on how many calls the process sends: the more processes share a service, the
fewer calls each of them sends, and the longer its gaps are.
"""

from __future__ import annotations

from amends.recovery.evidence import HINT, SILENT
from amends.recovery.pacing import Pacing

__all__ = ["CAP_PLAIN", "KEPT", "Probing"]

FIRST_SILENT, CAP_SILENT = 5.0, 15.0
"""Seconds to the first probe after silence (half of the cap, if that is more), and the longest gap. Shorter: a fleet's probes
keep the service busy; longer: later recovery."""
FIRST_PLAIN, CAP_PLAIN = 0.5, 30.0
"""The same after plain failures, which cost the service little. Shorter: more calls; longer: later recovery."""
LEAST_CAP = 5.0
"""The cap of a process that sends many calls. Shorter: more calls in a long outage; longer: later recovery."""
PRESUMED, PRESUMED_AFTER, PRESUMED_WARY = 4.0, 1.0, 0.1
"""A probe that is out for 4 × as long as the failures took is presumed good, after at least 1 s, if wary 0.1 s. Lower: a
probe that will fail lets calls out; higher: where calls are long, all wait for a whole call."""
KEPT, KEPT_FACTOR = 30.0, 3.0
"""A hint up to this is kept whole; during longer ones a probe is sent after 30, 90, 270 … s. Longer: a wrong hint
costs more; shorter: more calls against a right one."""
DOUBTED, DOUBTED_FACTOR = 2.0, 7.0
"""The same for a service that answered before, where a longer hint may concern one caller only: after 2, 14, 98 … s.
Longer: the others wait longer; shorter: more than eight calls in an hour."""


class Probing(Pacing):
    """The present hold and its probe."""

    __slots__ = ("_hint_level", "failed_probes", "longest_failure", "probe_sent", "resume_at", "until")

    def __init__(self) -> None:
        super().__init__()
        self.resume_at, self.until = 0.0, 0.0
        """No call before this; and the time that the server named, if it did."""
        self.probe_sent, self.failed_probes = -1.0, 0
        """When the probe was sent (-1: not), and how many failed."""
        self.longest_failure = 0.0
        self._hint_level = 0

    @property
    def doubted(self) -> bool:
        """Whether calls are held by a hint that no probe has confirmed, from a service that answered before."""
        return self._hint_level == 1 and self.last_answered >= 0.0

    def is_probe(self, sent: float) -> bool:
        """Return whether the call sent at `sent` is the probe, or was sent after it."""
        return sent >= self.probe_sent >= 0.0

    def presumed_good_at(self, *, wary: bool) -> float:
        """Return when the probe will have been out for longer than a failure takes."""
        return self.probe_sent + max(
            PRESUMED_WARY if wary else PRESUMED_AFTER, PRESUMED * self.longest_failure
        )

    def hold(self, now: float, draw: float, kind: int, hint: float) -> None:
        """Begin a hold, or a longer one."""
        self.discard_window(now)
        self.probe_sent = -1.0
        rate, doubled = max(self.rate(now), 1e-9), 2.0 ** min(self.failed_probes, 16)
        jitter = 0.75 + 0.5 * draw
        if kind == HINT:
            kept = hint <= KEPT or self.last_answered < 0.0
            first, factor = (KEPT, KEPT_FACTOR) if kept else (DOUBTED, DOUBTED_FACTOR)
            self.resume_at = now + min(hint, first * factor**self._hint_level)
            self._hint_level = min(self._hint_level + 1, 16)
            return
        self.until = 0.0
        if kind == SILENT:
            cap = min(CAP_SILENT, max(LEAST_CAP, 4.0 / rate))
            first = max(FIRST_SILENT, cap / 2.0)
        else:
            cap = min(CAP_PLAIN, max(LEAST_CAP, 1.0 / rate))
            first = min(LEAST_CAP, max(FIRST_PLAIN, 0.5 / rate))
        self.resume_at = now + min(cap, first * doubled) * jitter

    def end_hold(self) -> None:
        """Forget the hold: the next one begins with the first gap."""
        self.until, self.probe_sent = 0.0, -1.0
        self.failed_probes = self._hint_level = 0

    def postpone(self, until: float) -> None:
        """Take back the probe that was just admitted; ask again at `until`."""
        self.probe_sent, self.resume_at = -1.0, until
