"""The ARCP errors: the same classes as `amends.errors.arcp`."""

from __future__ import annotations

from amends.errors import arcp
from amends.errors.arcp import *  # noqa: F403 - the same names, all of them
from amends.errors.arcp import TimeoutError  # noqa: A004, F401 - not one of `*`, which would replace the builtin

__all__ = arcp.__all__
