"""A package that is not installed is an error of its own, with the pip line that installs it."""

from __future__ import annotations

from amends.core.enums import Actor, Executed, Recovery
from amends.errors.base import FaultError

__all__ = ["MissingExtraError", "from_import_error"]


class MissingExtraError(FaultError):
    """A subcommand needs an extra that is not installed."""

    code = "MISSING_EXTRA"
    message = "A package that this command needs is not installed"
    recovery = Recovery.CORRECTABLE
    executed = Executed.NO
    actor = Actor.CALLER
    exit = 2


def from_import_error(error: ImportError) -> MissingExtraError | None:
    """
    Return the error for an ImportError of ours, which ends with its pip line, or None for any other.

    >>> found = from_import_error(ImportError("a nats: store needs nats-py: pip install 'amends[nats]'"))
    >>> found.fault.message, found.fault.suggestions
    ('a nats: store needs nats-py', ("pip install 'amends[nats]'",))
    """
    what, _, step = str(error).rpartition(": ")
    return MissingExtraError(what, suggestions=[step]) if step.startswith("pip install ") else None
