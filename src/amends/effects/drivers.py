"""Performing the steps of a call: on the event loop of the caller, or in the thread of a plain function."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, TypeVar

from amends.durable.batch import in_background
from amends.effects.flow import LOG, CallStep, EffectClaim, EffectKeys, Flow, StoreStep, VerifyStep, WaitStep
from amends.recovery.effect_context import running_as
from amends.serving.time_limit import call_within
from amends.stores.errors import StoreError

if TYPE_CHECKING:
    from amends.effects.handles import Handles
    from amends.stores import Clock

__all__ = ["Waiters", "drive", "drive_plain"]

T = TypeVar("T")


class Waiters:
    """The callers in this process that wait for a key. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Callable[[], object]]] = {}

    def add(self, name: str, wake: Callable[[], object]) -> None:
        """Call `wake` when the work under the key ends."""
        with self._lock:
            self._waiting.setdefault(name, []).append(wake)

    def discard(self, name: str, wake: Callable[[], object]) -> None:
        """Do not call `wake` any more."""
        with self._lock:
            waiting = self._waiting.get(name, [])
            if wake in waiting:
                waiting.remove(wake)
            if not waiting:
                self._waiting.pop(name, None)

    def wake(self, name: str) -> None:
        """Wake the callers that wait for the key."""
        if self._waiting:
            with self._lock:
                waiting = self._waiting.pop(name, [])
            for each in waiting:
                each()


# Coroutines -----------------------------------------------------------------------------------------------------


async def drive(
    flow: Flow[T],
    keys: EffectKeys,
    waiters: Waiters,
    call: Callable[[], Awaitable[object]],
    verify: Callable[[], object] | None,
) -> T:
    """Perform the steps on the running event loop, and return the result of the flow."""
    value: object = None
    name = ""
    try:
        step = next(flow)
        while True:
            try:
                if isinstance(step, StoreStep):
                    value = await (step.work(keys) if step.withdraw is None else _claim(step, keys))
                elif isinstance(step, CallStep):
                    name = step.claim.name
                    with (
                        _Renewal(keys, step.claim),
                        running_as(step.key, name, call_left(keys.store.clock, step.claim)),
                    ):
                        value = await call()
                elif isinstance(step, VerifyStep):
                    name = step.claim.name
                    with _Renewal(keys, step.claim):
                        value = await run_verify(verify, keys.lease)
                else:
                    value = await _wait(waiters, step)
            except GeneratorExit:
                raise
            except BaseException as exc:  # noqa: BLE001 - the flow decides
                step = flow.throw(exc)
            else:
                step = flow.send(value)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        if name:
            waiters.wake(name)


async def _claim(step: StoreStep, keys: EffectKeys) -> object:
    """Perform a step that is withdrawn if the caller is cancelled, as soon as the store has completed it."""
    claiming = in_background(step.work(keys))
    try:
        return await asyncio.shield(claiming)
    except asyncio.CancelledError:
        in_background(_withdraw(step, keys, claiming))
        raise


async def _withdraw(step: StoreStep, keys: EffectKeys, claiming: asyncio.Future[object]) -> None:
    await asyncio.wait({claiming})
    assert step.withdraw is not None
    await step.withdraw(keys)


def call_left(clock: Clock, claim: EffectClaim) -> Callable[[], float] | None:
    """Return what tells the seconds left of the time limit of a call in this process."""
    call = claim.record.call
    return None if call is None else lambda: call.end - clock.steady()


class _Renewal:
    """Renews a lease every third of its length, without a task while there is nothing to do."""

    __slots__ = ("_claim", "_keys", "_loop", "_task", "_timer")

    def __init__(self, keys: EffectKeys, claim: EffectClaim) -> None:
        self._keys, self._claim = keys, claim
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._timer = self._loop.call_later(self._keys.lease / 3, self._begin)

    def _begin(self) -> None:
        self._task = self._loop.create_task(_renew(self._keys, self._claim))

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()


async def _renew(keys: EffectKeys, claim: EffectClaim) -> None:
    while True:
        try:
            await keys.renew(claim)
        except StoreError:
            return
        await asyncio.sleep(keys.lease / 3)


async def _wait(waiters: Waiters, step: WaitStep) -> float:
    loop = asyncio.get_running_loop()
    begin, woken = loop.time(), asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(woken.set)

    waiters.add(step.name, wake)
    try:
        async with asyncio.timeout(step.seconds):
            await woken.wait()
    except TimeoutError:
        pass
    finally:
        waiters.discard(step.name, wake)
    return loop.time() - begin


async def run_verify(verify: Callable[[], object] | None, seconds: float) -> object:
    """Call a `verify` hook. A hook that fails or takes too long is logged and has found out nothing."""
    if verify is None:
        return None
    try:
        async with asyncio.timeout(seconds):
            found = verify() if iscoroutinefunction(verify) else await asyncio.to_thread(verify)
            return await found if isawaitable(found) else found
    except Exception:  # noqa: BLE001 - a hook of the application may raise anything
        LOG.exception("the verify hook failed; the outcome of the effect stays unknown")
        return None


# Plain functions ------------------------------------------------------------------------------------------------


def drive_plain(
    flow: Flow[T],
    handles: Handles,
    waiters: Waiters,
    call: Callable[[], object],
    verify: Callable[[], object] | None,
) -> T:
    """Perform the steps in the calling thread, and return the result of the flow."""
    value: object = None
    name = ""
    try:
        step = next(flow)
        while True:
            try:
                if isinstance(step, StoreStep):
                    value = _run_store_step(step, handles)
                elif isinstance(step, CallStep):
                    name = step.claim.name
                    left = call_left(handles.clock, step.claim)
                    with handles.renewing(step.claim), running_as(step.key, name, left):
                        value = call()
                elif isinstance(step, VerifyStep):
                    name = step.claim.name
                    with handles.renewing(step.claim):
                        value = _verify_plain(handles, verify)
                else:
                    value = _wait_plain(waiters, step)
            except BaseException as exc:  # noqa: BLE001 - the flow decides
                step = flow.throw(exc)
            else:
                step = flow.send(value)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        if name:
            waiters.wake(name)


def _run_store_step(step: StoreStep, handles: Handles) -> object:
    try:
        return handles.run(step.work)
    except Exception:
        raise
    except BaseException:
        if step.withdraw is not None:
            handles.run(step.withdraw)
        raise


def _wait_plain(waiters: Waiters, step: WaitStep) -> float:
    begin, woken = time.monotonic(), threading.Event()
    waiters.add(step.name, woken.set)
    try:
        woken.wait(step.seconds)
    finally:
        waiters.discard(step.name, woken.set)
    return time.monotonic() - begin


def _verify_plain(handles: Handles, verify: Callable[[], object] | None) -> object:
    """Call a `verify` hook for at most the time of a lease; the coroutine of an async one runs on the ledger's loop."""
    if verify is None:
        return None
    try:
        found = call_within(handles.lease, verify)
        if isawaitable(found):
            running: Future[object] = handles.start(_await(found))
            return running.result(handles.lease)
    except Exception:  # noqa: BLE001 - a hook of the application may raise anything
        LOG.exception("the verify hook failed; the outcome of the effect stays unknown")
        return None
    return found


async def _await(found: Awaitable[object]) -> object:
    return await found
