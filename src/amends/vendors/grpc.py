"""
The failure of a gRPC call over HTTP: `grpc-status` and the status details in trailers or headers.

The details are the same messages that google.rpc sends in JSON, so that they are read the same way: the wait, the reason,
the quota and the field.
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.meanings import INTERNAL
from amends.proof import Claim, Proof, rests_on
from amends.vendors.evidence import Evidence, collect
from amends.vendors.meaning import by_words, first_word
from amends.vendors.protobuf import STATUSES, decode, rpc_details
from amends.vendors.reading import build, own_wait
from amends.vendors.registry import index

__all__ = ["read_trailers"]


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
def read_trailers(fields: Mapping[str, str]) -> Fault | None:
    """
    Return the fault of the trailers of a call, with names in lower case; None if it succeeded or the status is unknown.

    >>> read_trailers({"grpc-status": "14", "grpc-retry-pushback-ms": "700"}).retry_after
    0.7
    """
    status = fields.get("grpc-status", "")
    if not status.isdecimal() or len(status) > 2 or not 0 < int(status) <= len(STATUSES):
        return None
    name = STATUSES[int(status) - 1]
    details = rpc_details(decode(fields.get("grpc-status-details-bin", "")))
    evidence = collect({"details": details}, Evidence())
    evidence.message = fields.get("grpc-message", "")
    evidence.ranked.append((_LAST, name))
    wait = own_wait(evidence, {}, None, None)
    pushback = fields.get("grpc-retry-pushback-ms", "")
    if wait is None and pushback.isdecimal() and len(pushback) < 12:
        wait = int(pushback) / 1000
    if pushback.startswith("-"):
        evidence.verdict = False
    known = index()
    words = [word for word in evidence.words() if "/" not in word]
    found = by_words(words, None, known.vendors["grpc"], known)
    specific = words[:-1]
    if specific:
        # The reasons of Google's services say more than the status.
        found = by_words(specific, None, known.vendors["google"], known) or found
    kind = INTERNAL if found is None else found[0]
    # The number is the protocol's; the code words of its details may be those of another service.
    by_number = by_words([name], None, known.vendors["grpc"], known)
    evidence.proved = by_number is not None and by_number[0].executed is Executed.NO
    return build(kind, None, evidence, "grpc", first_word(words), wait, None, "header")


_LAST = 10_000
