"""
The stage: it receives every call of the program, lets the planned failures happen, and records calls, effects and failures.

A planned failure is a condition and not only an answer. A rate limit lasts as long as it says, a used-up quota lasts until the
end, a refused request is refused again while it is the same, and a lost answer is lost once, after the effect.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from amends.rehearse.canary import canary
from amends.rehearse.examples import Example
from amends.rehearse.exchange import Answer, Request, canonical
from amends.rehearse.forward import forward
from amends.rehearse.kinds import CONNECTION, STREAMING, Reaction, kind_of, reaction_of
from amends.rehearse.plan import Failure, Plan, ServiceOptions, choose_example
from amends.rehearse.sending import built_answer, event_answer, example_answer
from amends.rehearse.services import Service, belongs, host_service, make_services

__all__ = ["Armed", "CallRecord", "Incident", "Record", "Stage", "Violation"]

_AFTER_EFFECT = frozenset({"lost", "late", "malformed", "cut", "html"})
"""Kinds whose effect has happened when they are sent."""
_ON_ACTING = frozenset(
    {
        "lost",
        "late",
        "malformed",
        "html",
        "server-error",
        "silent",
        "validation",
        "conflict",
        "payment",
        "content-refused",
    }
)
"""Kinds that are sent for calls that act, if the program makes such calls to the service."""
_ONLY_ON_ACTING = frozenset({"lost", "late", "validation", "conflict", "payment"})
"""Those of them that are sent only for calls that act, if it is not known which calls the program makes."""
_KEPT_TEXT = 1024 * 1024
"""Characters of a model's request that are kept to look for canaries. A longer conversation is cut in the middle of nothing."""
_SHOWN = 2_000
"""Characters of an answer that a report shows."""


class CallRecord(msgspec.Struct, kw_only=True):
    """One call that the stage received."""

    number: int
    service: str
    method: str
    path: str
    digest: str
    at: float
    """Seconds since the beginning of the run."""
    ended: float | None = None
    status: int | None = None
    key: str = ""
    keyed: bool = False
    """Whether it carries an idempotency key that the service honours."""
    acts: bool = False
    streams: bool = False
    model: bool = False
    failure: str | None = None
    """The id of the planned failure that it met."""
    again: bool = False
    """Whether it met a condition that had been announced to the program before."""
    early: bool = False
    """Whether it came before the announced wait was over."""
    effect: bool = False
    replayed: bool = False
    """Whether the service answered it by its key, without another effect."""
    held: float = 0.0
    abandoned: bool = False
    """Whether the caller gave up before the answer came."""
    text: str = msgspec.field(default="", name="-text")
    """The body: what a model read, or what the call asked for; not in reports."""


class Incident(msgspec.Struct, kw_only=True):
    """One failure that was sent."""

    failure: str
    service: str
    kind: str
    call: int
    at: float
    """Seconds since the beginning of the run, when it was sent."""
    reaction: Reaction
    because: str
    example: str = ""
    source: str = ""
    wait: float | None = None
    meaning: str | None = None
    code: str | None = None
    field: str | None = None
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    ending: str = "whole"
    canary: str = ""
    acted: bool = False
    """Whether the call had its effect."""


class Violation(msgspec.Struct, frozen=True):
    """A connection beyond this machine, which was refused."""

    address: str
    by: str
    """The client or the program that wanted it."""


class Record(msgspec.Struct, kw_only=True):
    """What happened in one run."""

    calls: list[CallRecord] = []
    incidents: list[Incident] = []
    violations: list[Violation] = []
    unsent: dict[str, str] = {}
    """Planned failures that did not happen, and why."""


class Armed:
    """A planned failure with its state in this run."""

    def __init__(self, failure: Failure, example: Example | None, *, acting: bool, seed: int) -> None:
        self.failure = failure
        self.example = example
        self.acting = acting
        self.dice = Random(f"{seed} {failure.id} {failure.call}")  # noqa: S311 - reproducible, not secret
        self.canary = canary(self.dice)
        meaning = example.meaning if example is not None else None
        expectation = reaction_of(failure.kind, meaning)
        self.reaction = (example.reaction if example is not None else None) or expectation.reaction
        self.because = (example.because if example is not None else "") or expectation.source
        self.nature = (kind_of(meaning, 500) if meaning else None) or failure.kind
        """The kind by its meaning, whatever the form in which it is sent."""
        self.seen = 0
        self.sent = 0
        self.first_at = 0.0
        self.ready_at = 0.0
        self.digest = ""
        self.credentials = ""
        self.size = 0

    def due(self, request: Request, digest: str, now: float) -> bool:
        """Return whether a call that counts meets the failure. It is called once for each of them."""
        self.seen += 1
        failure = self.failure
        if self.sent == 0:
            if failure.rate is not None:
                return self.dice.random() < failure.rate
            return self.seen >= (failure.call or 1)  # later if another failure is sent at that call
        if failure.until is not None:
            return now < self.first_at + failure.until
        if failure.rate is not None and self.sent < failure.repeat:
            return self.dice.random() < failure.rate
        return self.sent < failure.repeat or self.lasts(request, digest, now)

    def lasts(self, request: Request, digest: str, now: float) -> bool:
        """Return whether the condition that was announced still holds for a call."""
        if self.reaction is Reaction.REPEAT:
            return now < self.ready_at
        if self.reaction is Reaction.VERIFY:
            return False
        if self.nature == "quota":
            return True
        if self.nature == "expired":
            return credentials_of(request) == self.credentials
        if self.nature == "context-too-long":
            return len(request.body) >= self.size
        return digest == self.digest

    def remember(self, request: Request, digest: str, now: float, wait: float | None) -> None:
        """Remember a call that met the failure."""
        if self.sent == 0:
            self.first_at, self.digest = now, digest
            self.credentials, self.size = credentials_of(request), len(request.body)
        self.sent += 1
        self.ready_at = max(self.ready_at, now + (wait or 0.0))


def credentials_of(request: Request) -> str:
    """Return a digest of what a request identifies its caller with."""
    names = ("authorization", "x-api-key", "api-key", "cookie", "private-token", "x-goog-api-key")
    values = "\0".join(request.header(name) for name in names)
    return sha256(values.encode()).hexdigest()[:12]


class Stage:
    """Receives calls, in any thread."""

    def __init__(
        self,
        plan: Plan,
        services: Iterable[ServiceOptions] = (),
        *,
        discover: bool = False,
        forward_unknown: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Take a plan.

        Args:
            plan: the plan.
            services: further services.
            discover: whether services of the registry are added when the program calls one of their hosts.
            forward_unknown: whether a discovered service is the real one, and not a fake.
            clock: the monotonic clock.

        """
        self.plan = plan
        self._discover = discover
        self._forward_unknown = forward_unknown
        self._clock = clock
        self._lock = threading.RLock()
        self.services: dict[str, Service] = make_services([*plan.service, *services])
        self._options = {each.name: each for each in (*plan.service, *services)}
        self._armed: list[Armed] = []
        self._replays: dict[tuple[str, str], tuple[str, Answer]] = {}
        self._started = clock()
        self.record = Record()
        self.paused = False
        """Whether calls are answered and not recorded, while the user's check looks at the services."""
        self.closing = threading.Event()

    def begin(self, failures: Iterable[Failure], *, acting: Mapping[str, bool] | None = None) -> None:
        """Begin a run: everything is forgotten, and these failures are due. `acting`: service → whether calls of it act."""
        with self._lock:
            self.record = Record()
            self._replays.clear()
            self._started = self._clock()
            self.paused = False
            self.closing = threading.Event()
            for service in self.services.values():
                service.fake.reset()
            self._armed = [self._arm(each, acting) for each in failures]

    def _arm(self, failure: Failure, acting: Mapping[str, bool] | None) -> Armed:
        dice = Random(f"{self.plan.seed} {failure.id}")  # noqa: S311 - reproducible, not secret
        example = choose_example(failure, dice, self.plan.wait)
        service = self.services.get(failure.service)
        model = service.model if service is not None else False
        if acting is None:
            acts = failure.kind in _ONLY_ON_ACTING and not model
        else:
            acts = failure.kind in _ON_ACTING and not model and acting.get(failure.service, False)
        return Armed(failure, example, acting=acts and not failure.route, seed=self.plan.seed)

    def end(self) -> Record:
        """End the run: held answers are let go, and what was not sent is listed."""
        with self._lock:
            self.closing.set()
            for each in self._armed:
                if each.sent == 0:
                    self.record.unsent[each.failure.id] = self._why_unsent(each)
            return self.record

    def _why_unsent(self, armed: Armed) -> str:
        if armed.example is None and armed.failure.kind not in _AFTER_EFFECT | {"silent"} | CONNECTION:
            return f"{armed.failure.service} has no example of it"
        if armed.seen == 0:
            what = "streams" if armed.failure.kind in STREAMING else "acts" if armed.acting else "counts"
            return (
                f"the program made no call that {what}"
                if what != "counts"
                else "the program did not call the service"
            )
        return f"the program made {armed.seen} such calls, and it was planned for call {armed.failure.call}"

    def service_for(self, origin_host: str) -> Service | None:
        """Return the service that a host belongs to; it is added if the stage discovers services."""
        with self._lock:
            for service in self.services.values():
                if belongs(service, origin_host):
                    return service
            found = host_service(origin_host) if self._discover else None
            if found is None:
                return None
            url = f"https://{origin_host}" if self._forward_unknown else ""
            options = ServiceOptions(found, url=url)
            self._options[found] = options
            self.services.update(make_services([options]))
            return self.services[found]

    def violated(self, address: str, by: str) -> None:
        """Record a connection beyond this machine."""
        with self._lock:
            violation = Violation(address, by)
            if violation not in self.record.violations:
                self.record.violations.append(violation)

    def needs_connections(self) -> bool:
        """Return whether a failure of the connection is due, so that clients have to ask before they connect."""
        with self._lock:
            return any(each.failure.kind in CONNECTION for each in self._armed)

    def connecting(self, request: Request) -> str | None:
        """Return the failure that a connection meets: `refused`, `dns`, `tls`, or None."""
        service = self.services[request.service]
        with self._lock:
            now = self._now()
            if self.paused or not service.fake.counts(request):
                return None
            for armed in self._armed:
                failure = armed.failure
                if failure.kind not in CONNECTION or failure.service != service.name:
                    continue
                if not failure.concerns(request.method, request.path):
                    continue
                digest = canonical(request, service.key_field)
                if armed.due(request, digest, now):
                    call = self._record_call(service, request, digest)
                    call.failure, call.ended = failure.id, now
                    self._record_incident(armed, call, Answer(ending=failure.kind), None, acted=False)
                    armed.remember(request, digest, now, None)
                    return failure.kind
        return None

    def handle(self, request: Request) -> tuple[Answer, CallRecord | None]:
        """Return the answer to a request, and the record of the call; None for handshakes and while it is paused."""
        service = self.services[request.service]
        if self.paused or not service.fake.counts(request):
            return self._ordinary(service, request), None
        digest = canonical(request, service.key_field)
        with self._lock:
            now = self._now()
            call = self._record_call(service, request, digest)
            armed = self._due(service, request, call, now)
            if armed is not None:
                call.failure, call.again = (
                    armed.failure.id,
                    armed.sent > 0 and armed.lasts(request, digest, now),
                )
                call.early = call.again and armed.reaction is Reaction.REPEAT
                acted = armed.failure.kind in _AFTER_EFFECT
            if armed is None or acted:
                answer = self._performed(service, request, call)
            else:
                answer = self._preview(service, request, armed)
            if armed is None:
                return answer, call
            sent, wait = self._failing(service, request, armed, answer)
            call.status = sent.status if sent.ending in {"whole", "cut"} else None
            self._record_incident(armed, call, sent, wait, acted=call.effect)
            armed.remember(request, digest, now, wait)
            return sent, call

    def finished(self, call: CallRecord, *, abandoned: bool = False, held: float = 0.0) -> None:
        """Record that the answer to a call was sent."""
        with self._lock:
            call.ended = self._now()
            call.abandoned, call.held = abandoned, round(held, 3)
            for incident in self.record.incidents:
                if incident.call == call.number and incident.ending not in {"silent", "late"}:
                    incident.at = call.ended

    def seconds(self) -> float:
        """Return the seconds since the run began."""
        return self._now()

    def _now(self) -> float:
        return self._clock() - self._started

    def _record_call(self, service: Service, request: Request, digest: str) -> CallRecord:
        key = service.key(request)
        text = request.body[:_KEPT_TEXT].decode("utf-8", "replace")
        call = CallRecord(
            number=len(self.record.calls) + 1,
            service=service.name,
            method=request.method,
            path=request.path,
            digest=digest,
            at=self._now(),
            key=sha256(key.encode()).hexdigest()[:8] if key else "",
            keyed=bool(key) and service.keys,
            acts=service.fake.acts(request),
            streams=request.streams(),
            model=service.model,
            text=text,
        )
        self.record.calls.append(call)
        return call

    def _due(self, service: Service, request: Request, call: CallRecord, now: float) -> Armed | None:
        found = None
        for armed in self._armed:
            failure = armed.failure
            if failure.service != service.name or failure.kind in CONNECTION:
                continue
            if not failure.concerns(request.method, request.path) or (armed.acting and not call.acts):
                continue
            if failure.kind in STREAMING and not call.streams:
                continue
            if armed.example is None and failure.kind not in _AFTER_EFFECT | {"silent"}:
                continue
            if found is not None:
                armed.seen += 1
            elif armed.due(request, call.digest, now):
                found = armed
        return found

    def _performed(self, service: Service, request: Request, call: CallRecord) -> Answer:
        """Return the ordinary answer to a call, and record its effect."""
        place = (service.name, service.key(request))
        if call.keyed and call.acts and not service.forward:
            replay = self._replays.get(place)
            if replay is not None:
                call.replayed = True
                return _replayed(service, call, *replay)
        answer = self._ordinary(service, request)
        call.status = answer.status
        if call.acts and answer.status < 400:
            seen = call.keyed and place in self._replays
            call.effect, call.replayed = not seen, seen
            if call.keyed:
                self._replays.setdefault(place, (call.digest, msgspec.structs.replace(answer)))
        return answer

    def _ordinary(self, service: Service, request: Request) -> Answer:
        if service.forward:
            return forward(service.forward, request)
        with self._lock:
            return service.fake.answer(request)

    def _preview(self, service: Service, request: Request, armed: Armed) -> Answer:
        """Return what the service would have answered, for failures that begin like an ordinary answer."""
        if armed.failure.kind == "error-event":
            return self._ordinary(service, request)
        return Answer()

    def _failing(
        self, service: Service, request: Request, armed: Armed, ordinary: Answer
    ) -> tuple[Answer, float | None]:
        kind, example = armed.failure.kind, armed.example
        if example is None:
            return built_answer(kind, request, msgspec.structs.replace(ordinary), armed.canary), None
        answer, wait = example_answer(example, self.plan.wait, armed.canary)
        if kind == "error-event":
            return event_answer(answer, ordinary, lambda failing: service.fake.events(request, failing)), wait
        return service.fake.failed(request, example, answer), wait

    def _record_incident(
        self, armed: Armed, call: CallRecord, sent: Answer, wait: float | None, *, acted: bool
    ) -> None:
        example = armed.example
        body = (
            sent.body
            if sent.parts is None
            else b"".join(sent.parts)
            if isinstance(sent.parts, tuple)
            else b""
        )
        whole = sent.ending in {"whole", "cut"}
        shown = body.decode("utf-8", "replace")
        self.record.incidents.append(
            Incident(
                failure=armed.failure.id,
                service=armed.failure.service,
                kind=armed.failure.kind,
                call=call.number,
                at=self._now(),
                reaction=armed.reaction,
                because=armed.because,
                example=example.id if example is not None else "",
                source=example.source if example is not None else "",
                wait=wait,
                meaning=example.meaning if example is not None else None,
                code=example.code if example is not None else None,
                field=example.field if example is not None else None,
                status=sent.status if whole else None,
                headers=sent.headers if whole else (),
                body=shown[:_SHOWN] if whole else "",
                ending=sent.ending,
                canary=armed.canary
                if armed.canary in shown or any(armed.canary in each[1] for each in sent.headers)
                else "",
                acted=acted,
            )
        )


def _replayed(service: Service, call: CallRecord, digest: str, answer: Answer) -> Answer:
    if digest != call.digest:
        body = b'{"type": "about:blank", "status": 422, "code": "CONFLICT", "detail": "The key was used for another request"}'
        call.status = 422
        return Answer(status=422, headers=(("content-type", "application/problem+json"),), body=body)
    call.status = answer.status
    more: tuple[tuple[str, str], ...] = ((service.replay_header, "true"),) if service.replay_header else ()
    return msgspec.structs.replace(answer, headers=(*answer.headers, *more))


def run_places(
    record: Record, failures: Iterable[Failure], services: Mapping[str, Service]
) -> dict[str, int]:
    """Return how many calls of a run each failure could have met: the places for the seed to choose from."""
    acting = acting_services(record)
    found: dict[str, int] = {}
    for failure in failures:
        service = services.get(failure.service)
        only_acting = (
            failure.kind in _ON_ACTING
            and not failure.route
            and acting.get(failure.service, False)
            and not (service is not None and service.model)
        )
        found[failure.id] = sum(
            call.service == failure.service
            and failure.concerns(call.method, call.path)
            and (call.acts or not only_acting)
            and (call.streams or failure.kind not in STREAMING)
            for call in record.calls
        )
    return found


def acting_services(record: Record) -> dict[str, bool]:
    """Return service → whether a call of it acts."""
    found: dict[str, bool] = {}
    for call in record.calls:
        found[call.service] = found.get(call.service, False) or call.acts
    return found


def effects_of(record: Record) -> dict[str, int]:
    """Return digest of a request → how often it took effect."""
    found: dict[str, Any] = {}
    for call in record.calls:
        if call.effect:
            found[call.digest] = found.get(call.digest, 0) + 1
    return found
