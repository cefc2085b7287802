"""
Writing then reading returns the same Fault minus LOSSES: for every dialect, and for every ordered pair of them.

Two things besides LOSSES are stated here exactly. A wait survives to the millisecond (in problem and envelope, whose
member is whole milliseconds). A problem always has a title and a status (P1): where the fault has none they are the
code's own, so they come back filled.
"""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import (
    RESERVED,
    VOCABULARY_OF,
    calm_texts,
    faults,
    hostile,
    json_values,
    often,
    rarely,
    seldom,
)

from amends.core.crosswalk import source_row
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.redaction import find
from amends.core.vocabulary import EVERYDAY, row_for
from amends.dialects import NAMES, decode, dialect, encode
from amends.dialects.translation import losses, translate

FIELDS = frozenset(Fault.__struct_fields__)
NOT_SAID = {"origin", "vocabulary"}
"""Where a fault was found is about one hop, and whose word a code is goes without saying in its own dialect."""


def without(fault, lost):
    """What a fault says, less the fields in `lost`, in itself and its parts."""
    said = {name: getattr(fault, name) for name in FIELDS - lost}
    if "errors" in said:
        said["errors"] = [without(child, lost) for child in fault.errors]
    return said


def filled(fault):
    """A fault as a problem says it: with a title and a status, in its parts too."""
    row = source_row(fault)
    return replace(
        fault,
        title=row.message if fault.title is None else fault.title,
        status=fault.status or row.status or row_for(EVERYDAY, row.everyday).status,
        errors=tuple(map(filled, fault.errors)),
    )


def again(fault, name):
    """Written in a dialect, through real JSON, and read again."""
    return decode(json.dumps(encode(fault, name)).encode(), name)


def expected(fault, name):
    """What has to come back at least."""
    return filled(fault) if name == "problem" else fault


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_fields(name):
    """House style 3: every lossy bullet is data; M2, M8: two fields are lost everywhere, `executed` in three formats."""
    assert dialect(name).LOSSES < FIELDS
    assert {"origin", "vocabulary"} <= dialect(name).LOSSES
    assert ("executed" in dialect(name).LOSSES) == (name not in {"problem", "envelope"})


@pytest.mark.parametrize("name", NAMES)
@rarely
@given(st.data())
def test_writing_then_reading_gives_the_fault_minus_losses(name, data):
    """Design 4: a property, not a hope."""
    fault = data.draw(faults(name))
    module = dialect(name)
    back = again(fault, name)
    # A7: what AdCP cannot carry is no error at all; losses says so.
    if back is None:
        assert name == "adcp"
        assert losses(fault, name) >= {"code", "message"} - ({"message"} if not fault.message else set())
        return
    assert without(back, module.LOSSES) == without(expected(fault, name), module.LOSSES)
    assert (back.vocabulary, back.origin.dialect) == (VOCABULARY_OF[name], name)


@pytest.mark.parametrize("name", NAMES)
@rarely
@given(st.data())
def test_what_the_loss_report_says_is_what_is_lost(name, data):
    """Design 4: losses agrees with LOSSES, and with what really does not come back; an empty field is not lost."""
    fault = data.draw(faults(name))
    back = again(fault, name)
    assume(back is not None)
    reported = losses(fault, name)
    assert reported <= dialect(name).LOSSES
    for field in FIELDS - NOT_SAID - {"errors"}:
        value = getattr(fault, field)
        if field not in reported and value not in (None, "", (), {}):
            assert getattr(back, field) == value
    own = {
        field
        for field in FIELDS - NOT_SAID - {"errors"}
        if getattr(fault, field) not in (None, "", (), {}) and getattr(back, field) != getattr(fault, field)
    }
    assert own <= reported
    if not fault.errors:
        assert own == reported


@pytest.mark.parametrize("second", NAMES)
@pytest.mark.parametrize("first", NAMES)
@seldom
@given(st.data())
def test_every_pair_keeps_what_neither_loses(first, second, data):
    """Design 4: A → Fault → B → Fault. The code is written as it stands; texts here hold nothing to redact."""
    fault = data.draw(faults(first, strings=calm_texts, depth=0))
    middle = again(fault, first)
    assume(middle is not None)
    end = again(middle, second)
    assume(end is not None)
    lost = dialect(first).LOSSES | dialect(second).LOSSES
    if second == "adcp" and first != "adcp":
        # A10: what we say ourselves waits whole seconds from 1 to 3600.
        lost |= {"retry_after"}
        if middle.retry_after is not None:
            assert end.retry_after == min(3600, max(1, -(-middle.retry_after // 1)))
    wanted = fault
    for name in (first, second):
        wanted = expected(wanted, name)
    if "problem" in {first, second}:
        # Each side fills a title and a status from its own row.
        for field in ("title", "status"):
            if getattr(fault, field) is None:
                lost |= {field}
    assert without(end, lost) == without(wanted, lost)


@pytest.mark.parametrize("second", NAMES)
@pytest.mark.parametrize("first", NAMES)
@seldom
@given(st.data())
def test_translated_through_any_pair_the_code_comes_back_and_the_recovery_stays(first, second, data):
    """M2, M5: into the other's words, over its wire, and home again."""
    fault = data.draw(faults(first, strings=calm_texts, depth=0))
    # A word nobody knows that reads like a piece of SQL or an address is taken out on the way, as it has to be.
    assume(not find(fault.code))
    fault = replace(fault, status=None)
    told, lost = translate(fault, VOCABULARY_OF[second])
    assert told.recovery is fault.recovery
    received = again(told, second)
    assume(received is not None)
    assert "code" not in lost
    home, _ = translate(replace(received, status=None), VOCABULARY_OF[first])
    assert home.code == fault.code
    if "recovery" not in dialect(second).LOSSES:
        assert home.recovery is fault.recovery


@pytest.mark.parametrize("name", NAMES)
@rarely
@given(st.data())
def test_extensions_never_overwrite_a_known_member(name, data):
    """Design 3, house style mistake 1: whatever an extension is called, known members say what the fault says."""
    fault = data.draw(faults(name, depth=0))
    evil = data.draw(st.dictionaries(st.sampled_from(sorted(RESERVED)), json_values(), min_size=1))
    evil.pop("recovery", None)  # AdCP's own: the next test
    poisoned = replace(fault, extensions={**fault.extensions, **evil})
    clean, dirty = encode(fault, name), encode(poisoned, name)
    assert {key: dirty[key] for key in clean if key != "error"} == {
        key: clean[key] for key in clean if key != "error"
    }
    known = dialect(name)._MEMBERS
    inner, outer = (document.get("error", document) for document in (clean, dirty))
    assert {key: value for key, value in outer.items() if key in known} == {
        key: value for key, value in inner.items() if key in known
    }


@pytest.mark.parametrize("word", ["transient", "soon", ["x"]])
@pytest.mark.parametrize("name", ["task", "arcp"])
@pytest.mark.parametrize("recovery", Recovery)
def test_a_strangers_recovery_never_becomes_ours(name, recovery, word):
    """M2: a task or ARCP error that happens to have a member `recovery` says nothing about AdCP's."""
    error = {"code": "X", "message": "", "recoverable": False, "retryable": False, "recovery": word}
    fault = replace(decode(error, name), recovery=recovery)
    told, _ = translate(fault, "adcp")
    written = "transient" if recovery is Recovery.UNCERTAIN else recovery.value
    assert encode(told, "adcp")["recovery"] == written


@often
@given(hostile(), st.sampled_from(NAMES))
def test_what_was_read_can_be_passed_on(value, name):
    """Whatever a decoder accepts, its encoder writes, and the same fault is read again minus LOSSES."""
    fault = decode(value, name)
    if fault is not None:
        back = decode(encode(fault, name), name)
        assert (back.code, back.recovery) == (fault.code, fault.recovery)
        assert back.extensions == fault.extensions
