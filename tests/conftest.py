"""What the whole suite needs: interrupts that work, reports that can travel between its workers, properties without a stopwatch."""

import signal

import pytest
from hypothesis import settings

# On a busy machine the duration of an example proves nothing.
settings.register_profile("calm", deadline=None)
settings.load_profile("calm")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A process that a shell starts in the background ignores SIGINT, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(report):
    """Failures quote hostile text; characters outside UTF-8 are escaped, because they would crash the xdist worker."""
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
