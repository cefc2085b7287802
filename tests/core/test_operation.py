"""Operation: whether a call may be repeated."""

from types import SimpleNamespace

import pytest

from amends import Operation


@pytest.mark.parametrize(
    ("operation", "repeatable"),
    [
        (Operation(), False),
        (Operation(read_only=True), True),
        (Operation(idempotent=True), True),
        (Operation(key="k"), True),
        (Operation(destructive=True), False),
        (Operation(keyed=True), False),
    ],
)
def test_repeatable(operation, repeatable):
    """An operation is repeatable if it is read-only, idempotent or has a key; `keyed` alone is not enough."""
    assert operation.repeatable is repeatable


@pytest.mark.parametrize(
    ("method", "read_only", "repeatable"),
    [
        ("get", True, True),
        ("HEAD", True, True),
        ("PUT", False, True),
        ("DELETE", False, True),
        ("POST", False, False),
        ("PATCH", False, False),
    ],
)
def test_http_methods(method, read_only, repeatable):
    """The properties of HTTP methods are those of RFC 9110, 9.2."""
    operation = Operation.of_http(method)
    assert (operation.read_only, operation.repeatable, operation.name) == (
        read_only,
        repeatable,
        method.upper(),
    )


def test_a_post_with_a_key_may_be_repeated():
    """A key makes an operation repeatable, whatever the method."""
    assert Operation.of_http("POST", key="k", name="pay").repeatable


@pytest.mark.parametrize(
    ("annotations", "read_only", "idempotent", "destructive"),
    [
        ({"readOnlyHint": True}, True, False, False),
        ({"idempotentHint": True, "destructiveHint": False}, False, True, False),
        (SimpleNamespace(read_only_hint=True, idempotent_hint=None), True, False, False),
        ({"readOnlyHint": "true", "idempotentHint": 1}, False, False, True),
        (None, False, False, True),
    ],
)
def test_tool_annotations_count_only_when_exactly_true(annotations, read_only, idempotent, destructive):
    """Annotations come from the server; values such as "true" and 1 are ignored."""
    operation = Operation.of_tool(annotations, name="tool")
    assert (operation.read_only, operation.idempotent, operation.destructive) == (
        read_only,
        idempotent,
        destructive,
    )


def test_annotations_as_an_sdk_object():
    """The deprecated attribute names are read only if the object does not have the new ones."""

    class Annotations:
        read_only_hint = None
        idempotent_hint = True
        destructive_hint = None

        @property
        def readOnlyHint(self):  # noqa: N802
            raise AssertionError("deprecated")

    class Old:
        readOnlyHint = True  # noqa: N815

    assert (Operation.of_tool(Annotations()).read_only, Operation.of_tool(Annotations()).idempotent) == (
        False,
        True,
    )
    assert Operation.of_tool(Old()).read_only


@pytest.mark.parametrize("key", ["", 5, b"k", 0])
def test_a_key_is_a_non_empty_string(key):
    """Servers ignore other keys, so they must not make an operation repeatable."""
    with pytest.raises(ValueError, match="non-empty string"):
        Operation(key=key)
