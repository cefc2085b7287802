"""Near-identical calls: what counts, and the window."""

import pytest

from amends.effects.durations import seconds
from amends.effects.similar import Similar, are_similar


@pytest.mark.parametrize(
    ("first", "second", "similar"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"t": "Order the tea"}, {"t": "order the  tea!"}, True),
        ({"t": "Please order the green tea for Ann"}, {"t": "Order the green tea for Ann, please"}, False),
        ({"t": "Please order the green tea for Ann"}, {"t": "Please order the green teas for Ann"}, True),
        ({"t": "order 17 of tea"}, {"t": "order 18 of tea"}, False),
        ({"t": "tea"}, {"t": "rum"}, False),
        ({"t": "!"}, {"t": "?"}, False),
        ({"t": {"x": ["A b"]}}, {"t": {"x": ["a  B"]}}, True),
        ({"t": [1]}, {"t": [1, 2]}, False),
        ({"t": "tea"}, {}, False),
        ({"t": "green tea " * 300}, {"t": "green tea " * 299 + "black tea"}, True),
        ({"t": "green tea " * 300}, {"t": "black rum " * 300}, False),
        ({"t": "ab " * 1300}, {"t": "ba " * 1300}, False),
    ],
)
def test_what_is_similar(first, second, similar):
    """Numbers and structure are equal; texts differ in a few characters. Long texts that repeat themselves take no minutes."""
    assert are_similar(first, second) is are_similar(second, first) is similar


def test_rules():
    """Seconds, a timedelta, or a rule that names arguments."""
    assert Similar.of(None) is None
    rule = Similar(within=5, on=("a",))
    assert Similar.of(rule) is rule
    assert are_similar({"a": 1, "b": 2}, {"a": 1, "b": 3}, rule.on)
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="similar"):
            Similar.of(wrong)
    for wrong in ("x", True, []):
        with pytest.raises(TypeError, match="similar"):
            Similar.of(wrong)
    assert seconds("wait", 2) == 2.0
