"""
One failure through chains of up to three hops: a seeded sample here, all of them in `make soak`.

`python -m tests.hops "mcp:both,http:both" lost` shows a single chain.
"""

import asyncio
import random
import time

import pytest

from tests.hops.chains import SIDES, TRUST, Case, cases, run, totals
from tests.hops.failures import FAILURES, MORE_FAILURES
from tests.hops.formats import BEHIND, FORMATS, MORE
from tests.hops.zygote import zygote

SEED = 41
SECONDS = 9.0
"""For each of the samples."""


@pytest.fixture(scope="module", autouse=True)
def commands():
    with zygote():
        yield


def sample(every, seconds):
    """Run cases in a seeded order, as many as the time allows. Return their outcomes."""
    random.Random(SEED).shuffle(every)
    outcomes, began = [], time.monotonic()
    for case in every:
        if outcomes and time.monotonic() - began > seconds:
            break
        outcomes.append(asyncio.run(run(case)))
    print(totals(outcomes))
    return outcomes


def bad(outcomes):
    return [
        f"{outcome.case}: {', '.join(name for name, good in outcome.found.items() if not good)}"
        for outcome in outcomes
        if not outcome.good
    ]


def own_chains():
    return [*cases([1]), *cases([2]), *random.Random(SEED).sample(cases([3]), 600)]


def other_chains(count=600):
    every = cases([1, 2], sides=SIDES, trust=("own", "stranger"))
    return random.Random(SEED).sample([case for case in every if not (case.keeps_all)], count)


def test_own_chains_keep_everything():
    """Amends on both sides: code, class, decision, wait, field, suggestions, parts, message, trace, effect, calls."""
    assert bad(sample(own_chains(), SECONDS)) == []


def test_strangers_and_bare_hops_are_safe():
    """No leak, the effect is never weaker than the truth, a plain host is not told to repeat, calls within the limit."""
    assert bad(sample(other_chains(), SECONDS)) == []


def further():
    every = cases([1, 2], failures=MORE_FAILURES)
    others = cases([1], failures=MORE_FAILURES, sides=SIDES, trust=("own", "stranger", "system"))
    return [*random.Random(SEED).sample(every, 600), *others]


def roots():
    """Chains of servers that each begin an OpenTelemetry trace of their own."""
    return [*cases([1], roots=True), *random.Random(SEED).sample(cases([2], roots=True), 200)]


def test_further_failures():
    """Codes of every vocabulary, long and odd values, forged documents, exceptions of libraries and of the own code."""
    assert bad(sample(further(), SECONDS)) == []


def test_servers_with_traces_of_their_own():
    """The caller reads its own trace, and the lines of the logs lead from it to every other one."""
    assert bad(sample(roots(), SECONDS / 2)) == []


@pytest.mark.parametrize("failure", ["validation", "lost", "rate"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format(name, failure):
    """One hop in each format."""
    assert bad([asyncio.run(run(Case(f"{name}:both", failure)))]) == []


@pytest.mark.soak
@pytest.mark.parametrize("chosen", [further, roots])
def test_all_further_chains(chosen):
    assert bad(sample(chosen(), 1200)) == []


@pytest.mark.soak
@pytest.mark.parametrize("failure", FAILURES)
def test_chains_of_systems_and_of_three_hops(failure):
    """With the secret of a system, other ways to serve the formats, and three hops of every side; as many as the time allows."""
    chosen = [
        *cases([1, 2], trust=("system",), failures=[failure]),
        *cases([1], formats=MORE, sides=SIDES, trust=("own", "stranger"), failures=[failure]),
    ]
    hops = [f"{name}:{side}" for name in FORMATS for side in SIDES if side != "gateway" or name in BEHIND]
    draw = random.Random(SEED)
    chosen += [Case(",".join(draw.choices(hops, k=3)), failure, draw.choice(TRUST)) for _ in range(600)]
    assert bad(sample(chosen, 1200)) == []


@pytest.mark.soak
@pytest.mark.parametrize("failure", FAILURES)
def test_all_own_chains(failure):
    every = [case for case in cases([1, 2, 3]) if case.failure == failure]
    assert bad(sample(every, 1200)) == []


@pytest.mark.soak
@pytest.mark.parametrize("failure", FAILURES)
def test_all_other_chains(failure):
    every = cases([1, 2], sides=SIDES, trust=("own", "stranger"))
    chosen = [case for case in every if case.failure == failure and not (case.keeps_all)]
    assert bad(sample(chosen, 1200)) == []
