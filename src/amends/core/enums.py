"""The closed words every part of the project shares. A member is its own wire spelling."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Action", "Actor", "Executed", "Recovery"]


class Recovery(StrEnum):
    """What kind of answer a failure asks for."""

    TRANSIENT = "transient"
    """The same request, unchanged, may succeed later."""
    CORRECTABLE = "correctable"
    """The request has to change first."""
    TERMINAL = "terminal"
    """No program can help: a person has to act (`Fault.actor` says which)."""
    UNCERTAIN = "uncertain"
    """Nobody knows: worth at most one more try, and only where a repeat is safe."""


class Executed(StrEnum):
    """Could the failed call have had its effect?"""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"


class Actor(StrEnum):
    """Who has to act next."""

    CALLER = "caller"
    """The program that made the call."""
    USER = "user"
    """The person that program works for."""
    OPERATOR = "operator"
    """Whoever runs the service that failed."""
    PROVIDER = "provider"
    """A third party behind that service."""


class Action(StrEnum):
    """What to do about a failure."""

    RETRY = "retry"
    """Send the same request again after `delay`."""
    FIX = "fix"
    """Change the request; `field` and `suggestions` say where to begin."""
    VERIFY = "verify"
    """It may have happened: look before doing it again."""
    FALLBACK = "fallback"
    """Take the other way that was declared for this case."""
    ESCALATE = "escalate"
    """Hand it to whoever can act."""
    NONE = "none"
    """The call succeeded; the fault is a remark on part of it."""
    GENERIC = "generic"
    """No structured error was found: treat it as any other failure (or success)."""


# The same members by names of their own, for code that runs for every fault: until Python 3.12 a member looked up on its
# class costs as much as ten comparisons.
TRANSIENT, CORRECTABLE = Recovery.TRANSIENT, Recovery.CORRECTABLE
TERMINAL, UNCERTAIN = Recovery.TERMINAL, Recovery.UNCERTAIN
NOT_EXECUTED, MAYBE_EXECUTED = Executed.NO, Executed.MAYBE
