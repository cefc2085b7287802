"""
What happens to one call of an effect, as a generator of steps that the drivers perform.

    claim ── new key ──────────► call ── result ──► record it ──► result
      │                            └── exception ─ did not happen ─► free the key, raise
      │                                           └ unknown ─► verify ─► record, free, or in doubt
      ├── running elsewhere ───► wait, claim again
      ├── in doubt ────────────► verify, else the question
      └── done ────────────────► the outcome, or "already done at T"

The generator neither waits nor calls anything itself, so plain functions and coroutines share it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.json_value import json_value
from amends.durable.keys import CALL_LIMIT, Claim, KeyInDoubt, KeyReused, KeyRunning, Keys, new_holder
from amends.effects import errors
from amends.effects.outcomes import encode_result, restore_result
from amends.effects.records import EffectRecord, free
from amends.effects.similar import Similar, find_similar
from amends.errors.base import FaultError
from amends.foreign.in_doubt import is_unanswered
from amends.logs import logger
from amends.proof import Claim as Proved
from amends.proof import Proof, rests_on
from amends.recovery.classify import fault_of
from amends.recovery.effect_context import is_running
from amends.serving.server_errors import is_about_a_part
from amends.stores.errors import StoreError

__all__ = [
    "CallStep",
    "Flow",
    "Request",
    "StoreStep",
    "VerifyStep",
    "WaitStep",
    "ask_about_similar",
    "hand_out",
    "perform",
    "reopening",
    "wire_key",
]

LOG = logger("amends.effects")

T = TypeVar("T")
EffectKeys: TypeAlias = Keys[EffectRecord]
EffectClaim: TypeAlias = Claim[EffectRecord]

_FIRST_WAIT, _LONGEST_WAIT = 0.02, 0.5
"""Seconds between two looks at a key that another process works under. In one process, the waiter is woken."""
_MARGIN = 0.01
"""Seconds after the time limit of a lost call, so that it is over by any rounding."""


class Request(msgspec.Struct, kw_only=True):
    """One call of an effect."""

    name: str
    """The name of the effect in the ledger."""
    fresh: EffectRecord
    expires_in: float
    has_verify: bool
    returns: object = None
    """The type that the function declares to return; None if it declares none."""
    again: str | None = None
    direct: bool = False
    """Whether the call is one request to another service, whose evidence about the effect counts."""
    similar: Similar | None = None
    arguments: bytes = b""
    """The whole canonical arguments, if the call is compared with similar ones."""
    wait: float = 60.0
    """Seconds to wait for another caller with the same key, or for the time limit of a lost call."""
    replays: bool = False
    """Whether an outcome that was delivered may have been delivered to an earlier start of the same run of an agent."""
    call_limit: float = CALL_LIMIT
    """Seconds from the begin of the call during which a lost one may still act."""
    now: Callable[[], float]


class StoreStep(msgspec.Struct):
    """Await a function of the keys; returns its result."""

    work: Callable[[EffectKeys], Awaitable[object]]
    withdraw: Callable[[EffectKeys], Awaitable[None]] | None = None
    """Undoes the work of a caller that was cancelled or interrupted meanwhile: the store may still complete it."""


class CallStep(msgspec.Struct):
    """Make the call while the lease of the claim is renewed; returns its result."""

    claim: EffectClaim
    key: str


class VerifyStep(msgspec.Struct):
    """Call `verify` while the lease of the claim is renewed; returns what it found."""

    claim: EffectClaim


class WaitStep(msgspec.Struct):
    """Wait until the key may have changed; returns the seconds that it took."""

    name: str
    seconds: float


Step: TypeAlias = StoreStep | CallStep | VerifyStep | WaitStep
Flow: TypeAlias = Generator[Step, Any, T]


def perform(request: Request) -> Flow[object]:
    """Return the result of the call: of this one, or of the one that had the effect."""
    yield from ask_about_similar(request)
    left = request.wait
    while True:
        taken, waited = yield from _take(request)
        if not isinstance(taken, Claim) or taken.record.state != "doubt":
            break
        decided = yield from _decide_doubt(request, taken, left)
        if isinstance(decided, float):
            # The lost call may still act for so many seconds. Then `verify` is asked again.
            left -= yield WaitStep(request.name, decided + _MARGIN)
            continue
        if decided is not None:
            taken, waited = decided, True
            break
    if isinstance(taken, Claim):
        return (yield from _run(request, taken))
    return (yield from _deliver(request, taken, waited))


def wire_key(request: Request, record: EffectRecord) -> str:
    """Return the key that services get: another one for each time that the effect is done on purpose."""
    return f"{request.name}#{len(record.times)}" if record.times else request.name


def ask_about_similar(request: Request) -> Flow[None]:
    """Raise the question about a call that is nearly identical to a recent one, if the author wants it."""
    rule = request.similar
    if rule is None:
        return
    try:
        found = yield StoreStep(
            lambda keys: find_similar(
                keys, request.name, request.fresh, request.arguments, rule, ask=request.again is None
            )
        )
    except StoreError as error:
        raise errors.unavailable() from error
    if found is not None:
        raise errors.similar(*found)


# Claiming -------------------------------------------------------------------------------------------------------


def _take(request: Request) -> Flow[tuple[EffectClaim | EffectRecord, bool]]:
    """Return a claim or the record, and whether the call waited for another one."""
    left, pause, waited, holder = request.wait, _FIRST_WAIT, False, new_holder()
    while True:
        try:
            again = None if request.again is None else reopening(request, waited=waited)
            taken = yield StoreStep(
                lambda keys, again=again, fresh=not waited: keys.acquire(  # type: ignore[misc]
                    request.name,
                    request.fresh,
                    verifiable=request.has_verify,
                    reopen=again,
                    expires_in=request.expires_in,
                    expect_new=fresh,
                    holder=holder,
                    call_limit=request.call_limit,
                ),
                withdraw=lambda keys: _withdraw(keys, request, holder),
            )
        except KeyRunning:
            if is_running(request.name):
                raise errors.running_around(request.name) from None
            if left <= 0:
                raise errors.running(request.name, request.wait) from None
        except KeyReused:
            raise errors.key_reused(request.name) from None
        except KeyInDoubt:
            found = yield StoreStep(lambda keys: keys.get(request.name))
            raise errors.in_doubt(request.name, found or request.fresh) from None
        except StoreError as error:
            raise errors.unavailable() from error
        else:
            return taken, waited
        waited = True
        left -= yield WaitStep(request.name, min(pause, left))
        pause = min(2 * pause, _LONGEST_WAIT)


async def _withdraw(keys: EffectKeys, request: Request, holder: str) -> None:
    """End the claim of a holder, if there is one. A key in doubt stays in doubt."""
    with suppress(StoreError):
        found = await keys.get(request.name)
        if found is not None:
            record = found
            claim = Claim(
                name=request.name, record=record, revision=0, holder=holder, expires_in=request.expires_in
            )
            await (keys.release_lease(claim) if found.state == "doubt" else free(keys, claim))


def reopening(request: Request, *, waited: bool = False) -> Callable[[EffectRecord], EffectRecord | None]:
    """Return what replaces a record that is done, if it was delivered and this reason was not given before."""

    def reopen(record: EffectRecord) -> EffectRecord | None:
        reason = request.again
        if reason is None or not record.derived or not record.delivered or reason in record.reasons:
            return None
        if waited and record.ended >= request.fresh.started:
            # The outcome of the call that was waited for is handed out, and nothing is done once more. An older outcome
            # is there if that call was a repeat that did not happen.
            return None
        return replace(
            request.fresh,
            reasons=(*record.reasons, reason),
            times=(*record.times, record.ended),
            previous=replace(record, holder="", lease=None, owner="", previous=None),
        )

    return reopen


@rests_on(Proved.NOT_HAPPENED, Proof.VERIFIED, Proof.TIME_LIMIT)
def _decide_doubt(
    request: Request, claim: EffectClaim, patience: float
) -> Flow[EffectClaim | EffectRecord | float | None]:
    """
    Call `verify` for a key in doubt, with the lease held.

    Returns:
        The claim or the record. None: a repeat did not happen, and the effect before it is restored. Seconds: no effect was
        found yet, but the lost call may have it until then.

    """
    found = yield from _verify(claim, lambda keys: keys.release_lease(claim))
    try:
        if found is None:
            yield StoreStep(lambda keys: keys.release_lease(claim))
            raise errors.in_doubt(request.name, claim.record)
        if found is False:
            left = yield StoreStep(lambda keys: _call_left(keys, claim))
            if left > 0:
                yield StoreStep(lambda keys: keys.release_lease(claim))
                if left > patience:
                    raise errors.may_still_act(request.name, left)
                return float(left)
            if claim.record.previous is not None:
                yield StoreStep(lambda keys: free(keys, claim))
                return None
            yield StoreStep(lambda keys: keys.restart(claim, request.fresh))
            return claim
        # Handed out at once, and by this very call.
        outcome = _verified(found)
        record = replace(
            claim.record, state="done", outcome=outcome, ended=request.now(), delivered=True, previous=None
        )
        yield StoreStep(
            lambda keys: keys.complete(
                claim, outcome=outcome, ended=record.ended, delivered=True, previous=None
            )
        )
    except StoreError as error:
        raise errors.unavailable() from error
    return record


async def _call_left(keys: EffectKeys, claim: EffectClaim) -> float:
    """Return the seconds for which the lost call of a key in doubt may still act."""
    return keys.call_left(claim)


def _verify(claim: EffectClaim, stop: Callable[[EffectKeys], Awaitable[None]]) -> Flow[object]:
    """Return what `verify` found. If it is interrupted, `stop` ends the lease."""
    try:
        return (yield VerifyStep(claim))
    except GeneratorExit:
        raise
    except BaseException:
        yield StoreStep(stop)
        raise


def _verified(found: object) -> str | None:
    return encode_result(None if found is True else found)


# Handing out ----------------------------------------------------------------------------------------------------


def hand_out(request: Request, record: EffectRecord, *, waited: bool) -> object:
    """
    Return the result of a record that is done.

    Raises:
        AlreadyDoneError: it was delivered, and the key is derived; or the result was not stored.
        FaultError: the call failed after it had its effect.

    """
    if record.failed is not None:
        raise FaultError.from_fault(msgspec.convert(record.failed, Fault))
    result = None if record.outcome is None else restore_result(record.outcome, request.returns)
    if record.derived and record.delivered and not waited and not request.replays:
        if request.again is not None and request.again in record.reasons:
            raise errors.again_done(request.name, record, result)
        raise errors.already_done(request.name, record, result)
    if record.outcome is None:
        raise errors.already_done(request.name, record, None)
    return result


def _deliver(request: Request, record: EffectRecord, waited: bool) -> Flow[object]:
    result = hand_out(request, record, waited=waited)
    if not record.delivered:
        try:
            yield StoreStep(lambda keys: keys.change(request.name, delivered=True))
        except StoreError:
            LOG.warning("the delivery of %s could not be recorded", request.name)
    return result


# Running --------------------------------------------------------------------------------------------------------


def _run(request: Request, claim: EffectClaim) -> Flow[object]:
    try:
        result = yield CallStep(claim, wire_key(request, claim.record))
    except GeneratorExit:
        raise  # the process ends: the lease expires, and the key is in doubt
    except BaseException as exc:  # noqa: BLE001 - every end of the call has to be recorded
        return (yield from _failed(request, claim, exc))
    yield from _complete(request, claim, encode_result(result))
    return result


def _complete(request: Request, claim: EffectClaim, outcome: str | None) -> Flow[None]:
    """Record the outcome and, with it, that the caller gets it."""
    ended = request.now()
    try:
        yield StoreStep(
            lambda keys: keys.complete(claim, outcome=outcome, ended=ended, delivered=True, previous=None)
        )
    except StoreError:
        LOG.exception("the outcome of %s could not be recorded; the effect will be in doubt", request.name)
    except GeneratorExit:
        raise
    except BaseException:
        # The caller was cancelled, so it does not get the outcome.
        yield StoreStep(lambda keys: _complete_undelivered(keys, claim, outcome, ended))
        raise


async def _complete_undelivered(
    keys: EffectKeys, claim: EffectClaim, outcome: str | None, ended: float
) -> None:
    await keys.complete(claim, outcome=outcome, ended=ended, delivered=False, previous=None)
    await keys.change(claim.name, delivered=False)


@rests_on(Proved.NOT_HAPPENED, Proof.STATUS, Proof.VERIFIED)
def _failed(request: Request, claim: EffectClaim, exc: BaseException) -> Flow[object]:
    """Record what the failure of a call means: raises, or returns the outcome that `verify` found."""
    executed = _executed(exc, direct=request.direct)
    try:
        if executed is Executed.NO:
            yield StoreStep(lambda keys: free(keys, claim))
            raise exc
        if executed is Executed.YES:
            failed = json_value(fault_of(exc)) if isinstance(exc, Exception) else None
            ended = request.now()
            yield StoreStep(
                lambda keys: keys.complete(claim, failed=failed, ended=ended, delivered=True, previous=None)
            )
            raise exc
        found = None
        if request.has_verify and isinstance(exc, Exception):
            found = yield from _verify(claim, lambda keys: keys.mark_in_doubt(claim))
        if found is None:
            yield StoreStep(lambda keys: keys.mark_in_doubt(claim))
            if isinstance(exc, Exception):
                raise errors.in_doubt(request.name, claim.record) from exc
            raise exc
        if found is False and is_unanswered(exc):
            # The service may still act on the request that it has not answered.
            left = yield StoreStep(lambda keys: _call_left(keys, claim))
            if left > 0:
                yield StoreStep(lambda keys: keys.mark_in_doubt(claim, answered=False))
                raise errors.may_still_act(request.name, left) from exc
        if found is False:
            yield StoreStep(lambda keys: free(keys, claim))
            raise FaultError.from_fault(replace(fault_of(exc), executed=Executed.NO)) from exc  # type: ignore[arg-type]
    except StoreError:
        LOG.exception("the end of %s could not be recorded; the effect will be in doubt", request.name)
        raise exc from None
    outcome = _verified(found)
    yield from _complete(request, claim, outcome)
    return found if outcome is None else restore_result(outcome, request.returns)


def _executed(exc: BaseException, *, direct: bool) -> Executed:
    """Return whether the call may have had its effect (M3, "Failures from inside a handler")."""
    if not isinstance(exc, Exception):
        return Executed.MAYBE
    fault = fault_of(exc)
    if not direct and (isinstance(exc, errors.OF_AN_EFFECT) or is_about_a_part(exc, fault)):
        return Executed.MAYBE
    return fault.executed or Executed.MAYBE
