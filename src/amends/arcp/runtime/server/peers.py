"""
What the clients of the published SDKs read differently, in one table.

A client gets what the specification says, unless its hello shows that it is of an SDK that would wait for ever for it or would
drop it. The rows of `PEERS` were read from the sources of the SDKs; `tests/arcp/test_peers.py` has a test for each.

A request that is refused before there is a job is answered with one `job.error` with every member by which a client may match it:
the id of the request as the id of the envelope (Java) and in `request_id`, and no job id. The exceptions are `Refusal`.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

import msgspec

from amends.arcp.runtime.entries import JobEntry, encode
from amends.arcp.wire.messages import Hello, Resume
from amends.core.vocabularies.arcp import VOCABULARY

__all__ = [
    "PEERS",
    "SPECIFICATION",
    "Peer",
    "Refusal",
    "identify",
    "readable",
    "use_specified_code",
    "with_ids",
]


class Refusal(Enum):
    """How a client learns that a request was refused."""

    JOB_ERROR = "one job.error with the id of the request"
    JOB_ERROR_OF_A_JOB = "the same with the id of a job that does not exist"
    """The TypeScript SDK drops a job.error without a job id, and matches one with an unknown id to its oldest submission."""
    SESSION_ERROR = "session.error with the id of the request"
    """The Go SDK matches only that. It ends no session there, although S5 calls session.error fatal: a deviation."""
    ACCEPTED_THEN_ERROR = "an accepted job that ends with the error"
    """The Python and C# SDKs read `job.error` only as the end of a job that they know."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """What the client of one SDK needs."""

    name: str
    refusal: Refusal = Refusal.JOB_ERROR
    result_members: tuple[str, ...] = ("result",)
    """Where it looks for a result; the specification names no member ("inline in the payload")."""
    specified_codes: bool = False
    """It drops an error whose code section 12 does not have, and INTERNAL_ERROR that is not retryable."""
    only_error_status: bool = False
    """It drops a `job.error` whose final status is not "error"."""
    amounts_as_text: bool = False
    """It reads budgets only as text, though 7.1 has numbers."""
    answers_slowly: bool = False
    """It drops what arrives before it has seen the answer to its request."""
    loses_early_ends: bool = False
    """It loses the handle of a job that ends before it has seen that the job was accepted."""
    payload_ids: bool = False
    """It matches answers by `reply_to`, and reads the id of the job from the payload."""

    @property
    def rewrites_ends(self) -> bool:
        """Whether the end of a job is not sent as it is stored."""
        return (
            self.specified_codes
            or self.only_error_status
            or self.payload_ids
            or self.result_members != ("result",)
        )


SPECIFICATION = Peer(name="")
"""A client of no published SDK, and ours."""

_UNNAMED = Peer(
    name="unknown",
    refusal=Refusal.ACCEPTED_THEN_ERROR,
    specified_codes=True,
    result_members=("result", "output"),
    loses_early_ends=True,
)
"""A client whose message ids are those of several SDKs: what it gets fits the specification, and none of them waits for ever."""

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            name="python",
            refusal=Refusal.ACCEPTED_THEN_ERROR,
            only_error_status=True,
            amounts_as_text=True,
            answers_slowly=True,
        ),
        Peer(name="typescript", refusal=Refusal.JOB_ERROR_OF_A_JOB, specified_codes=True),
        Peer(name="go", refusal=Refusal.SESSION_ERROR, result_members=("output",), loses_early_ends=True),
        Peer(name="java"),
        Peer(name="ruby", payload_ids=True),
        _UNNAMED,
    )
}
"""By the name of the SDK. Rust's speaks an earlier protocol. C#'s has no name of its own in its hello and is `unknown`."""

_TYPESCRIPT = (
    *("heartbeat", "ack", "list_jobs", "subscribe", "lease_expires_at", "cost.budget", "progress"),
    *("result_chunk", "agent_versions", "model.use", "provisioned_credentials"),
)
_GO = (
    *("heartbeat", "ack", "list_jobs", "subscribe", "agent_versions", "lease_expires_at", "cost.budget"),
    *("model.use", "provisioned_credentials", "progress", "result_chunk"),
)
"""The features that the SDKs offer, in their order, which is not that of the specification."""

_ULID = r"[0-9A-HJKMNP-TV-Z]{26}"
_PREFIXED_ULID = re.compile(f"msg_{_ULID}", re.ASCII)
_PLAIN_ULID = re.compile(_ULID, re.ASCII)
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)


def identify(message_id: str, hello: Hello | Resume) -> Peer:
    """
    Return what the client that sent a hello needs, by its name, and by the forms of its ids and features.

    The name is that of the user's program where an SDK lets the user choose it, so it is not enough by itself.

    >>> from amends.arcp.wire.messages import Peer as Named
    >>> identify("018f0000-0000-7000-8000-000000000000", Hello(client=Named("arcp-go-client"))).name
    'go'
    """
    name = hello.client.name if hello.client is not None else ""
    capabilities = hello.capabilities
    features = tuple(capabilities.features or ()) if capabilities is not None else ()
    if name == "amends" or name.startswith("amends-"):
        return SPECIFICATION
    if isinstance(hello, Hello) and hello.client_name is not None and hello.client is None:
        return PEERS["ruby"]
    if name.startswith("arcp-go"):
        return PEERS["go"]
    if name == "arcp-client-java":
        return PEERS["java"]
    if _PREFIXED_ULID.fullmatch(message_id):
        return PEERS["typescript"] if _in_order(features, _TYPESCRIPT) else _UNNAMED
    if _UUID7.fullmatch(message_id):
        return PEERS["go"] if features == _GO else _UNNAMED
    if _PLAIN_ULID.fullmatch(message_id) and capabilities is not None and capabilities.agents == []:
        return PEERS["python"]
    return SPECIFICATION


def _in_order(features: tuple[str, ...], order: tuple[str, ...]) -> bool:
    """Whether the features are some of an SDK's, in its order."""
    remaining = iter(order)
    return all(feature in remaining for feature in features)


def readable(entry: JobEntry, job_id: str, peer: Peer) -> JobEntry:
    """
    Return the end of a job in the form that a client reads.

    A client that drops codes which section 12 does not have gets one that it reads, with the same `retryable`; the code that was
    raised is in `details.code`.
    """
    if not entry.ended:
        return entry
    if entry.kind == "result":
        result: dict[str, Any] = msgspec.json.decode(entry.payload, type=dict[str, msgspec.Raw])
        if "result" in result:
            value = result.pop("result")
            result |= dict.fromkeys(peer.result_members, value)
        if peer.payload_ids:
            result["job_id"] = job_id
        return msgspec.structs.replace(entry, payload=msgspec.Raw(encode(result)))
    error = msgspec.json.decode(entry.payload)
    if peer.only_error_status:
        error["final_status"] = "error"
    if peer.specified_codes:
        use_specified_code(error)
    if peer.payload_ids:
        error["job_id"] = job_id
    return msgspec.structs.replace(entry, payload=msgspec.Raw(encode(error)))


def use_specified_code(error: dict[str, Any]) -> None:
    """
    Give an error payload a code of section 12 that any client reads, with the same `retryable`; the other is in `details.code`.

    >>> payload = {"code": "SEAT_TAKEN", "retryable": False}
    >>> use_specified_code(payload)
    >>> payload["code"], payload["details"]
    ('CANCELLED', {'code': 'SEAT_TAKEN'})
    """
    code = error["code"]
    if code not in VOCABULARY.rows or (code == "INTERNAL_ERROR" and not error["retryable"]):
        # A job in doubt must not look retryable. CANCELLED is not, and says of the effect only "maybe", too.
        error["details"] = {**(error.get("details") or {}), "code": code}
        error["code"] = "INTERNAL_ERROR" if error["retryable"] else "CANCELLED"


def with_ids(payload: object, job_id: str | None) -> object:
    """
    Return a payload with the members by which the Ruby SDK matches it: `reply_to` and `job_id`.

    >>> with_ids({"request_id": "m1"}, "job_1")
    {'request_id': 'm1', 'reply_to': 'm1', 'job_id': 'job_1'}
    """
    members: Any = (
        msgspec.json.decode(payload) if isinstance(payload, msgspec.Raw) else msgspec.to_builtins(payload)
    )
    if isinstance(members, dict):
        if members.get("request_id"):
            members["reply_to"] = members["request_id"]
        if job_id:
            members.setdefault("job_id", job_id)
    return members
