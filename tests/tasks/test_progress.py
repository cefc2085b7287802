"""The steps of a plan that can start, as other steps settle."""

from hypothesis import given
from hypothesis import strategies as st

from amends.tasks.entries import Submitted
from amends.tasks.fold import fold
from amends.tasks.plan import Step
from amends.tasks.run import Progress
from amends.tasks.state import TaskState


@st.composite
def plans(draw):
    """Plans without cycles: a step waits for earlier ones only."""
    steps = []
    for number in range(draw(st.integers(1, 8))):
        after = draw(st.sets(st.sampled_from([step.name for step in steps]))) if steps else set()
        steps.append(Step(name=f"s{number}", type="t", after=tuple(after), optional=draw(st.booleans())))
    return tuple(steps)


@given(plans(), st.randoms(use_true_random=False))
def test_the_same_steps_as_by_looking_at_all(plan, dice):
    """In any order of settling, and with failures of optional steps."""
    state = fold(TaskState(), [Submitted(at=1.0, id="t", type="plan", steps=plan, single=False)])
    progress, order = Progress(state), []
    while True:
        ready = {name for name, _ in progress.steps(state)}
        expected = {
            step.name
            for step in plan
            if not state.steps[step.name].settled and all(state.steps[each].settled for each in step.after)
        }
        assert ready == expected
        if not ready:
            break
        name = dice.choice(sorted(ready))
        order.append(name)
        state.steps[name].state = (
            "failed" if state.steps[name].plan.optional and dice.random() < 0.5 else "done"
        )
    assert sorted(order) == sorted(step.name for step in plan)
