"""Plans: what waits for what, and what is wrong before anything runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import FaultError
from amends.tasks import Step, fan_out, graph, result_of, sequence
from amends.tasks.plan import filled
from tests.strategies import rarely


def step(name, *after, payload=None, **more):
    return Step(name=name, type="t", after=after, payload=payload, **more)


def test_a_cycle_is_named():
    """TASK_GRAPH_CYCLE says which steps, in the order they would have to happen."""
    with pytest.raises(FaultError) as raised:
        graph([step("start"), step("a", "c"), step("b", payload=[{"x": result_of("a")}]), step("c", "b")])
    fault = raised.value.fault
    assert fault.code == "TASK_GRAPH_CYCLE"
    assert fault.recovery == "terminal"
    assert fault.details == {"cycle": ["a", "b", "c", "a"]}


def test_a_step_that_waits_for_itself():
    """The smallest cycle."""
    with pytest.raises(FaultError) as raised:
        graph([step("a", "a")])
    assert raised.value.fault.details == {"cycle": ["a", "a"]}


@pytest.mark.parametrize(
    "steps", [[], [step("a"), step("a")], [step("")], [step("a>b")], [step("a", "nobody")]]
)
def test_a_plan_that_is_none(steps):
    """Names are unique, and dependencies exist."""
    with pytest.raises(FaultError) as raised:
        graph(steps)
    assert raised.value.fault.code == "INVALID_FIELD_VALUE"


@rarely
@given(st.integers(2, 30), st.data())
def test_graphs_without_a_way_back_are_taken(size, data):
    """Whatever waits only for earlier ones is a plan; one arrow back along a path is none."""
    names = [str(n) for n in range(size)]
    steps = [
        step(name, *data.draw(st.lists(st.sampled_from(names[:n]), max_size=3)) if n else ())
        for n, name in enumerate(names)
    ]
    assert len(graph(steps)) == size
    chain = [step(name, *(names[n - 1 : n] if n else names[-1:])) for n, name in enumerate(names)]
    with pytest.raises(FaultError) as raised:
        graph(data.draw(st.permutations(chain)))
    assert len(raised.value.fault.details["cycle"]) == size + 1


def test_a_long_chain_is_no_recursion():
    """Ten thousand steps."""
    steps = [step(str(n), *((str(n - 1),) if n else ())) for n in range(10_000)]
    assert len(graph(steps)) == 10_000


def test_sequences_and_fan_outs():
    """A sequence waits, a fan-out does not; partial makes steps optional."""
    one, two = sequence(step("a"), step("b", payload=result_of("a")))
    assert (one.after, two.after) == ((), ("a",))
    assert [each.optional for each in fan_out(step("a"), step("b"), partial=True)] == [True, True]


def test_results_are_filled_in():
    """Whole or in part, deep inside, and only where asked for."""
    results = {"a": {"title": "T", "list": [1, {"x/y": 2}]}}.get
    payload = {"t": result_of("a", "/title"), "n": [result_of("a", "/list/1/x~1y")], "same": {"at": "/title"}}
    assert filled(payload, results) == {"t": "T", "n": [2], "same": {"at": "/title"}}
    assert filled(result_of("gone"), results) is None
    for nowhere in ("/nothing", "/list/9", "/list/x", "/title/0"):
        with pytest.raises(FaultError) as raised:
            filled(result_of("a", nowhere), results)
        assert raised.value.fault.code == "INVALID_FIELD_VALUE"
    deep = payload
    for _ in range(200):
        deep = [deep]
    assert filled(deep, results)
    assert graph([Step(name="x", type="t", payload=deep)])
