"""
The loggers of amends. What was received from a peer is cleaned where it enters a line.

A code, a trace id or a path of a peer could otherwise write lines of its own into a log, or move the cursor of the terminal that
shows it. The fields of a record (`record.amends`, `extra`) stay whole, for formatters that write JSON.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from amends.core.text import one_line

__all__ = ["logger"]

_LONGEST = 1000
"""Bytes of one value in a line."""


def logger(name: str) -> logging.Logger:
    r"""
    Return the logger of this name, which cleans the values of its lines.

    >>> import sys
    >>> log = logger("amends.example")
    >>> log.addHandler(logging.StreamHandler(sys.stdout))
    >>> log.warning("%s answered %d", "shop\nERROR forged\x1b[2K", 503)
    shopERROR forged[2K answered 503
    >>> log.handlers.clear()

    """
    found = logging.getLogger(name)
    found.addFilter(_clean)
    return found


def _clean(record: logging.LogRecord) -> bool:
    """Clean the values of a record; keep the record. The same filter is added once, however often a logger is asked for."""
    if isinstance(record.args, Mapping):
        record.args = {name: _cleaned(value) for name, value in record.args.items()}
    elif record.args:
        record.args = tuple(map(_cleaned, record.args))
    return True


def _cleaned(value: object) -> object:
    """Return a value of a line: texts and exceptions as one clean line, others unchanged."""
    if isinstance(value, str):
        return one_line(str(value), _LONGEST)
    if isinstance(value, BaseException):
        try:
            return one_line(str(value), _LONGEST)
        except Exception:  # noqa: BLE001 - an exception may raise when it is shown
            return type(value).__name__
    return value
