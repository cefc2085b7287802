"""
The payload of every message type, and one table from type to struct.

Members that no sender must send are optional here: the reader checks for the ones it needs. Numbers may be strings. Members
that a published peer requires are marked *peer*.

Two messages need an explanation:

- A request that is rejected before there is a job (DUPLICATE_KEY, AGENT_NOT_AVAILABLE …) is answered with a `job.error`
  that has the request's id in `request_id`, no `event_seq`, and no `job_id` unless it concerns a job. Only an error that ends
  the session is a `session.error`. A client also accepts a rejection sent as `session.error`.
- Resuming is `session.hello` with `resume` (v1.0); `session.resume`, which v1.1 mentions without an example, is read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from amends.arcp.wire.envelope import Envelope, Malformed, Seq, read_lenient
from amends.core.wire import TOO_DEEP, Unreadable, read

__all__ = [
    "MESSAGES",
    "AboutJob",
    "Accepted",
    "Ack",
    "Agent",
    "Auth",
    "Bye",
    "Cancel",
    "Cancelled",
    "Capabilities",
    "Error",
    "Event",
    "Filter",
    "Hello",
    "JobEntry",
    "Jobs",
    "ListJobs",
    "Message",
    "Peer",
    "Ping",
    "Pong",
    "Result",
    "Resume",
    "StepList",
    "Submit",
    "Subscribe",
    "Subscribed",
    "Unsubscribe",
    "Welcome",
    "read_payload",
]


# A default that no value equals: 0 is then written, because peers require it, and the member can still be omitted.
_WRITTEN: Any = None


class Message(msgspec.Struct, omit_defaults=True, gc=False):
    """The payload of a message."""


class Peer(Message):
    """Name and version of one side."""

    name: str = ""
    version: str = ""


class Auth(Message):
    """The bearer token (6.1). Its repr does not contain the token."""

    scheme: str | None = None
    token: str | None = None

    def __repr__(self) -> str:
        return f"Auth(scheme={self.scheme!r})"


class Agent(Message):
    """An agent in the inventory (7.5); v1.0 has only the name instead."""

    name: str
    versions: list[str] | None = None
    default: str | None = None


class Capabilities(Message):
    """What one side supports."""

    encodings: list[str] | None = None
    features: list[str] | None = None
    agents: list[str | Agent] | None = None


class Resume(Message):
    """The session to resume, and the last event received (6.3). Its repr does not contain the token."""

    session_id: str = ""
    resume_token: str = ""
    last_event_seq: Seq = _WRITTEN
    auth: Auth | None = None
    client: Peer | None = None
    capabilities: Capabilities | None = None

    def __post_init__(self) -> None:
        if self.last_event_seq is _WRITTEN:
            self.last_event_seq = 0

    def __repr__(self) -> str:
        return f"Resume(session_id={self.session_id!r}, last_event_seq={self.last_event_seq})"


class Hello(Message):
    """session.hello"""

    client: Peer | None = None
    client_name: str | None = None
    """*peer*: the Ruby SDK sends this instead of `client`."""
    auth: Auth | None = None
    capabilities: Capabilities | None = None
    resume: Resume | None = None


class Welcome(Message):
    """session.welcome. Its repr does not contain the token."""

    runtime: Peer | None = None
    session_id: str | None = None
    """*peer*: read from here, although the envelope has it too."""
    resume_token: str | None = None
    resume_window_sec: float | None = None
    heartbeat_interval_sec: float | None = None
    capabilities: Capabilities | None = None
    accepted_at: str | None = None
    """*peer*"""

    def __repr__(self) -> str:
        return f"Welcome(session_id={self.session_id!r}, resume_window_sec={self.resume_window_sec})"


class Bye(Message):
    """session.bye (v1.0), session.close and session.closed (v1.1)"""

    reason: str | None = None
    code: str | None = None


class Ping(Message):
    """session.ping"""

    nonce: str = ""
    sent_at: str | None = None


class Pong(Message):
    """session.pong"""

    ping_nonce: str | None = None
    received_at: str | None = None


class Ack(Message):
    """session.ack"""

    last_processed_seq: Seq


class Filter(Message):
    """The filter of a listing; every member is optional."""

    status: list[str] | None = None
    agent: str | None = None
    created_after: str | None = None


class ListJobs(Message):
    """session.list_jobs"""

    filter: Filter | None = None
    limit: int | None = None
    cursor: str | None = None


class JobEntry(Message):
    """A job in a listing (6.6)."""

    job_id: str
    agent: str = ""
    status: str = ""
    lease: Mapping[str, object] | None = None
    lease_constraints: Mapping[str, object] | None = None
    parent_job_id: str | None = None
    created_at: str | None = None
    submitted_at: str | None = None
    """*peer*: the name of `created_at` in a published peer."""
    trace_id: str | None = None
    last_event_seq: int | None = None


class Jobs(Message):
    """session.jobs"""

    request_id: str | None = None
    jobs: list[JobEntry] = []
    next_cursor: str | None = None


class Submit(Message):
    """job.submit"""

    agent: str
    input: object = None
    lease_request: Mapping[str, object] | None = None
    lease_constraints: Mapping[str, object] | None = None
    idempotency_key: str | None = None
    max_runtime_sec: float | None = None
    parent_job_id: str | None = None
    delegate_id: str | None = None
    left: str | None = msgspec.field(default=None, name="amends/left")
    """What the submitter has left (`amends.recovery.incoming`)."""


class Accepted(Message):
    """job.accepted. Its repr does not contain credentials."""

    job_id: str
    agent: str | None = None
    lease: Mapping[str, object] | None = None
    lease_constraints: Mapping[str, object] | None = None
    budget: Mapping[str, object] | None = None
    credentials: list[dict[str, object]] | None = None
    accepted_at: str | None = None
    """*peer*"""
    trace_id: str | None = None
    parent_job_id: str | None = None
    delegate_id: str | None = None
    request_id: str | None = None
    """*peer*: the id of the submission that this answers."""

    def __repr__(self) -> str:
        return f"Accepted(job_id={self.job_id!r}, agent={self.agent!r})"


class Cancel(Message):
    """job.cancel"""

    reason: str | None = None
    code: str | None = None
    job_id: str | None = None
    """Belongs in the envelope; read from here if the envelope has none."""


class Cancelled(Message):
    """job.cancelled: the cancellation has begun; the end is a `job.error`."""

    job_id: str | None = None
    request_id: str | None = None


class Event(Message):
    """job.event (8.1)"""

    kind: str
    ts: str | None = None
    body: dict[str, object] | None = None
    run: int | None = None
    """An extension of amends: the run of a job that ran again, from 2 on."""


class Result(Message):
    """job.result; a published peer also ends failed jobs with it."""

    final_status: str | None = None
    result: object = msgspec.UNSET
    """Written also if it is null; absent if the result was sent in chunks."""
    result_id: str | None = None
    result_size: int | None = None
    summary: str | None = None
    completed_at: str | None = None
    """*peer*"""
    status: str | None = None
    error: object = None
    run: int | None = None


class Error(Message):
    """
    session.error and job.error: the error payload of ARCP, and the other members of a job's end.

    Used for writing; `amends.carriers.arcp` reads errors as objects, because it handles the variants of peers.
    """

    code: str
    message: str
    retryable: bool | None = None
    details: dict[str, object] | None = None
    final_status: str | None = None
    completed_at: str | None = None
    """*peer*"""
    request_id: str | None = None
    run: int | None = None


class Subscribe(Message):
    """job.subscribe"""

    job_id: str
    from_event_seq: Seq | None = None
    history: bool | None = None


class Subscribed(Message):
    """job.subscribed"""

    job_id: str
    request_id: str | None = None
    """*peer*"""
    current_status: str | None = None
    agent: str | None = None
    lease: Mapping[str, object] | None = None
    lease_constraints: Mapping[str, object] | None = None
    budget: Mapping[str, object] | None = None
    credentials: list[dict[str, object]] | None = None
    parent_job_id: str | msgspec.UnsetType | None = msgspec.UNSET
    """Written as null if the job has no parent (7.6)."""
    trace_id: str | None = None
    subscribed_from: int | None = None
    replayed: object = None
    """Whether history was replayed; a published peer sends a number."""

    def __repr__(self) -> str:
        return f"Subscribed(job_id={self.job_id!r}, current_status={self.current_status!r})"


class Unsubscribe(Message):
    """job.unsubscribe"""

    job_id: str


class AboutJob(Message):
    """x-vendor.amends.job, an extension of amends: a signal to a job, the answer to its question, or a request for its steps."""

    job_id: str
    signal: str | None = None
    id: str | None = None
    """The id of the signal: one that is sent again counts once."""
    value: object = None
    """The signal's value, or the result of a step that happened."""
    step: str | None = None
    happened: bool | None = None


class StepList(Message):
    """x-vendor.amends.steps: the answer, with the steps that the job has so far."""

    job_id: str
    request_id: str | None = None
    steps: list[dict[str, object]] = []
    counted: bool | None = None
    """Whether the signal was new."""


MESSAGES: dict[str, type[Message]] = {
    "session.hello": Hello,
    "session.resume": Resume,
    "session.welcome": Welcome,
    "session.error": Error,
    "session.bye": Bye,
    "session.close": Bye,
    "session.closed": Bye,
    "session.ping": Ping,
    "session.pong": Pong,
    "session.ack": Ack,
    "session.list_jobs": ListJobs,
    "session.jobs": Jobs,
    "job.submit": Submit,
    "job.accepted": Accepted,
    "job.cancel": Cancel,
    "job.cancelled": Cancelled,
    "job.event": Event,
    "job.result": Result,
    "job.error": Error,
    "job.subscribe": Subscribe,
    "job.subscribed": Subscribed,
    "job.unsubscribe": Unsubscribe,
    "x-vendor.amends.job": AboutJob,
    "x-vendor.amends.steps": StepList,
}
"""Every message type of v1.0 and v1.1, and the extension of amends."""

_DECODERS = {type: msgspec.json.Decoder(struct, strict=False).decode for type, struct in MESSAGES.items()}


def read_payload(message: Envelope) -> Any:
    """Decode the payload of a read message into the struct of its type; `Malformed` if it does not fit."""
    decode = _DECODERS.get(message.type)
    if decode is None:
        return Malformed("the message type is unknown", message.id)
    try:
        return decode(message.payload)
    except msgspec.ValidationError:
        return _read_again(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if message.type == "job.submit":
            # Read leniently, the job would run with another input than the one that was sent.
            return Malformed(f"the payload of {message.type} cannot be read", message.id)
        return _read_again(message)


def _read_again(message: Envelope) -> Any:
    """Read a payload that was rejected: null counts as empty, and JSON that is not strict is read leniently."""
    data = bytes(message.payload)
    try:
        value = read_lenient(data)
        if message.type == "job.submit" and value != read(data):
            # A job must not run with another input than the one that was sent, as with null for 1e999.
            value = TOO_DEEP
    except Unreadable:
        value = TOO_DEEP
    if value is TOO_DEEP:
        return Malformed(f"the payload of {message.type} cannot be read", message.id)
    try:
        return msgspec.convert({} if value is None else value, MESSAGES[message.type], strict=False)
    except msgspec.ValidationError as error:
        # msgspec's message names the member and the types, and not the value.
        return Malformed(f"the payload of {message.type} does not fit its schema: {error}", message.id)
