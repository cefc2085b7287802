"""What `Idempotent` and `IdempotentWSGI` do the same way: claim a key, answer its repeats, and store how a request ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from inspect import isawaitable, iscoroutinefunction
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.wrong_calls import explains_wrong_calls
from amends.durable.batch import complete, in_background
from amends.durable.keys import key_name
from amends.durable.lock_owner import owner_of
from amends.errors.base import FaultError
from amends.http.idempotency_request import (
    KeyedRequest,
    after_failure,
    fingerprint,
    invalid_key_error,
    kept_headers,
    not_stored_fault,
    parse_key,
    store_down_fault,
    verified_response,
)
from amends.http.idempotency_store import Claim, Keys, Record
from amends.http.request_info import RequestInfo
from amends.http.responses import LOG, RawResponse, Settings, error_response
from amends.http.storage import Storage
from amends.proof import Claim as Proved
from amends.proof import Proof, rests_on
from amends.stores import Store, StoreError

__all__ = [
    "CLAIM",
    "KEYS",
    "Answered",
    "KeyedMiddleware",
    "Refused",
    "renew_lease",
    "replayed",
    "settle",
    "settle_failure",
    "write_outcome",
]

T = TypeVar("T")

CLAIM = "amends.claim"
"""The key of the scope or environ for the claim of the running request."""
KEYS = "amends.keys"
"""The key of the scope or environ for a function that opens the application's keys."""


class Refused(NamedTuple):
    """Why a request with a key does not run: the fault that it is answered with, and the exception behind it."""

    fault: Fault
    cause: BaseException | None = None


class Answered(NamedTuple):
    """The response of the first request with a key, and the fault behind it."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    whole: bool
    """Whether `body` is all of it; False for a response that is too large to be stored."""
    fault: Fault | None = None
    rewritten: bool = False
    """Whether a layer around will answer the fault instead, so that this response is not the one to store."""


class KeyedMiddleware:
    """What `Idempotent` and `IdempotentWSGI` have in common. `source` is the ASGI scope or the WSGI environ."""

    _default_caller: Callable[[Any], str]

    @explains_wrong_calls
    def __init__(
        self,
        app: Callable[..., Any],
        store: Store | str,
        *,
        expires_in: float = 86400.0,
        lease: float = 30.0,
        methods: Collection[str] = ("POST", "PATCH"),
        required: bool = False,
        transactional: bool | Callable[[Any], bool] = False,
        caller: Callable[[Any], str] | None = None,
        verify: Callable[[KeyedRequest], object] | None = None,
        max_body: int = 1024 * 1024,
        settings: Settings | None = None,
    ) -> None:
        """
        Args:
            app: the application; of ASGI, wrapped in `Problems`.
            store: an open store, or a URL that is opened at the first request and closed with the lifespan, or
                with `close`.
            expires_in: seconds until a key is forgotten.
            lease: seconds after which a process that does not renew its lease counts as dead.
            methods: the methods whose keys are honoured.
            required: refuse requests of these methods without a key.
            transactional: whether all effects of a request go through `commit`; a bool, or a function of the
                scope or environ.
            caller: returns the id of the caller that a key belongs to, from the scope or environ; without it the id is made
                from the headers that carry credentials.
            verify: called with the `KeyedRequest` when a request is repeated whose effect is in doubt. Returns the response
                to send (see `verified_response`), True if the effect happened, False if it did not and the request may
                run, or None if that is not known. A plain function runs in a thread; after `lease` seconds the answer
                counts as None.
            max_body: the largest request body in bytes whose key is honoured, and the largest response body that is
                stored. A larger request runs without its key, with a warning in the log; with `required` it is refused.
            settings: the settings given to `Problems`.

        """
        self.app = app
        self._storage = Storage(store)
        self._keys: Keys | None = None
        self._expires_in, self._lease = expires_in, lease
        self._methods = frozenset(methods)
        self._required = required
        self._transactional = transactional
        self._caller = caller or self._default_caller
        self._verify = verify
        self._max_body = max_body
        self._settings = settings or Settings()
        self._prepare()

    def _prepare(self) -> None:
        """Make what a subclass needs beside the options."""

    def _key(self, values: Sequence[str]) -> str | Refused | None:
        """Return the key in a request's headers; None if it has none and needs none."""
        try:
            key = parse_key(values)
        except FaultError as error:
            return Refused(error.fault)
        return Refused(invalid_key_error().fault) if key is None and self._required else key

    async def _open_keys(self) -> Keys:
        store = await self._storage.get()
        if self._keys is None or self._keys.store is not store:
            owner = await asyncio.to_thread(owner_of, store)
            self._keys = Keys(store, expires_in=self._expires_in, lease=self._lease, owner=owner)
        return self._keys

    async def _claim(self, request: KeyedRequest, source: object) -> tuple[Keys, Claim] | Record | Refused:
        """
        Return the claim of a request that is to run, the stored response of a repeat, or why it does not run.

        The key of a request that is cancelled in here is released, because the request does not run.
        """
        claiming = in_background(self._claim_key(request, source))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            in_background(_withdraw(claiming))
            raise

    async def _claim_key(
        self, request: KeyedRequest, source: object
    ) -> tuple[Keys, Claim] | Record | Refused:
        transactional = self._transactional
        try:
            request = replace(request, caller=self._caller(source))
            keys = await self._open_keys()
            claimed = await keys.claim(
                key_name(request.caller, request.key),
                fingerprint(
                    request.method, request.path, request.query.encode("latin-1", "replace"), request.body
                ),
                transactional=transactional(source) if callable(transactional) else transactional,
                verify=None
                if self._verify is None
                else lambda record: self._ask(replace(request, status=record.status)),
            )
        except FaultError as error:
            return Refused(error.fault)
        except StoreError as error:
            return Refused(store_down_fault(), error)
        if not isinstance(claimed, Record):
            return keys, claimed
        return Refused(not_stored_fault()) if claimed.body is None else claimed

    async def _ask(self, request: KeyedRequest) -> RawResponse | bool | None:
        """Call the `verify` hook. A hook that fails or takes too long is logged and has found out nothing."""
        verify = self._verify
        assert verify is not None
        try:
            async with asyncio.timeout(self._lease):
                found = (
                    verify(request)
                    if iscoroutinefunction(verify)
                    else await asyncio.to_thread(verify, request)
                )
                return verified_response(await found if isawaitable(found) else found)
        except Exception:  # noqa: BLE001 - a hook of the application may raise anything
            LOG.exception("the verify hook failed; the effect of the request stays unknown")
            return None

    def _response(self, request: RequestInfo, refused: Refused) -> RawResponse:
        return error_response(refused.fault, request, self._settings, cause=refused.cause, serve_pages=False)


def replayed(record: Record) -> RawResponse:
    """Return the stored response of the first request."""
    assert record.body is not None
    return RawResponse(record.status, [*record.headers, ("idempotency-replayed", "true")], record.body)


def settle(keys: Keys, claim: Claim, answered: Answered) -> Coroutine[object, object, None]:
    """Store the outcome of a request that was answered."""
    if claim.committed:
        return keys.release_lease(claim)
    status, headers = answered.status, kept_headers(answered.headers)
    if status >= 400:
        content_type = next((value for name, value in headers if name.lower() == "content-type"), "")
        then = after_failure(answered.fault, status, content_type, answered.body)
        if then == "release" or _is_rolled_back(claim):
            return keys.release(claim)
        if then == "doubt" or answered.rewritten:
            return keys.mark_in_doubt(claim, status=status)
    body = answered.body if answered.whole else None
    return keys.complete(claim, status=status, headers=headers, body=body)


@rests_on(Proved.NOT_HAPPENED, Proof.STATED, Proof.RECORD)
def settle_failure(keys: Keys, claim: Claim, fault: Fault | None = None) -> Coroutine[object, object, None]:
    """Store the outcome of a request that ended without a complete response; `fault` is that of a typed error."""
    if claim.committed:
        return keys.release_lease(claim)
    without_effect = fault is not None and fault.executed is Executed.NO
    return keys.release(claim) if without_effect or _is_rolled_back(claim) else keys.mark_in_doubt(claim)


def _is_rolled_back(claim: Claim) -> bool:
    """Return whether all effects of the request were in a transaction that was not committed."""
    return claim.record.transactional and not claim.committed


async def write_outcome(writing: Coroutine[object, object, None]) -> None:
    """
    Write the outcome of a request, also if the caller is cancelled.

    A failure is logged. The response is still sent; the lease expires, and the key is then in doubt.
    """
    await complete(_log_store_error(writing))


async def _log_store_error(writing: Awaitable[None]) -> None:
    try:
        await writing
    except StoreError:
        LOG.exception("the record of an idempotency key could not be written")


async def _withdraw(claiming: asyncio.Future[tuple[Keys, Claim] | Record | Refused]) -> None:
    """Release the key that a cancelled request claims."""
    await asyncio.wait({claiming})
    claimed = None if claiming.cancelled() or claiming.exception() else claiming.result()
    if claimed is not None and not isinstance(claimed, Record | Refused):
        keys, claim = claimed
        await _log_store_error(keys.release(claim))


async def renew_lease(keys: Keys, claim: Claim) -> None:
    """Renew the lease of a running request until the task is cancelled or another process has the lease."""
    while True:
        await asyncio.sleep(keys.lease / 3)
        try:
            await keys.renew(claim)
        except StoreError:
            return
