"""Recorded decisions are replayed, so that no decision changes unnoticed."""

from collections import Counter

import msgspec
import pytest
from scripts.record_decisions import FILE, POLICIES, VOCABULARIES, answer, cases

from amends.core.enums import Action
from amends.core.vocabulary import vocabulary

RECORDED = [msgspec.json.decode(line) for line in FILE.read_bytes().splitlines()]

HOW = (
    "If the new decision is better, run `python scripts/record_decisions.py`, read the diff of "
    "tests/data/decisions.jsonl line by line, and explain the change in the commit message. Otherwise it is a regression."
)


def test_no_decision_changed():
    """A11, A12, C7, T7 and the defaults of design section 5: every decision equals its record."""
    changed = [
        f"{msgspec.json.encode(item['case']).decode()}\n    was {item['decision']}\n    is  {now}"
        for item in RECORDED
        if (now := answer(item["case"])) != item["decision"]
    ]
    if changed:
        pytest.fail(f"{len(changed)} recorded decisions changed.\n" + "\n".join(changed[:10]) + f"\n\n{HOW}")


def test_the_whole_grid_is_recorded():
    """Every case of the grid is recorded once, and no other case."""
    recorded = Counter(msgspec.json.encode(item["case"]) for item in RECORDED)
    grid = Counter(map(msgspec.json.encode, cases()))
    missing, gone = grid - recorded, recorded - grid
    if missing or gone:
        pytest.fail(
            f"{missing.total()} cases are not recorded, {gone.total()} are not in the grid any more. {HOW}"
        )
    assert max(recorded.values()) == 1
    assert len(RECORDED) <= 3000


def test_the_grid_has_every_code_policy_and_action():
    """The records contain all codes, all policies, and every action of a single failure."""
    codes = {(item["case"]["vocabulary"], item["case"]["code"]) for item in RECORDED}
    assert codes == {(name, code) for name in VOCABULARIES for code in vocabulary(name).rows}
    assert {item["case"].get("policy", "default") for item in RECORDED} == set(POLICIES)
    assert {item["decision"]["action"] for item in RECORDED} == set(Action) - {Action.NONE, Action.GENERIC}


def test_a_hint_is_waited_for_up_to_an_hour():
    """A10, design section 5: in every record, a retry waits at least the hint, limited to one hour."""
    for item in RECORDED:
        hint, decision = item["case"].get("retry_after"), item["decision"]
        if decision["action"] == "retry" and hint is not None and hint >= 0:
            assert min(hint, 3600) <= decision["delay"] <= 3600


def test_an_unsafe_operation_with_an_unknown_effect_is_not_retried():
    """M3: unless the operation is repeatable or had no effect, no record has the action retry."""
    for item in RECORDED:
        case = item["case"]
        executed = case.get("executed") or vocabulary(case["vocabulary"]).row(case["code"]).executed
        if not case["repeatable"] and executed != "no":
            assert item["decision"]["action"] != "retry"


@pytest.mark.parametrize(
    ("vocabulary", "code", "waits"),
    [
        ("http", "SERVICE_UNAVAILABLE", [1, 2, 4, 8]),
        ("arcp", "TIMEOUT", [1, 2, 4, 8]),
        ("adcp", "RATE_LIMITED", [1, 2]),
        ("task", "AGENT_BUSY", [1, 2]),
        ("task", "MCP_RATE_LIMITED", [1, 2]),
        ("task", "TIMEOUT", [1]),
        ("task", "RATE_LIMITED", [1, 2]),
        ("cli", "RATE_LIMITED", [5, 5, 5, 8]),
        ("cli", "TIMEOUT", [0, 2, 4, 8]),
    ],
)
def test_the_waits_are_those_of_the_specifications(vocabulary, code, waits):
    """Calculated by hand: five calls (design 5), three for AdCP (A11), S3's groups (T7), waits of rows (M4)."""
    found = [
        item["decision"]["delay"]
        for item in RECORDED
        if item["case"]
        == {
            "vocabulary": vocabulary,
            "code": code,
            "attempt": item["case"].get("attempt"),
            "waited": 0.0,
            "repeatable": True,
            "policy": "default",
        }
    ]
    assert found == [*waits, *[None] * (6 - len(waits))]
