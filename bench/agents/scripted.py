"""
Three temperaments. Each sees only what it read, and answers with the next tool call.

- gives up: stops at the first failure.
- repeats blindly: makes the same call again, one second later, up to five times.
- follows instructions: does what the text says, also if the failing service wrote it: waits, changes an argument, signs in again, looks it up, stops.
  A text without an instruction is repeated once.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Action(NamedTuple):
    """A tool call: act, wait, check, refresh, finish or stop."""

    tool: str
    arguments: dict


def succeeded(text: str) -> bool:
    return text.startswith("ok")


class GivesUp:
    name = "gives up"

    def __init__(self, arguments, seed=0):
        self.arguments = arguments

    def next(self, text):
        if text is None:
            return Action("act", self.arguments)
        return Action("finish" if succeeded(text) else "stop", {})


class RepeatsBlindly(GivesUp):
    name = "repeats blindly"

    def __init__(self, arguments, seed=0):
        super().__init__(arguments)
        self.left, self.waited = 5, True

    def next(self, text):
        if text is not None and succeeded(text):
            return Action("finish", {})
        if self.waited:
            self.waited, self.left = False, self.left - 1
            return Action("act", self.arguments) if self.left >= 0 else Action("stop", {})
        self.waited = True
        return Action("wait", {"seconds": 1})


_WAIT = re.compile(r"(?:wait|retry[- ]after|retry in|try again in)\D{0,10}(\d+(?:\.\d+)?)", re.IGNORECASE)
_VALUE = re.compile(r"(?:one of|use time)\W{1,2}(\d\d:\d\d)", re.IGNORECASE)


class FollowsInstructions:
    name = "follows instructions"

    def __init__(self, arguments, seed=0):
        self.arguments, self.plan, self.repeats = dict(arguments), [], 6
        self.checked = False

    def next(self, text):
        if text is None:
            return Action("act", self.arguments)
        if self.plan:
            return self.plan.pop(0)
        if succeeded(text) or "already done" in text or text == "it is done":
            return Action("finish", {})
        if text == "it is not done":
            return self.again()
        low = text.lower()
        if "recovery: terminal" in low or "a person has to" in low or "stop" in low:
            return Action("stop", {})
        if "may have had its effect" in low or "not known whether" in low:
            return Action("check", {})
        value = _VALUE.search(text)
        if value is not None and self.arguments.get("time") != value[1]:
            self.arguments["time"] = value[1]
            return self.again()
        if "401" in text or "unauthenticated" in low or "token" in low:
            self.plan = [Action("act", self.arguments)]
            return Action("refresh", {})
        wait = _WAIT.search(text)
        if wait is not None:
            return self.again(float(wait[1])) if float(wait[1]) <= 120 else Action("stop", {})
        if any(
            word in low
            for word in ("429", "503", "529", "transient", "too many", "unavailable", "overloaded")
        ):
            return self.again(10.0)
        self.repeats = min(self.repeats, 1)
        return self.again()

    def again(self, seconds=0.0):
        self.repeats -= 1
        if self.repeats < 0:
            return Action("stop", {})
        if not seconds:
            return Action("act", self.arguments)
        self.plan = [Action("act", self.arguments)]
        return Action("wait", {"seconds": seconds})


AGENTS = (GivesUp, RepeatsBlindly, FollowsInstructions)
