"""The generated classes: up to date, importable, documented, and safe to pickle and copy."""

import builtins
import copy
import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from tests.each import each

from amends import errors as everyday
from amends.core.fault import Fault
from amends.core.vocabulary import EVERYDAY, vocabulary
from amends.errors.base import FaultError, class_for, class_name

ROOT = Path(__file__).parents[2]
MODULES = {
    EVERYDAY: "amends.errors",
    **{name: f"amends.errors.{name}" for name in ("adcp", "task", "cli", "arcp")},
}
CLASSES = [(name, code) for name in MODULES for code in vocabulary(name).rows]


def import_class(name, code):
    """Return the class as a user imports it."""
    return getattr(importlib.import_module(MODULES[name]), class_name(code))


def test_the_files_are_up_to_date():
    """Issue 2: the files are what `make generate` writes from the tables."""
    script = ROOT / "scripts" / "generate_errors.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_check_finds_a_changed_file(tmp_path):
    """`--check` fails if a file differs; tested on a copy."""
    source = (ROOT / "scripts" / "generate_errors.py").read_text()
    here = tmp_path / "errors"
    here.mkdir()
    changed = source.replace(
        'HERE = Path(__file__).resolve().parent.parent / "src" / "amends" / "errors"',
        f"HERE = Path({str(here)!r})",
    )
    assert changed != source
    script = tmp_path / "generate.py"
    script.write_text(changed)
    run = [sys.executable, str(script)]
    assert subprocess.run([*run, "--check"], capture_output=True, check=False).returncode == 1
    assert subprocess.run(run, capture_output=True, check=False).returncode == 0
    assert subprocess.run([*run, "--check"], capture_output=True, check=False).returncode == 0
    (here / "cli.py").write_text("# a manual edit\n")
    done = subprocess.run([*run, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.partition(" ")[0]) == (1, "cli.py")


@each(("name", "code"), CLASSES)
def test_every_code_has_its_class(name, code):
    """Design 3, A16, R1: each code of each vocabulary has one class, which `class_for` returns."""
    cls = import_class(name, code)
    assert issubclass(cls, FaultError)
    assert (cls.code, cls.vocabulary) == (code, name)
    assert cls.__name__ == class_name(code)
    exported = cls.__name__ in importlib.import_module(MODULES[name]).__all__
    assert exported is not hasattr(builtins, cls.__name__)
    assert class_for(name, code) is cls
    assert type(FaultError.from_fault(Fault(code=code, vocabulary=name))) is cls


@each(("name", "code"), CLASSES)
def test_every_class_has_its_rows_facts_and_can_be_copied(name, code):
    """House style 9: pickle and copy work; docstring and fault have the facts of the code's row."""
    cls, row = import_class(name, code), vocabulary(name).rows[code]
    assert row.message in cls.__doc__
    assert row.recovery in cls.__doc__
    error = cls()
    assert (error.fault.code, error.fault.vocabulary, error.fault.recovery) == (code, name, row.recovery)
    assert (error.fault.executed, error.fault.actor, error.fault.message) == (
        row.executed,
        row.actor,
        row.message,
    )
    full = cls("The message", retry_after=5, details={"a": 1}, suggestions=["b"], field="c", trace_id="d")
    for again in (pickle.loads(pickle.dumps(full)), copy.copy(full), copy.deepcopy(full)):
        assert type(again) is cls
        assert (again.fault, again.args, str(again)) == (full.fault, full.args, "The message")


@each(("name", "code"), [item for item in CLASSES if item[0] != EVERYDAY])
def test_classes_derive_from_their_everyday_class(name, code):
    """Design 3: a code of the everyday set derives from that class, so one `except` catches it in every dialect."""
    above = getattr(everyday, class_name(code), None)
    cls = import_class(name, code)
    assert above is None or issubclass(cls, above)
    others = [other for other in everyday.__all__ if other not in {"FaultError", class_name(code)}]
    assert not any(issubclass(cls, getattr(everyday, other)) for other in others)


@pytest.mark.parametrize("name", [name for name in MODULES if "TIMEOUT" in vocabulary(name).rows])
def test_timeout_errors_are_builtin_timeout_errors(name):
    """Design 3: TimeoutError also derives from the builtin TimeoutError."""
    cls = import_class(name, "TIMEOUT")
    assert issubclass(cls, builtins.TimeoutError)
    with pytest.raises(builtins.TimeoutError):
        raise cls("late")


@pytest.mark.parametrize("name", MODULES)
def test_each_module_exports_its_vocabulary(name):
    """A module exports the classes of its vocabulary, its base class, and R5's function."""
    module = importlib.import_module(MODULES[name])
    expected = {class_name(code) for code in vocabulary(name).rows}
    extra = {EVERYDAY: {"FaultError"}, "arcp": {"ARCPError", "is_retryable_by_default"}}.get(name, set())
    # `import *` must not replace the builtin.
    assert set(module.__all__) == (expected | extra) - {"TimeoutError"}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("RATE_LIMITED", "RateLimitedError"),
        ("INTERNAL_ERROR", "InternalError"),
        ("MCP_ERROR", "McpError"),
        ("ERROR", "ErrorError"),
        ("NETWORK_ERROR", "NetworkError"),
        ("AGENT_VERSION_NOT_AVAILABLE", "AgentVersionNotAvailableError"),
    ],
)
def test_class_names(code, name):
    """Design 3: a class name is CamelCase with the suffix Error, which is not doubled; ARCP's names are S5's."""
    assert class_name(code) == name
