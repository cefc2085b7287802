"""
What decisions about safety rest on.

A decision such as "this call may be repeated" is safe only as long as a peer cannot cause it by what it writes. Each
function that makes such a decision says which claim it makes and which proofs it accepts:

    @rests_on(Claim.IS_LOCAL, Proof.SOCKET)
    def is_local(peer: str) -> bool: ...

Without an accepted proof the function returns the safe answer. `DECISIONS` holds all of them; `tests/forgery` forges
everything that a peer controls against each one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, TypeVar

__all__ = ["DECISIONS", "Basis", "Claim", "Proof", "rests_on"]


class Claim(StrEnum):
    """
    What a decision about safety claims. The safe answer to each is no.

    >>> Claim("may repeat") is Claim.MAY_REPEAT
    True
    """

    MAY_REPEAT = "may repeat"
    """Sending the request again cannot have its effect twice."""
    NOT_HAPPENED = "did not happen"
    """The failed call had no effect."""
    COMPLETE = "is complete"
    """A list, a scan or an answer holds everything."""
    LOCAL = "is local"
    """The request came from a program on this machine."""
    LEASE_ENDED = "lease has ended"
    """The former owner of a work does not act on it any more."""
    OURS = "is ours"
    """The peer, the file or the process is what this program trusts or has started."""


class Proof(StrEnum):
    """
    What a decision about safety may rest on. What a peer writes about itself is not among it.

    >>> Proof.USER.value
    'the user says it'
    """

    USER = "the user says it"
    """An option or a declaration of our own user: `keyed=True`, a key header set by hand, `read_only=True`."""
    VERIFIED = "the user's check found it"
    """`verify` returned it, after the time in which the lost call could still act."""
    HOST = "the service is known by its host"
    """The address that was called is in the table of a service, over TLS on its default port."""
    REPLAY = "an earlier success was a replay"
    """An earlier successful answer from the same origin and path said that it was a replay of a request with this key."""
    ECHO = "an earlier success sent our key back"
    """An earlier successful answer from the same origin and path had the key of its request."""
    METHOD = "the method promises it"
    """RFC 9110, section 9.2: a safe or an idempotent method."""
    STATUS = "the status says it"
    """The status or number of the protocol by which the called service itself refused the call (M3)."""
    INVITATION = "the called service invites a repeat"
    """A complete error in one of the five formats, transient and with a wait, under a status that allows it (M3)."""
    STATED = "the called service states it"
    """The member `executed` of an error in one of the five formats, under a status that is its own (M8)."""
    DECLARED = "the called service declares it"
    """Annotations of a tool, by the server that executes it: a wrong one repeats an effect of that server alone."""
    NOT_SENT = "the request was not sent"
    """This process knows that nothing was written: no name, no connection, refused here."""
    RECORD = "our own record says it"
    """A durable record that this program wrote before or after the effect."""
    COMPARED = "the store compared and set it"
    """An atomic operation of the store succeeded: only one of several writers can have done it."""
    MAJORITY = "a majority acknowledged it"
    """A write that a majority of the replicas acknowledged came after everything that was read."""
    BOOT_CLOCK = "the clock since boot says it"
    """A duration on the clock that no one can set, on one machine."""
    TIME_LIMIT = "the time limit is over"
    """The time limit of the lost call, on the clock since boot: after it, our own clients send nothing more."""
    SECRET = "the secret was presented"  # noqa: S105 - a name of a proof
    """A token, or a cookie that was given for one, compared in constant time."""
    SOCKET = "the socket says it"
    """The address of the socket's other end, in a request without a header that a proxy adds."""
    BROWSER = "the browser says it"
    """`Host`, `Origin` and `Sec-Fetch-Site`, which the browser writes and no page can set."""
    PROCESS = "the operating system says it"
    """A process id with its start time, an exit status, the owner and mode of a file."""
    CORRELATED = "the answer belongs to our request"
    """The id that we chose for the request, on the connection that we sent it on."""
    LENGTH = "the announced length arrived"
    """The framing of the protocol: a length or an end mark, seen by this process."""


class Basis(NamedTuple):
    """A claim with the proofs that a function accepts for it."""

    claim: Claim
    proofs: tuple[Proof, ...]


DECISIONS: dict[str, tuple[Basis, ...]] = {}
"""The functions that decide about safety, as "module:function", with what each claims and accepts."""

_Decision = TypeVar("_Decision", bound=Callable[..., object])


def rests_on(claim: Claim, *proofs: Proof) -> Callable[[_Decision], _Decision]:
    """
    Return a decorator that notes what a function claims and which proofs it accepts. The function itself is unchanged.

    A function that makes several claims has the decorator several times. Put it below `@property` and `@classmethod`.

    >>> @rests_on(Claim.LOCAL, Proof.SOCKET)
    ... def is_local(peer: str) -> bool:
    ...     return peer == "127.0.0.1"
    >>> DECISIONS.pop(f"{is_local.__module__}:is_local")[0].proofs == (Proof.SOCKET,)
    True

    Raises:
        TypeError: without a proof: a decision that accepts none is no decision.

    """
    if not proofs:
        raise TypeError("rests_on takes at least one Proof that the decision accepts")

    def note(decision: _Decision) -> _Decision:
        name = f"{decision.__module__}:{decision.__qualname__}"
        DECISIONS[name] = (Basis(claim, proofs), *DECISIONS.get(name, ()))
        return decision

    return note
