"""
What all HTTP client bindings decide the same way: keys, headers, failed responses, and which requests may be repeated.

- POST and PATCH carry an `Idempotency-Key`, the same on every attempt: one that the caller set, the key of the operation
  around the call, one of the effect that is running (`amends.effects`), or a new one. A key makes a repeat safe only if the
  service is known to honour keys (`amends.http.key_support`); otherwise a request that may have had its effect is not
  repeated.
- `Accept` asks for problem details in addition to what the caller asked for.
- A request whose body can be read only once is sent only once.
- `traceparent` names the current OpenTelemetry span, or a trace of the operation's own with a new span per attempt.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import cached_property, lru_cache
from hashlib import sha256
from inspect import isawaitable
from itertools import count
from threading import Lock
from time import time
from typing import Any, TypedDict, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from amends.carriers.limits import ALLOWANCE_FIELDS, published
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.validate import check_flag, check_kind
from amends.core.wrong_calls import missing_option
from amends.dialects.problem import MEDIA_TYPE
from amends.errors.base import FaultError
from amends.foreign.trust import is_own_address, trusted
from amends.http.call_bodies import Service, error_from_response, is_effect_unknown, service_of
from amends.http.key_support import KEY, PROOF_FIELDS, KeySupport, shared_proofs
from amends.http.raising import check_raises, return_or_raise
from amends.proof import Claim, Proof, rests_on
from amends.recovery.clock import CLOCK
from amends.recovery.drivers import acall_first, arun_flow, call_first, run_flow
from amends.recovery.effect_context import check_time_limit, request_key
from amends.recovery.events import EventHook
from amends.recovery.failover import Failover, Target, current_target
from amends.recovery.incoming import HEADER, new_left
from amends.recovery.origins import CREDENTIALS, PER_ORIGIN, PerOrigin, forgotten, route_scope, upstream_for
from amends.recovery.plan import Options, hook_arguments, plan_for
from amends.recovery.scope import SCOPE, time_left, tries_left
from amends.recovery.upstream import Upstream
from amends.serving.effect_unknown import EFFECT_UNKNOWN
from amends.serving.tracing import continued_trace, current_span, incoming, trace_id_of, traceparent
from amends.vendors.computing import only_computes
from amends.vendors.registry import check, vendor

__all__ = [
    "ANSWER_FIELDS",
    "KEY",
    "REQUEST_FIELDS",
    "UNSAFE",
    "Call",
    "CallOptions",
    "ClientOptions",
    "accept_header",
    "mistakes_pass",
    "raise_if_mistake",
]

T = TypeVar("T")

TRACE = "traceparent"
DEADLINE = "Request-Timeout"
"""Our own header: the seconds that the caller will still wait. A server that supports it stops after that time."""
_IN_USE = 409
UNSAFE = frozenset({"POST", "PATCH"})
"""The methods that are not repeatable without a key."""
ANSWER_FIELDS = ALLOWANCE_FIELDS | PROOF_FIELDS
"""The headers that `Call.answered` reads, in lower case."""
REQUEST_FIELDS = CREDENTIALS | {"accept", "content-length", TRACE, KEY.lower()}
"""The headers of a request that `Call` reads, in lower case, but for the key that a vendor sends in another one."""

_COUNT = count()
_REMEMBERED = 30.0
"""Seconds for which a transport remembers a route. Longer than `origins.IDLE`: it would keep an Upstream that others lost."""
_MOST_ROUTES = 1000
_MOST_UNSETTLED = 1000
"""Keys that a transport keeps for `reuse_keys`. Fewer: a repeat of an old request gets a new key; more: memory."""
_LONGEST_PATH = 256
_CREDENTIALS = tuple(sorted(CREDENTIALS))


class Routes:
    """What is known about the routes that one transport calls: the Upstream and the service of each."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Upstream | None, Service, float]] = {}

    def facts(
        self,
        options: CallOptions,
        method: str,
        origin: str,
        path: str,
        headers: Mapping[str, str],
        given: Upstream | PerOrigin | None,
    ) -> tuple[Upstream | None, Service]:
        """
        Return the Upstream of a request, the one given or that of the origin, and what is known about its service.

        Args:
            options: the options of the transport.
            method: the request's method, in capitals.
            origin: the scheme, host and port that it goes to.
            path: the path of its address.
            headers: its headers, looked up without regard to case, or with names in lower case.
            given: the option `upstream`, or the Upstream of the present target of a Failover.

        """
        # A hash, so that nothing keeps credentials. Bindings for other libraries give headers whose names vary in case.
        caller = 0 if CREDENTIALS.isdisjoint(headers) else hash(tuple(map(headers.get, _CREDENTIALS)))
        place, now = (method, origin, path, caller, id(given)), CLOCK.now()
        known = self._known.get(place) if type(headers) is dict else None
        if known is not None and forgotten.before < known[2] <= now < known[2] + _REMEMBERED:
            return known[:2]
        upstream = given
        if upstream is PER_ORIGIN:
            # Credentials of the transport's own are not among the headers of the request.
            anonymous = options.refresh is None and options.headers is None
            owner = None if anonymous else options.number
            upstream = upstream_for(origin, owner).scope(route_scope(method, path, headers))
        assert not isinstance(upstream, PerOrigin)
        name = options.vendor or (None if upstream is None else upstream.vendor)
        service = service_of(name, origin, path, method)
        if len(path) <= _LONGEST_PATH:
            if len(self._known) >= _MOST_ROUTES:
                self._known.clear()
            self._known[place] = upstream, service, now
        return upstream, service


class UnsettledKeys:
    """The keys of the requests of one transport whose outcome is not known, for `reuse_keys`. Threads may share it."""

    def __init__(self) -> None:
        self._keys: OrderedDict[bytes, str] = OrderedDict()
        self._lock = Lock()

    def get(self, place: bytes) -> str | None:
        """Return the key of the request, if its outcome is not known."""
        with self._lock:
            return self._keys.get(place)

    def note(self, place: bytes, key: str, *, settled: bool) -> None:
        """Note whether the outcome of a request is known."""
        with self._lock:
            if settled:
                self._keys.pop(place, None)
                return
            self._keys[place] = key
            self._keys.move_to_end(place)
            if len(self._keys) > _MOST_UNSETTLED:
                self._keys.popitem(last=False)

    def __reduce__(self) -> tuple[object, ...]:
        return UnsettledKeys, ()  # a copy in another process knows no requests

    def __deepcopy__(self, memo: object) -> UnsettledKeys:
        return self


class ClientOptions(TypedDict, total=False):
    """
    The options that all HTTP clients take, with the same names as those of `recover`.

    policy: the bounds of recovery.
    upstream: the state that all callers of the same service share, or a `Failover` of Upstreams with base addresses. By default one
        per origin, with a scope per credential and route; None turns it off.
    own: the service is part of our own system: a server that calls it passes its failures on as they were read.
    keys: send an `Idempotency-Key` with POST and PATCH; False sends none.
    keyed: whether the service honours keys, so that a POST or PATCH that may have had its effect is repeated. None: it is
        unknown, until a vendor table or an answer of the service proves it.
    reuse_keys: give a request the key of an earlier one that was the same (address, headers, body, trace) and whose outcome is not
        known, so that calling again after a give-up does not do it twice. It ends with the first known outcome.
    raises: what is raised when recovery gives up: "fault", our typed error; "original", the library's exception with the fault
        attached; "nothing", the last response is returned.
    headers: returns headers, called for every attempt: credentials that `refresh` renews. They are sent to the first origin that
        is called, and to no other that it redirects to.
    refresh: renews credentials after they were refused, as in `recover`.
    verify: finds out whether a call that may have had its effect did, as in `recover`; returns a response if so.
    vendor: whose error format to expect, such as "openai"; by default the Upstream's vendor, else that of the host. For a known
        vendor and GraphQL, failures inside successful answers are read, and routes that only compute are repeated without a key.
    options: `policy`, `upstream`, `operation`, `read_only`, `refresh`, `verify`, `raises` and `on_event` as one value; one of these that is
        given beside it counts instead.
    """

    policy: Policy
    upstream: Upstream | PerOrigin | Failover | None
    own: bool
    keys: bool
    keyed: bool | None
    reuse_keys: bool
    raises: str
    headers: Callable[[], Mapping[str, str]] | None
    refresh: Callable[..., object] | None
    verify: Callable[..., object] | None
    vendor: str | None
    options: Options | None


_SHARED = frozenset(
    {"policy", "upstream", "operation", "read_only", "refresh", "verify", "raises", "on_event"}
)
"""The options of `recover` that the calls of a client have as well."""


class CallOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the calls through one transport: those of `ClientOptions`, and what it remembers."""

    policy: Policy = DEFAULT
    upstream: Upstream | PerOrigin | Failover | None = PER_ORIGIN
    """PER_ORIGIN: the process's Upstream of the called origin, with a scope per credential and route."""
    operation: Operation | None = None
    """Says what all requests have in common: that they only compute or read, and their priority."""
    on_event: EventHook | None = None
    own: bool = False
    """The service is part of our own system: a server that calls it passes its failures on as they were read (M9)."""
    keys: bool = True
    """Send an `Idempotency-Key` with POST and PATCH."""
    reuse_keys: bool = False
    """
    Give a request the key of an earlier one that was the same (address, headers, body, trace) and whose outcome is not known.
    It ends with the first known outcome. Two orders of two customers can be the same, so nothing is reused without it.
    """
    keyed: bool | None = None
    """Whether the service honours keys. None: unknown, until the vendor table or an answer proves it."""
    raises: str = "fault"
    """What is raised when recovery gives up: see `amends.http.raising`."""
    headers: Callable[[], Mapping[str, str]] | None = None
    """Returns headers, called for every attempt: credentials that `refresh` renews."""
    refresh: Callable[..., object] | None = None
    verify: Callable[..., object] | None = None
    pinned: list[str] = []
    """The first origin that was called. `headers` are sent to it only, also when it redirects elsewhere."""
    unsettled: UnsettledKeys = msgspec.field(default_factory=UnsettledKeys)
    """The keys that `reuse_keys` gives out again."""
    routes: Routes = msgspec.field(default_factory=Routes)
    vendor: str | None = None
    """Whose error format to expect; None: the Upstream's vendor, else that of the host."""
    number: int = msgspec.field(default_factory=_COUNT.__next__)
    """Distinguishes the transports of the process."""
    support: KeySupport = msgspec.field(default_factory=shared_proofs)
    """The addresses that have proved that they honour keys: the process's, or those of one transport."""

    @classmethod
    def of(
        cls, client: str, support: KeySupport | None = None, options: Options | None = None, **named: Any
    ) -> CallOptions:
        """
        Return the options that a client was given, as in `ClientOptions`. `client` is the name of what was called.

        Raises:
            TypeError, ValueError: an option is unknown, or has the wrong type or value; the message says what to do.

        """
        for name in named:
            if name not in ClientOptions.__annotations__:
                raise TypeError(missing_option(client, name, ClientOptions.__annotations__))
        if options is not None:
            check_kind("options", options, Options, "Options(read_only=True, policy=Policy(attempts=3))")
            shared = options.given()
            for name in shared:
                if name not in _SHARED:
                    raise TypeError(
                        f"{name} is no option of a client: give it to recover, with the call of the client in it"
                    )
            if shared.pop("read_only", False):
                shared["operation"] = replace(shared.get("operation") or Operation(), read_only=True)
            named = {**shared, **named}
        if support is not None:
            named["support"] = support
        return cls(**named)

    def __post_init__(self) -> None:
        check_raises(self.raises)
        check_kind("policy", self.policy, Policy, "Policy(attempts=3)")
        check_flag("own", self.own)
        check_flag("keys", self.keys)
        check_flag("reuse_keys", self.reuse_keys)
        if self.keyed is not None:
            check_flag("keyed", self.keyed)
        if isinstance(self.upstream, Failover):
            for number, target in enumerate(self.upstream.targets):
                if target.call is not None or target.upstream.address is None:
                    raise ValueError(
                        f"target {number} of a client's Failover needs a base address: Upstream('second', address='https://…')"
                    )
        elif self.upstream is not None and not isinstance(self.upstream, PerOrigin):
            check_kind("upstream", self.upstream, Upstream, 'Upstream("payments")')
        if self.operation is not None:
            check_kind("operation", self.operation, Operation, "Operation(computes=True)")
        for name in ("headers", "refresh", "verify", "on_event"):
            hook: object = getattr(self, name)
            if hook is not None and not callable(hook):
                raise TypeError(f"{name} is a function, not {type(hook).__name__}")
        if self.vendor is not None:
            check(self.vendor)


class _RequestOperation(Operation, frozen=True, kw_only=True):
    """The operation of a request, which becomes repeatable when the service proves that it honours the key."""

    proved: Callable[[], bool]

    @property
    @rests_on(Claim.MAY_REPEAT, Proof.METHOD, Proof.USER, Proof.ECHO, Proof.REPLAY)
    def repeatable(self) -> bool:
        return self.read_only or self.idempotent or self.key is not None or self.proved()


class Call:
    """
    One request through a binding, however many attempts it takes.

    Most requests succeed at once. So what only a failure needs, such as the operation, is made after one.
    """

    def __init__(
        self,
        options: CallOptions,
        *,
        method: str,
        origin: str,
        path: str,
        headers: Mapping[str, str],
        replayable: bool,
        redirected: bool = False,
        key: str | None = None,
        give_up: Callable[[FaultError, str], object] = return_or_raise,
        content: Callable[[], tuple[str, bytes]] | None = None,
    ) -> None:
        """
        Args:
            options: the options of the transport.
            method: the request's method.
            origin: the scheme, host and port that the request goes to.
            path: the path of its address.
            headers: its headers, looked up without regard to case, or with names in lower case.
            replayable: whether its body can be sent more than once.
            redirected: whether another origin redirected the request here. What the user said about keys is about that
                other service, and the operation's key is not sent.
            key: the key to send instead of the request's own.
            give_up: returns or raises the outcome of a failed call, as the option `raises` says.
            content: returns the whole address and the body, if that can be sent more than once.

        """
        self.options = options
        self._give_up = give_up
        self._content = content
        self.method = method = method.upper()
        self.origin = origin
        self.path = path
        self.headers = headers
        self.kept_open: list[Callable[[], object]] = []
        """Closes failed responses whose bodies may be returned. The next attempt closes them."""
        self.replayable = replayable
        self.redirected = redirected
        given = options.upstream
        if isinstance(given, Failover):
            # Where another origin redirected to is none of the targets.
            self.failover = None if redirected else given
            given = PER_ORIGIN if redirected else given.targets[0].upstream
        self.upstream, self.service = options.routes.facts(options, method, origin, path, headers, given)
        scope = SCOPE.get()
        self._around = around = None if scope is None else scope.operation
        own_key = headers.get(self.service.key_field) or None  # an empty header counts as none
        self._by_hand = own_key is not None
        if own_key is None and method in UNSAFE and options.keys:
            if around is not None and around.key is not None and not redirected:
                own_key, self._by_hand = around.key, True
            elif (effect := request_key(method, f"{origin}{path}")) is not None:
                own_key = effect
            elif replayable and key is None:
                if options.reuse_keys and content is not None:
                    self._place = self._identify(*content())
                    own_key = options.unsettled.get(self._place)
                self._key_is_new = True
                own_key = own_key or str(uuid4())
        self.key = key or own_key

    failover: Failover | None = None
    """The services that can do the same, if there are several."""
    call_id: str | None = None
    """The id that the last attempt sent, by which a failure is signed."""
    made = 0
    """The attempts made so far."""
    sent = 0.0
    """When the last attempt was sent, on the recovery clock."""
    until: float | None = None
    """When the deadline of the operation is over, on the recovery clock; None without one. Known in an attempt."""
    timeout: float | None = None
    """The seconds that the last attempt may take."""
    trace_id = ""
    """The trace of the request, for logs, once an attempt was made."""
    _trace: str | None = None
    """The trace that the attempts send; None if the request names one."""
    _failed: object = None
    _waited = False
    """Whether this call has waited for an earlier request with its key."""
    _place: bytes | None = None
    """Identifies the request for `reuse_keys`."""
    _key_is_new = False
    """Whether the key was made for this call."""

    @property
    def size(self) -> int:
        """The bytes of the request's body, as far as its headers tell."""
        length = self.headers.get("content-length") or ""
        return int(length) if length.isdecimal() else 0

    @cached_property
    def operation(self) -> Operation:
        """The operation given to recovery. It has the key only if the service is known to honour it."""
        around = self._around
        declared = Operation.of_http(
            self.method,
            name=f"{self.method} {self.origin.partition('://')[2]}",
            key=self.key if self._honours_keys() else None,
            url=f"{self.origin}{self.path}",
            trace_id=self.trace_id,
        )
        if around is not None and (around.read_only or around.idempotent or around.computes):
            # The surrounding operation decides over the method, for example for a POST that only searches.
            declared = replace(
                declared, read_only=around.read_only, idempotent=around.idempotent, computes=around.computes
            )
        own = self.options.operation
        if own is not None:
            declared = replace(
                declared,
                read_only=declared.read_only or own.read_only,
                idempotent=declared.idempotent or own.idempotent,
                computes=declared.computes or own.computes,
                priority=own.priority,
            )
        if self.service.computes and self._only_computes():
            declared = replace(declared, read_only=True)
        if self.key is None or declared.repeatable:
            return declared
        return _RequestOperation(**msgspec.structs.asdict(declared), proved=self._honours_keys)

    def _only_computes(self) -> bool:
        """Return whether the request names nothing that acts or stays at the service."""
        assert self.service.vendor is not None
        address, body = ("", None) if self._content is None or not self.replayable else self._content()
        named = {name.lower(): value for name, value in self.headers.items()}
        return only_computes(vendor(self.service.vendor), body, named, urlsplit(address).query)

    def _honours_keys(self) -> bool:
        """Return whether the service is known to honour keys; what the user says about it comes first."""
        key, said = self.key, self.options.keyed
        if key is None:
            return False
        if said is None and self.upstream is not None:
            said = self.upstream.keyed
        return self.options.support.honours(
            self.origin,
            self.path,
            self.method,
            key,
            size=self.size,
            said=said,
            by_hand=self._by_hand,
            redirected=self.redirected,
        )

    def _identify(self, address: str, body: bytes) -> bytes:
        """Return what identifies a request: its method, address, headers, body and trace."""
        own, span = self.headers.get(TRACE), current_span()
        traced = own is not None or span is not None or incoming() is not None
        digest = sha256()
        fields = sorted(
            (name.lower(), value) for name, value in self.headers.items() if name.lower() != TRACE
        )
        trace = trace_id_of(span, own or incoming()) if traced else ""
        for part in (self.method, address, repr(fields), trace):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(body)
        return digest.digest()

    def _note_outcome(self, error: FaultError | None = None) -> None:
        """Note whether the outcome of the call is known, and what to do if it is not."""
        key, unknown = self.key, error is not None and error.fault.executed is Executed.MAYBE
        if self._place is not None and key is not None:
            self.options.unsettled.note(self._place, key, settled=not unknown)
        if error is None or key is None or self.operation.read_only:
            return
        error.key, error.key_is_new = key, self._key_is_new
        if unknown:
            same = f"operation=Operation(key=error.key), or the header {self.service.key_header}"
            error.add_note(
                f"amends: to do: find out whether it happened, or send it again with the same key: {same}; with a new key it "
                "may happen twice"
                if self._honours_keys()
                else "amends: to do: find out whether it happened; nothing shows that the service honours keys. If you know that "
                f"it does, send it again with the same key: {same}; without that it may happen twice"
            )

    def run(self, attempt: Callable[[], T]) -> T:
        """Make the attempts of the request, as `recover` does with the options of the call."""
        upstream, first = self.upstream, None
        if (
            self.options.policy.deadline is None
            and (upstream is None or upstream.open)
            and self.failover is None
        ):
            response, first = call_first(upstream, attempt, (), {})
            if first is None:
                if self._place is not None:
                    self._note_outcome()
                return response  # type: ignore[no-any-return]
        recovered: T = run_flow(plan_for(**self.recover_options()), attempt, (), {}, None, first)
        self._note_outcome()
        return recovered

    async def arun(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Same as `run`, for async functions."""
        upstream, first = self.upstream, None
        if (
            self.options.policy.deadline is None
            and (upstream is None or upstream.open)
            and self.failover is None
        ):
            response, first = await acall_first(upstream, attempt, (), {})
            if first is None:
                if self._place is not None:
                    self._note_outcome()
                return response  # type: ignore[no-any-return]
        plan = plan_for(**self.recover_options())
        recovered: T = await arun_flow(plan, attempt, (), {}, None, first)
        self._note_outcome()
        return recovered

    def recover_options(self, left: float | None = None) -> dict[str, Any]:
        """
        Return the keyword arguments of `recover`; a request that is not replayable gets one attempt.

        Args:
            left: the seconds left of the policy's deadline, if the operation began before.

        """
        options, replayable = self.options, self.replayable
        policy = options.policy if replayable else replace(options.policy, attempts=1, rules={})
        if left is not None and policy.deadline is not None:
            policy = replace(policy, deadline=max(left, 0.001))
        return {
            "policy": policy,
            "upstream": self.failover or self.upstream,
            "operation": self.operation,
            "on_event": options.on_event,
            "refresh": options.refresh if replayable else None,
            "verify": None if options.verify is None else self._verify,
        }

    def move(self, address: str) -> tuple[Target, str] | None:
        """
        Begin an attempt at the present target of a Failover. Return it and the address there, or None without a Failover.

        Args:
            address: the request's whole address.

        Raises:
            ValueError: the address is none of a target.

        """
        target = current_target()
        if self.failover is None or target is None:
            return None
        number = self.failover.targets.index(target)
        moved = self.failover.address_for(number, address)
        parts = urlsplit(moved)
        self.origin, self.path = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", parts.path
        self.upstream, self.service = self.options.routes.facts(
            self.options, self.method, self.origin, self.path, self.headers, target.upstream
        )
        return target, moved

    def _verify(self, fault: Fault) -> object:
        """Call the user's `verify`. After EFFECT_UNKNOWN `resolve` calls it, because the repeat needs a new key."""
        verify = self.options.verify
        if verify is None or fault.code == EFFECT_UNKNOWN:
            return None
        return verify(*hook_arguments(verify, fault))

    def attempt_headers(self) -> dict[str, str]:
        """
        Begin an attempt, and return the headers that it adds to the request.

        Raises:
            FaultError: the time limit of the effect around it is over.

        """
        check_time_limit()
        self.made += 1
        self.sent = CLOCK.now()
        self._failed = None
        headers, key = self.headers, self.key
        added = {"Accept": accept_header(headers.get("accept"))}
        if key is not None:
            added[self.service.key_header] = key
        if self.made == 1:
            given, span = headers.get(TRACE) or None, current_span()
            self._trace = continued_trace() if given is None else None
            self.trace_id = self._trace if self._trace and span is None else trace_id_of(span, given)
        if self._trace is not None:
            added[TRACE] = traceparent(self._trace)
        self.timeout = left = time_left()
        self.until = None if left is None else self.sent + left
        if left is not None:
            added[DEADLINE] = f"{left:.3f}"
        stated, self.call_id = new_left(tries_left(self.options.policy.attempts), left)
        if stated is not None:
            added[HEADER] = stated
        options = self.options
        if options.headers is not None:
            if not options.pinned:
                options.pinned.append(self.origin)
            if options.pinned[0] == self.origin:
                added.update(options.headers())
        return added

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """
        Note what the headers of an answer say about the service.

        Args:
            status: the answer's status.
            headers: its headers, looked up without regard to case. Only ANSWER_FIELDS are read.

        """
        if self.key is not None:
            succeeded = 200 <= status < 300
            self.options.support.answered(
                self.origin, self.path, self.key, headers, succeeded=succeeded, size=self.size
            )
        if self.upstream is not None and headers:
            found = published(headers, time())
            if found:
                self.upstream.note_limits(found, CLOCK.now(), self.sent, ok=status < 400)

    def error(
        self, status: int, headers: Mapping[str, str], body: bytes | None, response: object
    ) -> FaultError:
        """Return the typed error of a failed response."""
        self._failed = response
        own = self.own
        error = error_from_response(status, headers, body, response, vendor=self.service.vendor, own=own)
        error = trusted(error, own=own, call=self.call_id)
        in_use = status == _IN_USE and self.key is not None and self._is_in_use(error.fault, headers)
        if in_use and not self._waited:
            self._waited = error.waits_for_key = True
        return error

    @property
    def own(self) -> bool:
        """Whether the user says that the service is part of the own system."""
        upstream = self.upstream
        return (
            self.options.own
            or (upstream is not None and upstream.own)
            or is_own_address(self.origin + self.path)
        )

    @rests_on(Claim.MAY_REPEAT, Proof.ECHO)
    def _is_in_use(self, fault: Fault, headers: Mapping[str, str]) -> bool:
        """
        Return whether an answer says that an earlier request with our key is being worked on.

        The same key is sent again after the wait, once: such a request is refused, or answered as the first one.
        """
        named = fault.retry_after is not None and fault.recovery is Recovery.TRANSIENT
        return named and (headers.get(KEY) or headers.get(KEY.lower())) == self.key

    def failure_inside(
        self, status: int, headers: Mapping[str, str], body: bytes, response: object
    ) -> FaultError | None:
        """Return the typed error inside the whole body of a successful answer of a known vendor or GraphQL, or None."""
        fault = self.service.failure(status, headers, body)
        # A fault that is only a remark, such as one about a part of the answer, does not fail the call.
        if fault is None or fault.executed is Executed.YES:
            return None
        if self.key is not None:
            self.options.support.take_back(self.origin, self.path, self.key)
        error = FaultError.from_fault(fault)
        error.response = response  # type: ignore[attr-defined]
        return error

    def take_failed(self) -> Any:
        """Return the failed response of the last attempt, once; None if there is none. A further attempt supersedes it."""
        response, self._failed = self._failed, None
        return response

    @property
    def elapsed(self) -> timedelta:
        """The time since the last attempt was sent."""
        return timedelta(seconds=CLOCK.now() - self.sent)

    @property
    def left(self) -> float | None:
        """The seconds left until the deadline of the operation; None without one."""
        return None if self.until is None else max(0.0, self.until - CLOCK.now())

    def release(self) -> None:
        """Close the responses that were kept open."""
        while self.kept_open:
            self.kept_open.pop()()

    async def arelease(self) -> None:
        """Same as `release`, for functions that return an awaitable."""
        while self.kept_open:
            closing = self.kept_open.pop()()
            if isawaitable(closing):
                await closing

    def resolve(self, error: FaultError, resend: Callable[[CallOptions, str], object]) -> Any:
        """
        Return the result of a call that recovery gave up on, or raise.

        If the server answered that the effect of an earlier attempt is unknown, `verify` is called once. If it returns
        False, the effect did not happen and the request is sent again with a new key.

        Args:
            error: the last failure.
            resend: sends the request with the given options and key, and returns the response.

        Returns:
            The response, or the value that `verify` returned.

        Raises:
            FaultError: the failure, or another exception as the option `raises` says.

        """
        verify = self.options.verify
        error.own = error.own or self.own
        self._note_outcome(error)
        if not is_effect_unknown(error) or verify is None:
            return self._give_up(error, self.options.raises)
        return self._after_verify(verify(*hook_arguments(verify, error.fault)), error, resend)

    async def aresolve(self, error: FaultError, resend: Callable[[CallOptions, str], object]) -> Any:
        """Same as `resolve`, but `verify` may be async, and the result of `resend` is awaited."""
        verify = self.options.verify
        error.own = error.own or self.own
        self._note_outcome(error)
        if not is_effect_unknown(error) or verify is None:
            return self._give_up(error, self.options.raises)
        verified = verify(*hook_arguments(verify, error.fault))
        result = self._after_verify(await verified if isawaitable(verified) else verified, error, resend)
        return await result if isawaitable(result) else result

    def _after_verify(
        self, verified: object, error: FaultError, resend: Callable[[CallOptions, str], object]
    ) -> object:
        if verified is False:
            return resend(replace(self.options, verify=None), str(uuid4()))
        return self._give_up(error, self.options.raises) if verified is None else verified


@lru_cache(maxsize=256)
def accept_header(given: str | None) -> str:
    """
    Return an `Accept` header with problem details added.

    >>> accept_header("*/*"), accept_header("text/csv")
    ('application/json, application/problem+json, */*;q=0.8', 'text/csv, application/problem+json;q=0.9')
    """
    if not given or given.strip() == "*/*":
        return f"application/json, {MEDIA_TYPE}, */*;q=0.8"
    if MEDIA_TYPE in given:
        return given
    return f"{given}, {MEDIA_TYPE};q=0.9"


# Mistakes of the program that calls: an invalid header value, an address without a scheme, the wrong kind of transport. They
# are raised at once and as they are. Nothing was wrong with the service, so nothing is repeated and no Upstream counts a
# failure.

_KINDS = (
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    AssertionError,
    NotImplementedError,
    ArithmeticError,
    RecursionError,
    ValueError,
)


class _MistakeError(BaseException):
    """Carries a mistake through `recover`, which handles every Exception."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def raise_if_mistake(error: Exception, kinds: tuple[type[Exception], ...] = ()) -> None:
    """
    Raise so that `mistakes_pass` raises the error as it is, if it is a mistake; otherwise return.

    Args:
        error: what an attempt raised.
        kinds: the exceptions of the client's library for mistakes.

    """
    # Errors of TLS certificates are ValueErrors too, but no mistakes of the caller.
    if isinstance(error, kinds) or (
        isinstance(error, _KINDS)
        and not isinstance(error, FaultError)
        and type(error).__module__ not in {"ssl", "_ssl"}
    ):
        raise _MistakeError(error)


class mistakes_pass:  # noqa: N801 - used as a verb
    """Raise a mistake that `raise_if_mistake` found inside the block as it is."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, _MistakeError):
            return
        mistake = error.error
        context = mistake.__context__
        try:
            raise mistake
        finally:
            mistake.__context__ = context  # without the carrier
