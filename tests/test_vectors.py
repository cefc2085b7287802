"""The shipped vectors: each gives the expected result, names its source, and is in the package."""

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest

from amends import vectors
from amends.carriers.extraction import VIAS, examine
from amends.carriers.report import Report, report
from amends.core.enums import Action
from amends.core.fault import Fault
from amends.core.wire import Unreadable, read
from tests.each import each

ALL = tuple(vectors.load())
TRANSPORT = tuple(vectors.load_transport())

# The members of an expectation; a misspelt one would silently check nothing.
MEMBERS = {
    *("readable", "found", "failed", "fatal", "via", "path", "error", "error_at", "fault"),
    *("decision", "decision_unsafe"),
}


def examined(vector: vectors.Vector, *, safe: bool) -> Report:
    """Return the report of `amends decode` on the response of a vector."""
    via, reading = examine(vector.response, vector.via)
    return report(via, reading, vector.response, safe=safe)


def differences(expected: dict[str, Any], fault: Fault) -> dict[str, tuple[Any, Any]]:
    """Return the fields of a fault that differ from the vector: name → (expected, got), nested errors too."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, value in expected.items():
        got = getattr(fault, name)
        if name == "errors":
            found |= {
                f"errors[{i}].{k}": v
                for i, (e, g) in enumerate(zip(value, got, strict=True))
                for k, v in differences(e, g).items()
            }
        elif msgspec.json.decode(msgspec.json.encode(got)) != value:
            found[name] = (value, got)
    return found


def at(pointer: str, document: Any) -> Any:
    """Return the value at a JSON pointer."""
    for step in pointer.split("/")[1:]:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


@each("vector", ALL, ids=lambda vector: vector.id)
def test_every_vector_holds(vector):
    """Fault, action and wait are those that the vector expects."""
    expected = vector.expected
    got = examined(vector, safe=True)
    for name in ("found", "failed", "fatal", "via", "path"):
        if name in expected:
            assert getattr(got, name) == expected[name], name
    if "error" in expected:
        assert got.error == expected["error"]
    if "error_at" in expected:
        assert got.error == at(expected["error_at"], vector.input)
    if "fault" in expected:
        assert got.fault is not None
        assert differences(expected["fault"], got.fault) == {}
    assert examined(vector, safe=False).decision == got.decision_unsafe
    for name, decision in (("decision", got.decision), ("decision_unsafe", got.decision_unsafe)):
        assert {"action": decision.action.value, "delay": decision.delay} == expected[name], name


@pytest.mark.parametrize("vector", [v for v in ALL if "readable" in v.expected], ids=lambda vector: vector.id)
def test_readable(vector):
    """`readable` states whether the input can be parsed (M6: `amends decode` answers other input with an envelope)."""
    if vector.expected["readable"]:
        read(vector.response)
    else:
        with pytest.raises(Unreadable):
            read(vector.response)


@pytest.mark.parametrize("vector", TRANSPORT, ids=lambda vector: vector.id)
def test_every_vector_in_adcps_format_holds(vector):
    """A17: transport, path and response give the error as sent and S4's action (A1, A2, A3, A4, A6, A7, A10, A12)."""
    via, reading = examine(vector.response, vector.transport)
    got = report(via, reading, vector.response)
    assert got.error == vector.expected_error
    assert vectors.ADCP_ACTIONS[got.decision.action] == vector.expected_action
    if vector.expected_error is not None:
        assert got.path == vector.path


def test_ids_are_unique():
    """There are at least 200 vectors; ids are unique and start with their group."""
    assert len(ALL) >= 200
    ids = [vector.id for vector in ALL]
    assert len(ids) == len(set(ids))
    for group in vectors.GROUPS:
        found = list(vectors.load(group))
        assert found
        assert all(vector.id.startswith(f"{group}/") for vector in found)
    assert len({vector.id for vector in TRANSPORT}) == len(TRANSPORT)


@each("vector", ALL, ids=lambda vector: vector.id)
def test_a_vector_is_well_formed(vector):
    """A vector names its source and requirements, and expects only known members."""
    assert re.match(r"S[1-5] |mappings|design|requirements|data/|ARCP 1\.1|AdCP ", vector.source)
    assert vector.requirements
    assert all(re.fullmatch(r"[PCTAR]\d+", id) for id in vector.requirements)
    assert vector.via is None or vector.via in VIAS
    assert set(vector.expected) <= MEMBERS
    assert {"found", "decision", "decision_unsafe"} <= set(vector.expected)
    assert set(vector.expected.get("fault", {})) <= set(Fault.__struct_fields__)
    assert vector.expected["found"] or "fault" not in vector.expected
    for name in ("decision", "decision_unsafe"):
        assert vector.expected[name].keys() == {"action", "delay"}
        assert vector.expected[name]["action"] in list(Action)


def test_every_action_that_a_single_failure_can_have_occurs():
    """All actions occur except `fallback`, which needs a policy with one."""
    seen = {vector.expected[name]["action"] for vector in ALL for name in ("decision", "decision_unsafe")}
    assert seen == {action.value for action in Action} - {"fallback"}
    assert {vector.expected_action for vector in TRANSPORT} == set(vectors.ADCP_ACTIONS.values())


def test_every_via_occurs():
    """The vectors cover every `via`, and None, except WebSockets, of which the specifications do not speak."""
    assert {vector.via for vector in ALL} == {None, *VIAS} - {"websocket"}


def test_every_group_has_a_file():
    """The package contains exactly one file per group."""
    names = {item.name for item in files("amends.vectors").iterdir() if item.name.endswith(".json")}
    assert names == {f"{group}.json" for group in (*vectors.GROUPS, "transport-error-mapping")}


def test_an_unknown_group_raises():
    """An unknown group raises LookupError, and the message lists the names."""
    with pytest.raises(LookupError, match="adcp-mcp"):
        list(vectors.load("nope"))


def test_raw_documents_differ_from_objects():
    """An object whose only member is `text` or `base64` represents a raw document; any other object is the document itself."""
    made = {"id": "x/y", "source": "s", "requirements": (), "via": None, "expected": {}}
    assert vectors.Vector(input={"text": "{}"}, **made).response == "{}"
    assert vectors.Vector(input={"base64": "e30="}, **made).response == b"{}"
    assert vectors.Vector(input={"text": "a", "type": "b"}, **made).response == {"text": "a", "type": "b"}
    assert vectors.Vector(input=[1], **made).response == [1]
    assert vectors.Vector(input={"code": "X"}, **made).response == {"code": "X"}


def test_the_example_of_the_documentation_runs():
    """The program on the page runs and checks one of the files."""
    page = Path(__file__).parents[1].joinpath("docs", "vectors.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"all {len(list(vectors.load('arcp')))} hold\n"


def test_the_documentation_names_every_file():
    """The page names the file of every group."""
    page = Path(__file__).parents[1].joinpath("docs", "vectors.md").read_text(encoding="utf-8")
    for name in (*vectors.GROUPS, "transport-error-mapping"):
        assert f"`{name}.json`" in page
