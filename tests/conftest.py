"""Settings of the whole suite: signals, reports of xdist workers, and Hypothesis without a deadline."""

import gc
import signal

import pytest
from hypothesis import settings

from amends.recovery.origins import forget_origins
from amends.recovery.process_quota import process_quota

# The duration of an example depends on the load of the machine.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A process that a shell starts in the background ignores SIGINT, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # `nohup make test`: the commands under test shall not inherit it. A handler is reset when a process starts a program, and
    # keeps this one alive.
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def pytest_collection_finish():
    """Exclude the imported libraries from garbage collections, each of which would take 0.1 s."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report):
    """Failures quote hostile text; characters outside UTF-8 are escaped, because they would crash the xdist worker."""
    return escape((yield))


def escape(value):
    """Return the value with lone surrogates escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {escape(name): escape(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(escape, value))
    return value


@pytest.fixture(autouse=True)
def fresh_quota():
    """Every test starts with a full quota of repeats, and without knowledge about services."""
    process_quota.turn(on=True)
    forget_origins()
