"""
One failure through chains of up to three hops: a seeded sample here, all of them in `make soak`.

`python -m tests.hops "mcp:both,http:both" lost` shows a single chain.
"""

import asyncio
import random
import time

import pytest

from tests.hops.chains import SIDES, Case, cases, run, totals
from tests.hops.failures import FAILURES
from tests.hops.formats import FORMATS
from tests.hops.zygote import zygote

SEED = 41
SECONDS = 12.0
"""For each of the three samples."""


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


@pytest.mark.parametrize("failure", ["validation", "lost", "rate"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format(name, failure):
    """One hop in each format."""
    assert bad([asyncio.run(run(Case(f"{name}:both", failure)))]) == []


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
