"""What the bindings for agent frameworks do around a call of the model."""

import pytest
from pydantic import BaseModel

from amends.bindings.model_calls import ModelCalls, without_retries
from amends.testing import FakeClock


class Throttled(Exception):
    """An exception of a framework."""


def test_a_give_up_is_the_exception_of_the_framework():
    """With the cause that it had: a binding reads from it why the model did not answer."""
    calls, made = ModelCalls(), []

    def answer(model):
        made.append(model)
        raise Throttled from ConnectionResetError("cut")

    with FakeClock(), pytest.raises(Throttled) as raised:
        calls.call("model", answer)
    assert isinstance(raised.value.__cause__, ConnectionResetError)
    assert made == ["model"] * len(made)


class Passing(BaseModel):
    """A model whose constructor passes its own default on, as those of LlamaIndex do."""

    max_retries: int

    def __init__(self, max_retries=3):
        super().__init__(max_retries=max_retries)


class Plain(BaseModel):
    """A model of which pydantic knows what the user set."""

    max_retries: int = 2


@pytest.mark.parametrize(
    ("model", "left", "tries"),
    [(Passing(), 0, 1), (Passing(5), 5, 6), (Plain(), 0, 1), (Plain(max_retries=2), 2, 3)],
)
def test_a_number_of_the_user_stays(model, left, tries):
    """It is what the user set, not what a constructor passes on; the model itself is not changed."""
    before = model.max_retries
    copied, counted = without_retries(model)
    assert (copied.max_retries, counted, model.max_retries) == (left, tries, before)
    assert (copied is model) is (tries > 1)
