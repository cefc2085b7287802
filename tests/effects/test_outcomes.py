"""Results: stored as JSON, restored as the declared type, or not stored at all."""

from dataclasses import dataclass

import pydantic
import pytest

from amends.effects import AlreadyDoneError, Effects
from amends.effects.outcomes import LARGEST, encode_result, restore_result, return_type


@dataclass
class Data:
    a: int


class Model(pydantic.BaseModel):
    a: int


def test_round_trips():
    """By the declared type; plain JSON where it does not fit or is not known."""
    for value, kind in (
        (Data(1), Data),
        (Model(a=1), Model),
        ((1, 2), tuple[int, int]),
        (None, None),
        ({"a": 1}, dict),
    ):
        assert restore_result(encode_result(value), kind) == value
    assert restore_result(encode_result(Data(1))) == {"a": 1}
    assert restore_result(encode_result("text"), int) == "text"
    assert encode_result(object()) is encode_result("x" * LARGEST) is encode_result({object(): 1}) is None


def test_return_types():
    """An annotation that cannot be evaluated counts as none."""

    def typed() -> int: ...
    def broken() -> "NoSuchName": ...  # noqa: F821

    assert return_type(typed) is int
    assert restore_result(encode_result(1), return_type(broken)) == 1


class Broken(pydantic.BaseModel):
    a: int = 1

    @pydantic.field_serializer("a")
    def fail(self, value):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "result", [object(), Broken(), {"rate": float("nan")}, [float("inf"), None], "\ud800"]
)
def test_a_result_that_cannot_be_stored(result):
    """The first caller gets it; a repeat is answered with AlreadyDoneError and not run."""
    effects, runs = Effects("memory:"), []

    @effects.once(key="order")
    def pay(order) -> object:
        runs.append(order)
        return result

    assert pay(1) is result
    with pytest.raises(AlreadyDoneError, match="could not be stored"):
        pay(1)
    assert runs == [1]
