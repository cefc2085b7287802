"""Plans: dependencies, and errors that are found before anything runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import FaultError
from amends.tasks import Step, fan_out, graph, result_of, sequence
from amends.tasks.plan import fill_results
from tests.strategies import rarely


def step(name, *after, payload=None, **more):
    return Step(name=name, type="t", after=after, payload=payload, **more)


def test_a_cycle_is_an_error():
    """TASK_GRAPH_CYCLE has the steps in the order in which they would have to run."""
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
    "steps", [[], [step("a"), step("a")], [step("")], [step("a>b")], [step("a", "unknown")]]
)
def test_invalid_plans(steps):
    """Names must be unique and valid, and dependencies must exist."""
    with pytest.raises(FaultError) as raised:
        graph(steps)
    assert raised.value.fault.code == "INVALID_FIELD_VALUE"


@rarely
@given(st.integers(2, 30), st.data())
def test_only_graphs_without_a_cycle_are_accepted(size, data):
    """Steps that wait only for earlier ones are accepted; a chain that is closed to a circle is not."""
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


def test_a_long_chain_needs_no_recursion():
    """Ten thousand steps."""
    steps = [step(str(n), *((str(n - 1),) if n else ())) for n in range(10_000)]
    assert len(graph(steps)) == 10_000


def test_sequences_and_fan_outs():
    """Steps of a sequence wait for one another; `partial` makes the steps of a fan-out optional."""
    one, two = sequence(step("a"), step("b", payload=result_of("a")))
    assert (one.after, two.after) == ((), ("a",))
    assert [each.optional for each in fan_out(step("a"), step("b"), partial=True)] == [True, True]


def test_results_are_filled_in():
    """Whole results and parts, at any depth up to a limit."""
    results = {"a": {"title": "T", "list": [1, {"x/y": 2}]}}.get
    payload = {"t": result_of("a", "/title"), "n": [result_of("a", "/list/1/x~1y")], "same": {"at": "/title"}}
    assert fill_results(payload, results) == {"t": "T", "n": [2], "same": {"at": "/title"}}
    assert fill_results(result_of("gone"), results) is None
    for missing in ("/nothing", "/list/9", "/list/x", "/title/0"):
        with pytest.raises(FaultError) as raised:
            fill_results(result_of("a", missing), results)
        assert raised.value.fault.code == "INVALID_FIELD_VALUE"
    deep = payload
    for _ in range(200):
        deep = [deep]
    assert fill_results(deep, results)
    assert graph([Step(name="x", type="t", payload=deep)])


def test_an_empty_sequence_is_refused_as_other_empty_plans_are():
    for plan in (sequence, fan_out, lambda: graph([])):
        with pytest.raises(FaultError, match="at least one step"):
            plan()
