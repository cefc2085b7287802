"""JavaScript's truth, on which S4's detection order stands."""

import pytest

from amends.carriers.layers import payload_error, truthy


@pytest.mark.parametrize(
    "value", [{}, [], {"a": 1}, [0], "x", "0", "false", 1, -1, 0.5, True, float("inf"), 10**400]
)
def test_truthy(value):
    """Design 4: empty objects and arrays count."""
    assert truthy(value)


@pytest.mark.parametrize("value", [None, False, 0, 0.0, -0.0, "", float("nan")])
def test_falsy(value):
    """NaN does not."""
    assert not truthy(value)


@pytest.mark.parametrize(
    "payload", [None, [], "x", {}, {"payload": []}, {"payload": {"errors": {}}}, {"errors": [""]}]
)
def test_no_payload_layer(payload):
    """A6 step 6: nothing there is nothing, not a failure."""
    assert payload_error(payload, failed=True, finished=False) is None
