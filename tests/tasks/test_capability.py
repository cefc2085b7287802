"""What a capability declares about repeating its call, and the type of its input."""

import functools

import pytest

from amends.tasks.attempts import operation_of
from amends.tasks.capability import HOOK_SECONDS, Capability, input_type


@pytest.mark.parametrize(
    ("options", "promises", "repeatable"),
    [
        ({}, "", False),
        ({"read_only": True}, "read_only", True),
        ({"keyed": True, "idempotent": True}, "idempotent+keyed", True),
    ],
)
def test_promises(options, promises, repeatable):
    """The key is part of the operation only if the service recognises it."""
    capability = Capability(name="c", call=print, **options)
    operation = operation_of(capability, "agent", "k")
    assert (capability.promises, capability.repeatable) == (promises, repeatable)
    assert (operation.name, operation.key) == ("agent/c", "k" if options.get("keyed") else None)
    assert (operation.read_only, operation.idempotent) == (
        bool(options.get("read_only")),
        bool(options.get("idempotent")),
    )


@pytest.mark.parametrize(("timeout", "longest"), [(None, HOOK_SECONDS), (7.0, 7.0), (900.0, HOOK_SECONDS)])
def test_when_a_call_must_have_ended(timeout, longest):
    assert Capability(name="c", call=print, timeout=timeout).longest == longest


def with_input(value: int, ctx):
    return value


def without_annotation(value, ctx):
    return value


def unresolved(value: "NoSuchType"):  # noqa: F821
    return value


class Callable:
    def __call__(self, value: str):
        return value


def test_the_type_of_the_input():
    """The annotation of the first positional parameter."""
    from typing import Any

    assert input_type(with_input) is int
    assert input_type(functools.partial(with_input, ctx=None)) is int
    assert input_type(Callable()) is str
    assert input_type(Callable().__call__) is str
    assert input_type(without_annotation) is Any
    assert input_type(lambda: None) is Any
    assert input_type(lambda *, key: None) is Any
    with pytest.raises(TypeError, match="define it at module level"):
        input_type(unresolved)
