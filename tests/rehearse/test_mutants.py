"""A reference agent has nothing to change; break one of its reactions, and exactly that finding appears."""

import os

import httpx2
import pytest

from amends.rehearse.plan import Failure, Plan
from amends.rehearse.rehearsal import Rehearsal
from tests.rehearse.reference_agent import Agent

SERVICES = ("openai", "orders")
FAST = {"seed": 7, "wait": 1.0, "patience": 2.0}


def placed_once():
    """The user's check: there is one order."""
    return len(httpx2.get(os.environ["ORDERS_URL"] + "/orders").json()["data"]) == 1


def act(stage, *broken):
    """Run an agent in a block, with its exit code."""
    with stage:
        stage.ended(Agent(*broken, tell=stage.output).run())
    return stage


def rehearsed(failure, *broken):
    plan = Plan(**FAST, failure=[failure])
    return act(Rehearsal(*SERVICES, plan=plan, check=placed_once), *broken)


def test_the_reference_agent_has_nothing_to_change():
    """Every kind of failure of both services is sent, each in a run of its own, and every row scores 3."""
    rehearsal = Rehearsal(*SERVICES, plan=Plan(**FAST), check=placed_once)
    for stage in rehearsal.acts():
        act(stage)
    wrong = {
        row.id: [(each.rule, each.seen) for each in row.findings]
        for row in rehearsal.rows
        if row.score not in (3, None)
    }
    assert wrong == {}
    assert sum(row.score == 3 for row in rehearsal.rows) >= 34
    assert {row.note for row in rehearsal.rows if row.score is None} <= {
        "not sent: the program makes no call that it could concern",
        "not sent: the program makes no call that asks for a stream",
    }


ORDER_LOST = Failure("orders", "lost")
MUTANTS = {
    "breaks-waits": (Failure("openai", "rate", call=1), {"wait-broken"}),
    "breaks-waits orders": (Failure("orders", "rate"), {"wait-broken"}),
    "repeats-quota": (Failure("openai", "quota", call=1), {"exhausted-repeated"}),
    "repeats-quota orders": (Failure("orders", "quota"), {"exhausted-repeated"}),
    "loses-key": (ORDER_LOST, {"duplicate"}),
    "loses-key late": (Failure("orders", "late"), {"duplicate"}),
    "loses-key malformed": (Failure("orders", "malformed"), {"duplicate"}),
    "loses-key server-error": (Failure("orders", "server-error"), {"repeated-blindly"}),
    "gives-up-unconnected": (Failure("openai", "refused", call=1), {"gave-up"}),
    "gives-up-unconnected dns": (Failure("openai", "dns", call=1), {"gave-up"}),
    "gives-up-429": (Failure("openai", "rate", call=1), {"gave-up"}),
    "gives-up-503": (Failure("orders", "overload"), {"gave-up"}),
    "gives-up-5xx": (Failure("openai", "html", call=1), {"gave-up"}),
    "gives-up-malformed": (Failure("openai", "malformed", call=1), {"gave-up"}),
    "repeats-422": (Failure("orders", "validation"), {"repeated-unchanged"}),
    "repeats-403": (Failure("orders", "permission"), {"repeated-unchanged"}),
    "repeats-401": (Failure("orders", "expired"), {"repeated-unchanged"}),
    "repeats-404": (Failure("openai", "not-found", call=1), {"repeated-unchanged"}),
    "drops-reason": (Failure("orders", "validation"), {"not-told"}),
    "no-time-limit": (Failure("openai", "silent", call=1), {"hang"}),
    "passes-trace": (Failure("orders", "server-error"), {"leaked"}),
    "layers": (Failure("openai", "server-error", call=1, repeat=7), {"multiplied"}),
    "claims-success": (Failure("openai", "quota", call=1), {"claimed"}),
    "silent-end": (ORDER_LOST, {"doubt-dropped"}),
    "takes-cut-streams": (Failure("openai", "cut", call=1), {"gave-up"}),
    "ignores-events": (Failure("openai", "error-event", call=1), {"gave-up"}),
}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("kind", ["refused", "dns", "tls"])
def test_a_repeat_after_a_refused_connection_is_seen_without_a_check(service, kind):
    """The failed call had no body yet, so it is recognised by its route."""
    stage = act(Rehearsal(*SERVICES, plan=Plan(**FAST, failure=[Failure(service, kind, call=1)])))
    assert [each.rule for each in stage.findings()] == ["not-judged"]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_has_exactly_its_finding(name):
    """One broken reaction, one finding; the reference agent has none for the same failure."""
    failure, rules = MUTANTS[name]
    stage = rehearsed(failure, name.split()[0])
    assert stage.incidents, stage.rows
    assert {each.rule for each in stage.findings()} == rules, stage.findings()
    assert stage.score() < 3
