"""Fixtures for tests of chains."""

import logging

import pytest

_LOGGERS = ("mcp", "a2a", "amends", "asyncio")


@pytest.fixture(autouse=True)
def quiet():
    """Disable the log lines of failures that the tests cause."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.NOTSET)
