"""The records of a log read back as they were written, and unknown ones are an error."""

from contextlib import suppress
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.decision import Decision
from amends.core.enums import Action
from amends.core.fault import Fault
from amends.effects.steps import StepKind, StepRecord
from amends.stores import DamagedStoreError
from amends.tasks import entries
from amends.tasks.journal import task_logs
from amends.tasks.plan import Step

FAULT = Fault(code="TIMEOUT", vocabulary="task", details={"a": [1, None]})
DECISION = Decision(action=Action.RETRY, delay=1.5, reason="transient")
VALUES = {
    str: "s",
    float: 2.0,
    int: 3,
    bool: True,
    tuple[Step, ...]: (Step(name="s", type="t", payload={"x": [1]}),),
    Fault: FAULT,
    Decision: DECISION,
    StepRecord: StepRecord('["pay",1]', "digest"),
    StepKind: "begin",
}


def filled(kind):
    """A record with a value in every member."""
    values = {}
    for field in msgspec.structs.fields(kind):
        plain = [each for each in (field.type, *get_args(field.type)) if each in VALUES]
        values[field.name] = VALUES[plain[0]] if plain else {"any": "thing"}
    return kind(**values)


def test_every_record_reads_back():
    """With every member and with the required ones only, several in one entry."""
    full = [filled(kind) for kind in get_args(entries.Record)]
    few = [
        type(one)(**{f.name: getattr(one, f.name) for f in msgspec.structs.fields(type(one)) if f.required})
        for one in full
    ]
    for records in (full, few):
        assert entries.decode(entries.encode(records)) == records
    assert len(full) == 19


@given(st.binary(max_size=60) | st.just(b'[{"what":"unheard","at":1}]') | st.just(b'[{"what":"ended"}]'))
def test_what_is_no_entry(value):
    """It is reported as damaged, never as another exception."""
    with suppress(DamagedStoreError):
        assert isinstance(task_logs("tasks").decode(value), list)


def test_commands():
    """Any process may append these, and no others."""
    assert {kind.__name__ for kind in entries.COMMANDS} == {"Answered", "Verified", "Cancelled", "Retried"}
    with pytest.raises(DamagedStoreError):
        task_logs("tasks").decode(b'[{"what":"started","at":1,"step":2,"attempt":1}]')
