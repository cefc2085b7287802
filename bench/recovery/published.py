"""The published figures that the simulator has to reproduce, and our own goals."""

from dataclasses import dataclass
from typing import Literal

from bench.recovery.metrics import Estimate

# Published rows (November 2026): the contender, then for each scenario the metrics and their figures.
PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "no retry": {
        "a": {"success": 33, "calls/success": 3.0},
        "b": {"success": 50, "calls/success": 2.0},
        "c": {"success": 70, "calls/success": 1.44},
        "d": {"wasted": 0},
        "e": {"success": 36},
        "f": {"success": 71, "duplicates": 0},
        "g": {"blocked": 0.05},
        "h": {"success": 82, "goodput after": 101},
    },
    "tenacity": {
        "a": {"success": 33, "calls/success": 7.0},
        "b": {"success": 55, "calls/success": 3.6},
        "c": {"success": 98, "calls/success": 1.42},
        "d": {"wasted": 198},
        "e": {"success": 36},
        "f": {"success": 98, "duplicates": 55},
        "g": {"blocked": 3},
        "h": {"success": 17.5, "goodput after": 0},
    },
    "stamina": {
        "a": {"success": 100, "calls/success": 5.9},
        "b": {"success": 92, "calls/success": 4.9},
        "c": {"success": 100, "calls/success": 1.42},
        "d": {"wasted": 891},
        "e": {"success": 36},
        "f": {"success": 100, "duplicates": 64},
        "g": {"blocked": 25},
        "h": {"success": 18, "goodput after": 0},
    },
    "httpx-retries": {
        "a": {"success": 100, "calls/success": 2.0},
        "b": {"success": 51, "calls/success": 11.7},
        "c": {"success": 100, "calls/success": 1.43},
        "d": {"wasted": 0},
        "e": {"success": 36},
        "f": {"success": 71, "duplicates": 0},
        "g": {"blocked": 1200},
        "h": {"success": 18, "goodput after": 0},
    },
    "openai SDK": {
        "a": {"success": 100, "calls/success": 2.0},
        "b": {"success": 53, "calls/success": 3.8},
        "c": {"success": 98, "calls/success": 1.42},
        "d": {"wasted": 0},
        "e": {"success": 36},
        "f": {"success": 98, "duplicates": 55},
        "g": {"blocked": 0.05},
        "h": {"success": 17, "goodput after": 0},
    },
    "botocore": {
        "a": {"success": 67, "calls/success": 3.5},
        "b": {"success": 50, "calls/success": 2.6},
        "c": {"success": 97, "calls/success": 1.42},
        "d": {"wasted": 0},
        "e": {"success": 36},
        "f": {"success": 98, "duplicates": 55},
        "g": {"blocked": 12},
        "h": {"success": 43, "goodput after": 52},
    },
    "redress": {
        "a": {"success": 100, "calls/success": 2.0},
        "b": {"success": 36, "calls/success": 3.6},
        "c": {"success": 100, "calls/success": 1.42},
        "d": {"wasted": 0},
        "e": {"success": 36},
        "f": {"success": 100, "duplicates": 64},
        "g": {"blocked": 60},
        "h": {"success": 60, "goodput after": 83},
    },
}

# Reasons why a figure may differ although the simulator is right. The report shows them where figures differ.
REASONS = {
    (
        "e",
        "success",
    ): "20 of the 60 s of load are before the token expires, so 33.3 % is expected; 36 is plausible for a single draw of the arrivals",
    (
        "f",
        "duplicates",
    ): "0.12 (three attempts) or 0.143 (unbounded) per operation expected, of 500; published with 491",
    ("b", "calls/success"): "depends on how many operations a draw of the arrivals puts into the outage",
}


def agrees(published: float, measured: Estimate) -> bool:
    """Return whether they differ by at most 10 %, two standard errors, or the published figure's rounding."""
    difference = abs(measured.mean - published)
    rounding = 0.5 if published == int(published) and published >= 1 else 0.05
    return difference <= max(0.1 * abs(published), 2 * measured.error, rounding)


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal for our own row."""

    scenario: str
    metric: str
    sense: Literal["at least", "at most", "below"]
    value: float

    def met(self, measured: Estimate) -> bool:
        if self.sense == "at least":
            return measured.mean >= self.value
        return measured.mean <= self.value if self.sense == "at most" else measured.mean < self.value


GOALS = (
    Goal("a", "success", "at least", 100),
    Goal("a", "calls/success", "at most", 1.25),
    Goal("b", "success", "at least", 98),
    Goal("b", "calls/success", "at most", 1.15),
    Goal("b", "p99", "at most", 45),
    Goal("c", "success", "at least", 99),
    Goal("c", "p99", "below", 8),
    Goal("d", "wasted", "at most", 0),
    Goal("e", "success", "at least", 100),
    Goal("e", "refreshes", "at most", 1),
    Goal("f", "success", "at least", 99),
    Goal("f", "duplicates", "at most", 0),
    Goal("f+ignored", "duplicates", "at most", 0),
    Goal("f+verify", "success", "at least", 99),
    Goal("f+verify", "duplicates", "at most", 0),
    Goal("g", "blocked", "below", 1),
    Goal("g", "calls", "at most", 2),
    Goal("h", "success", "at least", 90),
    Goal("h", "recovery", "below", 10),
)
