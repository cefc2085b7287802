"""What the whole suite needs: interrupts that work, and reports that can travel between its workers."""

import signal
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever is started in the background of a shell inherits deafness, and all its children do.
    signal.signal(signal.SIGINT, signal.default_int_handler)


HERE = Path(__file__).parent
REAL = {"arcp", "cluster", "demo", "stores", "tasks", "bindings/test_a2a_client.py"}
"""Where servers are killed, or leases and streams run out by the clock."""


def pytest_collection_modifyitems(items):
    """
    Tests with real servers and processes of their own get a second chance, which the summary counts as a rerun.

    What they wait for is bounded by seconds, and a machine that does something else for that long proves nothing. What fails
    twice fails.
    """
    for item in items:
        place = item.path.relative_to(HERE)
        if place.parts[0] in REAL or place.as_posix() in REAL:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report):
    """Failures quote hostile text; what UTF-8 cannot say is shown escaped, or the worker would end with its report."""
    return sayable((yield))


def sayable(value):
    """The same without lone surrogates."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {sayable(name): sayable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(sayable, value))
    return value
