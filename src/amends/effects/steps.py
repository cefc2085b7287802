"""
Durable steps: what an agent has done is stored, so that it continues after its process died instead of beginning again.

    receipt = await ctx.step("charge", charge, order, key=order["id"], verify=find_charge)

A step is recognised by its name and its key, or by its count among the calls of that name, in any order. Before the call its
begin is stored, and after it its end with the result. When the agent is started again, a step with an end is not called: its result is
returned. A step with only a begin may have happened: `verify` decides, else the run ends in doubt. The digest of the
arguments is stored too, and a call with other arguments under the same identity is refused before anything is called.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import timedelta
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Literal, Protocol

import msgspec
from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.json_value import json_value
from amends.durable.deadlines import Deadline, Deadlines
from amends.durable.keys import CALL_LIMIT
from amends.effects.arguments import NoCanonicalForm, canonical, digest
from amends.effects.durations import seconds
from amends.effects.outcomes import LARGEST, encode_result
from amends.errors.base import FaultError
from amends.logs import logger
from amends.recovery.classify import fault_of
from amends.recovery.effect_context import running_as
from amends.serving.effect_unknown import EffectUnknownError
from amends.serving.server_errors import is_about_a_part

__all__ = ["ReplayMismatchError", "StepJournal", "StepRecord", "Steps"]

_log = logger("amends.effects")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 20.0
_LONGEST_NAME = 200
_IN_STEP: ContextVar[str] = ContextVar("amends_step", default="")


class ReplayMismatchError(FaultError):
    """
    The agent made another call than before it was restarted

    Nothing was called. A step is recognised by its name and key, or its count; change one of them if the call is another one.

        await ctx.step("mail", send, text, key=customer)    # the key says which step it is, whatever the text
    """

    code = "REPLAY_MISMATCH"
    recovery = "terminal"
    executed = "maybe"
    actor = "operator"
    status = 500
    user_message = "This work was interrupted and cannot be continued automatically."

    step: str = ""
    """The identity of the step."""


class StepRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored about a step: its begin, its end, or that it did not happen."""

    step: str
    called: str
    """The digest of the arguments."""
    result: str | None = None
    """The result as JSON text."""
    failed: dict[str, object] | None = None
    """The fault of a call that failed after it had its effect."""
    call: Deadline | None = None
    """The time limit of a call that began."""
    unstored: bool = False
    """Whether the result could not be stored."""


StepKind = Literal["begin", "end", "freed"]


class StepJournal(Protocol):
    """Where the steps of one run are stored."""

    @property
    def id(self) -> str:
        """Identifies the run among all in the store; the same after a restart."""

    @property
    def deadlines(self) -> Deadlines:
        """Measure the time limits."""

    def find(self, step: str) -> tuple[StepKind, StepRecord] | None:
        """Return the newest entry of a step, of this start or an earlier one."""

    async def write(self, kind: StepKind, record: StepRecord) -> None:
        """Store an entry; returns when it is stored. Raises CancelledError if another process has the run."""


class Steps:
    """The steps of one run of an agent."""

    def __init__(self, journal: StepJournal) -> None:
        self._journal = journal
        self._counts: Counter[str] = Counter()
        self._running: set[str] = set()

    def identity(self, name: object, key: object) -> str:
        """
        Return the identity of the next step with this name.

        Raises:
            TypeError, ValueError: the name or the key is no text.

        """
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise ValueError(f"a step has a name of 1 to {_LONGEST_NAME} characters, not {name!r:.60}")
        if key is not None and not isinstance(key, str | int):
            raise TypeError(f"the key of a step is text or a number, not {type(key).__name__}")
        if key is not None:
            return msgspec.json.encode([name, str(key)]).decode()
        self._counts[name] += 1
        return msgspec.json.encode([name, self._counts[name]]).decode()

    async def run(
        self,
        name: str,
        function: Callable[..., object],
        args: tuple[object, ...],
        *,
        key: object = None,
        repeat: bool = False,
        verify: Callable[..., object] | None = None,
        timeout: float | timedelta | None = None,  # noqa: ASYNC109 - it cancels nothing
        retry: object = 1,
    ) -> Any:
        """Implement `Context.step`."""
        limit = CALL_LIMIT if timeout is None else seconds("timeout", timeout)
        if isinstance(retry, bool) or not isinstance(retry, int) or retry < 1:
            raise ValueError(f"retry is the number of tries, 1 or more, not {retry!r}")
        for option, given in (("function", function), ("verify", verify)):
            if given is not None and not callable(given):
                raise TypeError(f"{option} is a function, not {type(given).__name__}")
        if _IN_STEP.get():
            raise RuntimeError(f"step {name!r} is called inside step {_IN_STEP.get()}: call it outside")
        step = self.identity(name, key)
        try:
            called = digest(canonical(args))
        except NoCanonicalForm as error:
            raise TypeError(
                f"the arguments of step {name!r} cannot be compared after a restart: {error}"
            ) from None
        if step in self._running:
            raise RuntimeError(f"step {step} is running already: give one of the two another key")
        self._running.add(step)
        token = _IN_STEP.set(step)
        try:
            return await self._run(step, called, function, args, repeat, verify, limit, retry)
        finally:
            _IN_STEP.reset(token)
            self._running.discard(step)

    async def _run(
        self,
        step: str,
        called: str,
        function: Callable[..., object],
        args: tuple[object, ...],
        repeat: bool,
        verify: Callable[..., object] | None,
        limit: float,
        retry: int,
    ) -> object:
        found = self._journal.find(step)
        if found is not None:
            kind, record = found
            self.check(record, called)
            if kind == "end":
                return replayed(record)
            if kind == "begin":
                happened, result = await self._resolve(record, args, verify)
                if happened:
                    return await self._end(step, called, result)
        for left in range(retry - 1, -1, -1):
            call = self._journal.deadlines.start(limit)
            if not repeat:
                await self._journal.write("begin", StepRecord(step, called, call=call))
            try:
                with running_as(f"{self._journal.id}/{step}", step, lambda call=call: self._left(call, step)):  # type: ignore[misc]
                    result = await _called(function, args)
            except Exception as error:
                pause = await self._failed(step, called, error, args, verify, repeat=repeat)
                if isinstance(pause, StepRecord):
                    return replayed(pause)
                if pause is None or not left:
                    raise
                await asyncio.sleep(min(max(pause, _FIRST_PAUSE * 2 ** (retry - 1 - left)), _LONGEST_PAUSE))
            else:
                return await self._end(step, called, result)
        raise AssertionError  # the last try returns or raises

    def _left(self, call: Deadline, step: str) -> float:
        return self._journal.deadlines.left(call, step)

    def check(self, record: StepRecord, called: str) -> None:
        """
        Check that a step is called as it was before.

        Raises:
            ReplayMismatchError: it is not.

        """
        if record.called != called:
            error = ReplayMismatchError(
                f"Step {record.step} was called with other arguments before the agent was restarted",
                details={"step": record.step, "before": record.called[:16], "now": called[:16]},
            )
            error.step = record.step
            raise error

    async def _resolve(
        self, record: StepRecord, args: tuple[object, ...], verify: Callable[..., object] | None
    ) -> tuple[bool, object]:
        """Return whether a step happened of which only the begin is stored, and its result."""
        while verify is not None:
            left = 0.0 if record.call is None else self._left(record.call, record.step)
            found = await _verified(verify, args)
            if found is None:
                break
            if found is not False:
                return True, None if found is True else found
            if left <= 0:
                return False, None
            # The process that was lost may only be stopped: it can act until its time limit is over.
            await asyncio.sleep(left + 0.01)
        raise _in_doubt(record.step)

    async def _end(self, step: str, called: str, result: object) -> object:
        """Store the end of a step, and return its result as it reads back from JSON."""
        encoded = encode_result(result)
        if encoded is None:
            await self._journal.write("end", StepRecord(step, called, unstored=True))
            raise TypeError(
                f"the result of step {step} cannot be stored: return JSON values of at most {LARGEST // 1024} KB"
            )
        record = StepRecord(step, called, result=encoded)
        await self._journal.write("end", record)
        return replayed(record)

    async def _failed(
        self,
        step: str,
        called: str,
        error: Exception,
        args: tuple[object, ...],
        verify: Callable[..., object] | None,
        *,
        repeat: bool,
    ) -> float | StepRecord | None:
        """
        Store what the failure of a call means.

        Returns:
            The pause after which it may be tried again; the end that `verify` found; None if it is not tried again.

        """
        fault = fault_of(error)
        executed = Executed.MAYBE if is_about_a_part(error, fault) else fault.executed or Executed.MAYBE
        if repeat:
            return float(fault.retry_after or 0.0) if fault.retryable else None
        if executed is Executed.YES:
            failed = json_value(fault)
            await self._journal.write(
                "end", StepRecord(step, called, failed=failed if isinstance(failed, dict) else {})
            )
            return None
        if executed is Executed.MAYBE:
            found = None if verify is None else await _verified(verify, args)
            if found is None:
                raise _in_doubt(step) from error
            if found is not False:
                await self._end(step, called, None if found is True else found)
                end = self._journal.find(step)
                assert end is not None
                return end[1]
        await self._journal.write("freed", StepRecord(step, called))
        if executed is Executed.MAYBE:
            raise FaultError.from_fault(replace(fault, executed=Executed.NO)) from error
        return float(fault.retry_after or 0.0) if fault.retryable else None

    # -- what is not the same in two starts

    async def now(self) -> float:
        """Return the time, in seconds since 1970; the same after a restart."""
        return float(await self.run("amends.now", time.time, (), repeat=True))

    async def random(self) -> float:
        """Return a random number from 0 to 1; the same after a restart."""
        return float(await self.run("amends.random", random.SystemRandom().random, (), repeat=True))

    async def uuid(self) -> str:
        """Return a random UUID; the same after a restart."""
        return str(await self.run("amends.uuid", lambda: str(uuid.uuid4()), (), repeat=True))

    async def sleep(self, duration: float | timedelta, key: object = None) -> None:
        """Wait until so many seconds after the first start of this wait."""
        length = seconds("duration", duration, least=0.0)
        due = await self.run("amends.sleep", lambda _: time.time() + length, (length,), key=key, repeat=True)
        # A wall clock that was set back waits no longer than the whole time.
        await asyncio.sleep(min(max(0.0, due - time.time()), length))


def replayed(record: StepRecord) -> Any:
    """
    Return the result of a step that has ended.

    Raises:
        FaultError: it failed after it had its effect, or its result was not stored.

    """
    if record.failed is not None:
        raise FaultError.from_fault(msgspec.convert(record.failed, Fault))
    if record.unstored:
        raise EffectUnknownError(
            f"Step {record.step} happened, but its result could not be stored", executed=Executed.YES
        )
    return None if record.result is None else msgspec.json.decode(record.result)


def _in_doubt(step: str) -> EffectUnknownError:
    return EffectUnknownError(
        f"It is not known whether step {step} happened, so it is not repeated",
        suggestions=("Look up whether it happened where it would show",),
        details={"step": step, "in_doubt": True},
    )


async def _called(function: Callable[..., object], args: tuple[object, ...]) -> object:
    found = function(*args)
    return await found if isawaitable(found) else found


async def _verified(verify: Callable[..., object], args: tuple[object, ...]) -> object:
    """Call a `verify` hook. A hook that fails is logged and has found out nothing."""
    try:
        async with asyncio.timeout(CALL_LIMIT):
            found: object = (
                verify(*args) if iscoroutinefunction(verify) else await asyncio.to_thread(verify, *args)
            )
            return await found if isinstance(found, Awaitable) else found
    except Exception:  # noqa: BLE001 - a hook of the application may raise anything
        _log.exception("the verify hook of a step failed; whether the step happened stays unknown")
        return None
