"""
What may be concluded from a failed answer about its effect (M3).

The status decides. A code word, a body or a header of the answer can say that the effect is not known, but it makes a call that
may have had its effect into one that had none only if the service is known otherwise: by its host, or by the word of the user.
A body can be another service's, passed on by a service that had already done its part.
"""

from __future__ import annotations

from amends.core.enums import Executed
from amends.core.vocabularies.http import VOCABULARY
from amends.proof import Claim, Proof, rests_on

__all__ = ["executed_as_proved", "executed_by_status", "may_invite"]

_NO, _MAYBE = Executed.NO, Executed.MAYBE


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
def executed_by_status(status: int | None) -> Executed:
    """
    Return whether a call that failed with this HTTP status may have had its effect; None: there is no status.

    >>> executed_by_status(429).value, executed_by_status(500).value, executed_by_status(None).value
    ('no', 'maybe', 'maybe')
    """
    if status is None or status < 400:
        return _MAYBE
    return VOCABULARY.status_row(status).executed


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS, Proof.HOST, Proof.USER)
def executed_as_proved(said: Executed, by_status: Executed, *, known: bool) -> Executed:
    """
    Return `said`, but not "no" where only the content of the answer says so.

    >>> executed_as_proved(Executed.NO, executed_by_status(500), known=False).value
    'maybe'

    Args:
        said: what the code word or the body of the answer says.
        by_status: what its status says.
        known: whether the service that was called is known by its host or by the user's word.

    """
    return said if known or said is not _NO else by_status


@rests_on(Claim.NOT_HAPPENED, Proof.INVITATION, Proof.STATED)
def may_invite(status: int | None) -> bool:
    """
    Return whether an error in one of the five formats may invite a repeat, or state that it had no effect, under a status.

    It may under one that says the same, under 503, and where there is no status: in the result of a tool or a command.

    >>> may_invite(503), may_invite(500), may_invite(None)
    (True, False, True)
    """
    return status is None or status == _UNAVAILABLE or executed_by_status(status) is _NO


_UNAVAILABLE = 503
