"""
Record the decisions of `decide` over a grid of failures, states and policies, one JSON object per line.

    python scripts/record_decisions.py          writes tests/data/decisions.jsonl

A test replays the file, so that a decision changes only on purpose: run this after the change, review the
difference, and explain in the commit why it is better.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from amends.core.decision import State, decide
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, UNBOUNDED, Policy
from amends.core.vocabulary import vocabulary

FILE = Path(__file__).parents[1] / "tests" / "data" / "decisions.jsonl"

POLICIES = {
    "default": DEFAULT,
    "unbounded": UNBOUNDED,
    "fallback": Policy(fallback=True),
    "deadline": Policy(deadline=30.0),
}
# A deadline needs a clock: the operation began at 0, and 5 seconds went by besides the waiting.
_SPENT = 5.0

VOCABULARIES = ("everyday", "http", "cli", "task", "adcp", "arcp")
HINTS = (None, 0, 0.4, 5.2, 60, 400, 86400, -1)
# The code whose row is changed in every way: known to all but ARCP, with a wait of its own on a command line.
PROBE = {"http": "RATE_LIMITED", "cli": "RATE_LIMITED", "adcp": "RATE_LIMITED"}
# One of every way waits and attempts are counted: S3's five groups, AdCP's ceiling, a row's own wait.
SERIES = (
    *(
        ("http", "SERVICE_UNAVAILABLE"),
        ("http", "INTERNAL_ERROR"),
        ("cli", "RATE_LIMITED"),
        ("cli", "TIMEOUT"),
    ),
    *(("task", "AGENT_BUSY"), ("task", "MCP_RATE_LIMITED"), ("task", "TIMEOUT"), ("task", "RATE_LIMITED")),
    *(("task", "MCP_ERROR"), ("adcp", "RATE_LIMITED"), ("arcp", "TIMEOUT")),
)


def cases() -> Iterator[dict[str, Any]]:
    """The grid. What a case leaves out is the fault's row, the first failure, nothing waited, the default policy."""
    # Every code as its table has it.
    for name in VOCABULARIES:
        for code, repeatable in product(vocabulary(name).rows, (True, False)):
            yield {"vocabulary": name, "code": code, "repeatable": repeatable}
    for name, code in (
        ("task", "MCP_NOT_CONNECTED"),
        ("task", "MCP_AUTH_FAILED"),
        ("http", "UNAUTHENTICATED"),
    ):
        yield {"vocabulary": name, "code": code, "repeatable": True, "policy": "fallback"}
    # Every recovery class and effect under every kind of hint.
    for (name, code), recovery, executed, hint, repeatable, policy in product(
        PROBE.items(), Recovery, Executed, HINTS, (True, False), ("default", "unbounded")
    ):
        if recovery in {Recovery.CORRECTABLE, Recovery.TERMINAL} and (
            hint is not None or policy == "unbounded"
        ):
            continue  # neither takes part there; the first cases hold that
        yield {
            "vocabulary": name,
            "code": code,
            "recovery": recovery.value,
            "executed": executed.value,
            "retry_after": hint,
            "repeatable": repeatable,
            "policy": policy,
        }
    # The same failure again and again, until something ends it.
    for (name, code), attempt, waited, policy in product(
        SERIES, (1, 2, 3, 4, 5, 6), (0.0, 24.0, 299.5), POLICIES
    ):
        yield {
            "vocabulary": name,
            "code": code,
            "attempt": attempt,
            "waited": waited,
            "repeatable": True,
            "policy": policy,
        }
    # What others already tried or advise, and what was spent on not knowing.
    for (name, code), below, advised in product(SERIES, (None, 2, 5), (None, 0, 1, 3)):
        if below is None and advised is None:
            continue
        yield {
            "vocabulary": name,
            "code": code,
            "repeatable": True,
            "tried_below": below,
            "max_retries": advised,
        }
    for name, code in SERIES:
        yield {"vocabulary": name, "code": code, "repeatable": True, "attempt": 2, "uncertain": 1}


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """The decision on one case."""
    fault = Fault(
        code=case["code"],
        vocabulary=case["vocabulary"],
        **{name: case[name] for name in ("recovery", "executed") if name in case},
        retry_after=case.get("retry_after"),
        attempt=case.get("tried_below"),
        max_retries=case.get("max_retries"),
    )
    waited = case.get("waited", 0.0)
    state = State(
        attempt=case.get("attempt", 1), waited=waited, uncertain=case.get("uncertain", 0), started=0.0
    )
    decision = decide(
        fault,
        policy=POLICIES[case.get("policy", "default")],
        state=state,
        operation=Operation(idempotent=case["repeatable"]),
        now=waited + _SPENT,
    )
    found = {"action": decision.action.value, "delay": decision.delay, "reason": decision.reason}
    return found if decision.resume_in is None else {**found, "resume_in": decision.resume_in}


def main() -> None:
    """Write the file."""
    lines = [msgspec.json.encode({"case": case, "decision": answer(case)}) for case in cases()]
    FILE.write_bytes(b"\n".join(lines) + b"\n")
    print(f"{len(lines)} decisions in {FILE.name}")


if __name__ == "__main__":
    main()
