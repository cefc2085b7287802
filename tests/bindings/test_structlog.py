"""Tests of the structlog binding."""

import runpy
import sys

import pytest
import structlog

import amends.bindings.structlog as binding
from amends import Fault, FaultError, Operation, recover
from amends.errors import RateLimitedError
from amends.testing import FakeClock, Script


@pytest.fixture
def records():
    """Capture structlog's records with its default configuration, and restore the configuration afterwards."""
    before = structlog.get_config()
    structlog.reset_defaults()
    binding.install()
    with FakeClock(), structlog.testing.capture_logs() as captured:
        yield captured
    binding.remove()
    structlog.configure(**before)


def test_one_record_per_event(records):
    """T11: level and error {code, message}; the message is the meaning of the code."""
    recover(Script(RateLimitedError("s3cret", retry_after=1.5), 1), operation=Operation(name="read"))
    assert [record["event"] for record in records] == ["retry", "recovered"]
    first = records[0]
    assert (first["log_level"], first["delay"], first["operation"]) == ("info", 1.5, "read")
    assert first["error"] == {"code": "RATE_LIMITED", "message": "Too many requests"}


def test_giving_up_is_a_warning(records):
    """The record has no delay."""
    with pytest.raises(FaultError):
        recover(Script(Fault(code="NOT_FOUND")))
    assert records[-1]["log_level"] == "warning"
    assert "delay" not in records[-1]


def test_a_missing_package_is_named(monkeypatch):
    """structlog has no extra, so the error names the package."""
    monkeypatch.setitem(sys.modules, "structlog", None)
    with pytest.raises(ImportError, match="pip install structlog"):
        runpy.run_path(binding.__file__)
