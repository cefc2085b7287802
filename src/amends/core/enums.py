"""The enums that all parts of the project share. The value of a member is its spelling on the wire."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Action", "Actor", "Executed", "Recovery"]


class Recovery(StrEnum):
    """
    What has to happen before the call can succeed.

    >>> Recovery("transient") is Recovery.TRANSIENT
    True
    """

    TRANSIENT = "transient"
    """The same request, unchanged, may succeed later."""
    CORRECTABLE = "correctable"
    """The request has to change first."""
    TERMINAL = "terminal"
    """No program can help. A person has to act; `Fault.actor` names the role."""
    UNCERTAIN = "uncertain"
    """Unknown. Worth at most one more try, and only where a repeat is safe."""


class Executed(StrEnum):
    """Whether the failed call may have had its effect."""

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
    """The people who run the service that failed."""
    PROVIDER = "provider"
    """A third party behind that service."""


class Action(StrEnum):
    """What to do about a failure."""

    RETRY = "retry"
    """Send the same request again after `delay`."""
    FIX = "fix"
    """Change the request; see `field` and `suggestions`."""
    VERIFY = "verify"
    """The call may have had its effect: check before repeating it."""
    FALLBACK = "fallback"
    """Use the alternative that was declared for this case."""
    ESCALATE = "escalate"
    """Report it to a person or program that can act."""
    NONE = "none"
    """The call succeeded; the fault is about a part of it."""
    GENERIC = "generic"
    """No structured error was found: treat it like any other failure or success."""
