"""
Every decision about safety, with the tests that forge what a peer controls against it.

A function is entered here as "module:function" once it has the decorator `amends.proof.rests_on`.
"""

from __future__ import annotations

FORGED_BY: dict[str, tuple[str, ...]] = {
    "amends.carriers.report:_may_repeat": (
        "tests/commands/test_decode.py::test_a_wire_that_states_executed_maybe",
        "tests/commands/test_decode.py::test_the_decision_depends_on_whether_a_repeat_is_safe",
    ),
}
"""The decision → node ids of tests, relative to the repository; a file counts for all of its tests."""
