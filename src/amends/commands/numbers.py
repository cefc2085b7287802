"""Numbers as arguments: the functions that argparse calls with their text."""

from __future__ import annotations

import argparse

__all__ = ["count_argument", "positive_seconds", "seconds"]


def seconds(text: str) -> float:
    """Return a number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError("must be a number of seconds")
    return number


def positive_seconds(text: str) -> float:
    """Return a number of seconds above 0."""
    number = seconds(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be more than 0 seconds")
    return number


def count_argument(text: str) -> int:
    """Return a whole number from 0 on."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise argparse.ArgumentTypeError("must be a whole number, 0 or more")
    return int(text)
