"""
The flight recorder: the failures that a program reads, acts on or sends, kept in a store.

    import amends

    amends.record("sqlite:///failures.db")

Every binding reports its failures to it, redacted and bounded in size. Several processes can share one store; `amends
trace ID` then shows one failure in all of them, `amends watch` follows them live, and `Reader` reads them in a program.
The same is started without a change to the program by `AMENDS_RECORD=sqlite:///failures.db` in its environment.
"""

from __future__ import annotations

from amends.recorder.event import OUTCOMES, WHERE, Event
from amends.recorder.locations import default_url
from amends.recorder.reader import Filter, Reader, open_reader
from amends.recorder.recorder import Recorder, current_recorder, record
from amends.recorder.summary import CodeCount, Summary, UpstreamSummary, summarise
from amends.recorder.traces import Trace, TraceLine, group_traces

__all__ = [
    "OUTCOMES",
    "WHERE",
    "CodeCount",
    "Event",
    "Filter",
    "Reader",
    "Recorder",
    "Summary",
    "Trace",
    "TraceLine",
    "UpstreamSummary",
    "current_recorder",
    "default_url",
    "group_traces",
    "open_reader",
    "record",
    "summarise",
]
