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
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Literal, Protocol

import msgspec
from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.json_value import json_value
from amends.durable.keys import CALL_LIMIT
from amends.effects.arguments import NoCanonicalForm, canonical, digest
from amends.effects.durations import seconds
from amends.effects.outcomes import LARGEST, encode_result, restore_result
from amends.errors import InternalError
from amends.errors import TimeoutError as LateError
from amends.errors.base import FaultError
from amends.foreign.in_doubt import is_unanswered
from amends.logs import logger
from amends.proof import Claim, Proof, rests_on
from amends.recovery.classify import fault_of
from amends.recovery.effect_context import running_as
from amends.serving.effect_unknown import EffectUnknownError
from amends.serving.server_errors import is_about_a_part
from amends.stores.deadlines import Deadline, Deadlines

__all__ = [
    "DAY",
    "LONGEST_SIGNAL",
    "EffectStep",
    "ReceivedSignal",
    "ReplayMismatchError",
    "StepJournal",
    "StepRecord",
    "Steps",
    "current_steps",
    "enter_steps",
    "in_doubt",
    "in_step",
    "restored",
    "step_text",
    "within_steps",
]

_log = logger("amends.effects")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 20.0
_LONGEST_NAME = 200
DAY = 86_400.0
_SIGNAL = "amends.signal "
LONGEST_SIGNAL = 150
"""Characters of the name of a signal."""
_IN_STEP: ContextVar[str] = ContextVar("amends_step", default="")
_STEPS: ContextVar[Callable[[], Steps] | None] = ContextVar("amends_steps", default=None)


def current_steps() -> Steps | None:
    """Return the durable steps of the run of an agent that the current context belongs to; None outside of one."""
    steps = _STEPS.get()
    return None if steps is None else steps()


def in_step() -> bool:
    """Return whether the current context belongs to a step, inside of which there are no others."""
    return bool(_IN_STEP.get())


def enter_steps(steps: Callable[[], Steps]) -> None:
    """Make the steps that a function returns the current ones for the rest of the current context. It is called if they are used."""
    _STEPS.set(steps)
    if _IN_STEP.get():
        _IN_STEP.set("")


@contextmanager
def within_steps(steps: Callable[[], Steps]) -> Generator[None]:
    """Make the steps that a function returns the current ones for what is called inside. It is called if they are used."""
    token, inside = _STEPS.set(steps), _IN_STEP.set("")
    try:
        yield
    finally:
        _IN_STEP.reset(inside)
        _STEPS.reset(token)


def step_text(step: str) -> str:
    """
    Return an identity as it is shown to people and given to commands.

    >>> step_text('["charge","order-17"]'), step_text('["think",2]')
    ('charge/order-17', 'think#2')
    """
    name, key = msgspec.json.decode(step)
    return f"{name}/{key}" if isinstance(key, str) else f"{name}#{key}"


class ReplayMismatchError(InternalError):
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
    effect: str | None = None
    """The name in the ledger of an effect that is this step. The ledger's row decides what happened, and not this record."""
    due: float | None = None
    """Until when a step waits, by the wall clock."""
    author: str | None = None
    """Who answered whether the step happened."""


class ReceivedSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal that was sent to a run."""

    id: str
    name: str
    value: object = None
    author: str = ""
    """The principal that sent it."""
    at: float = 0.0


StepKind = Literal["begin", "end", "freed", "waiting"]


class StepJournal(Protocol):
    """Where the steps of one run are stored."""

    @property
    def id(self) -> str:
        """Identifies the run among all in the store; the same after a restart."""

    @property
    def deadlines(self) -> Deadlines:
        """Measure the time limits."""

    @property
    def restarted(self) -> bool:
        """Whether an earlier start of this run may have called something."""

    def find(self, step: str) -> tuple[StepKind, StepRecord] | None:
        """Return the newest entry of a step, of this start or an earlier one."""

    def ends(self) -> Iterable[StepRecord]:
        """Return the records of the steps that have ended."""

    async def write(self, kind: StepKind, record: StepRecord) -> None:
        """Store an entry; returns when it is stored. Raises what ends the agent if another process has the run."""

    def note(self, kind: StepKind, record: StepRecord) -> None:
        """Store an entry soon, of a step whose outcome is stored elsewhere. May be called from any thread."""

    async def doubt(self, record: StepRecord) -> BaseException:
        """Return what ends the agent, or lets it wait, because it is not known whether a step happened."""


class Steps:
    """The steps of one run of an agent."""

    def __init__(self, journal: StepJournal, *, largest: int = LARGEST) -> None:
        """
        Args:
            journal: where they are stored.
            largest: bytes of a result that is stored.

        """
        self._journal, self._largest = journal, largest
        self._counts: Counter[str] = Counter()
        self._running: set[str] = set()
        self._effects: Counter[str] = Counter()
        self._claimed: set[str] = set()
        """The signals that were received."""

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
        # What may be repeated needs no limit after which a lost call can be trusted to be over.
        limit = seconds("timeout", timeout) if timeout is not None else None if repeat else CALL_LIMIT
        if isinstance(retry, bool) or not isinstance(retry, int) or retry < 1:
            raise ValueError(f"retry is the number of tries, 1 or more, not {retry!r}")
        for option, given in (("function", function), ("verify", verify)):
            if given is not None and not callable(given):
                raise TypeError(f"{option} is a function, not {type(given).__name__}")
        self._check_outside(name)
        step = self.identity(name, key)
        try:
            called = digest(canonical(args))
        except NoCanonicalForm as error:
            raise TypeError(
                f"the arguments of step {name!r} cannot be compared after a restart: {error}"
            ) from None
        if step in self._running:
            raise RuntimeError(f"step {step_text(step)} is running already: give one of the two another key")
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
        limit: float | None,
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
            if kind == "freed" and record.author is not None:
                # Somebody answered that it did not happen, but the lost process may only be stopped.
                await self._until_over(record)
        for left in range(retry - 1, -1, -1):
            left_of = call = None
            if limit is not None:
                call = self._journal.deadlines.start(limit)
                left_of = partial(self._left, call, step)
                if not repeat:
                    await self._journal.write("begin", StepRecord(step, called, call=call))
            try:
                with running_as(f"{self._journal.id}/{step}", step, left_of):
                    result = await _called(function, args)
            except Exception as error:
                pause = await self._failed(
                    StepRecord(step, called, call=call), error, args, verify, repeat=repeat
                )
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
                f"Step {step_text(record.step)} was called with other arguments before the agent was restarted",
                details={"step": step_text(record.step), "before": record.called[:16], "now": called[:16]},
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
        raise await self._journal.doubt(record)

    async def _until_over(self, record: StepRecord) -> None:
        """Wait until the time limit of a lost call is over."""
        while record.call is not None:
            left = self._left(record.call, record.step)
            if left <= 0:
                return
            await asyncio.sleep(left + 0.01)

    @staticmethod
    def _check_outside(name: str) -> None:
        if _IN_STEP.get():
            raise RuntimeError(f"step {name!r} is called inside step {_IN_STEP.get()}: call it outside")

    async def _end(self, step: str, called: str, result: object, due: float | None = None) -> object:
        """Store the end of a step, and return its result as it reads back from JSON."""
        encoded = encode_result(result)
        if encoded is None or (self._largest < LARGEST and len(encoded.encode()) > self._largest):
            await self._journal.write("end", StepRecord(step, called, unstored=True))
            raise TypeError(
                f"the result of step {step_text(step)} cannot be stored: return JSON values of at most "
                f"{self._largest // 1024} KB, or the name of a file that has them"
            )
        record = StepRecord(step, called, result=encoded, due=due)
        await self._journal.write("end", record)
        return replayed(record)

    @rests_on(Claim.NOT_HAPPENED, Proof.STATUS, Proof.VERIFIED)
    async def _failed(
        self,
        began: StepRecord,
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
        step, called = began.step, began.called
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
            if found is False and is_unanswered(error):
                # The service may still act on the request that it has not answered.
                happened, result = await self._resolve(began, args, verify)
                found = (True if result is None else result) if happened else False
            if found is None:
                raise await self._journal.doubt(StepRecord(step, called)) from error
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
        due = await self._due("amends.sleep", self.identity("amends.sleep", key), length)
        # A wall clock that was set back waits no longer than the whole time.
        await asyncio.sleep(min(max(0.0, due - time.time()), length))

    async def _due(self, what: str, step: str, length: float) -> float:
        """Return until when a step waits, which its first start has stored."""
        self._check_outside(what)
        called = digest(canonical([length]))
        found = self._journal.find(step)
        if found is not None:
            self.check(found[1], called)
            if found[1].due is not None:
                return found[1].due
        due = time.time() + length
        await self._journal.write("waiting", StepRecord(step, called, due=due))
        return due

    async def signal(
        self,
        name: object,
        receive: Callable[[str, set[str], float], Awaitable[ReceivedSignal | None]],
        timeout: float | timedelta = DAY,  # noqa: ASYNC109 - of the wait, which is stored
        key: object = None,
    ) -> Any:
        """
        Return the value of the next signal with this name that no other call has received.

        Args:
            name: the signal's name.
            receive: waits for a signal, given its name, the ids that were received before, and the seconds that are left;
                returns None if there is none in that time.
            timeout: seconds to wait, counted from the first start of this wait.
            key: as in `step`.

        Raises:
            TimeoutError: there was none in time. It is raised again by every start.

        """
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_SIGNAL:
            raise ValueError(f"a signal has a name of 1 to {LONGEST_SIGNAL} characters, not {name!r:.60}")
        length = seconds("timeout", timeout, least=0.0)
        step = self.identity(_SIGNAL + name, key)
        if step in self._running:
            raise RuntimeError(f"step {step_text(step)} is running already: give one of the two another key")
        self._running.add(step)
        try:
            due = await self._due(f"signal {name}", step, length)
            found = self._journal.find(step)
            if found is not None and found[0] == "end":
                return _received(name, replayed(found[1]))
            called = digest(canonical([length]))
            left = min(max(0.0, due - time.time()), length)
            while True:
                received = await receive(name, self._received_before(), left)
                if received is None or received.id not in self._claimed:
                    break
            if received is not None:
                self._claimed.add(received.id)
            await self._end(step, called, None if received is None else msgspec.to_builtins(received), due)
            return _received(name, None if received is None else msgspec.to_builtins(received))
        finally:
            self._running.discard(step)

    def _received_before(self) -> set[str]:
        for record in self._journal.ends():
            if record.step.startswith(f'["{_SIGNAL}') and record.result is not None:
                value = msgspec.json.decode(record.result)
                if isinstance(value, dict):
                    self._claimed.add(str(value.get("id")))
        return self._claimed

    # -- effects of the ledger

    def effect(self, name: str, again: str | None, called: str) -> EffectStep:
        """
        Return the step of a call of an effect in the ledger. Inside of a step, nothing is stored about it.

        Args:
            name: the effect's name in the ledger.
            again: the reason for doing it once more.
            called: the digest of the arguments.

        """
        place = name if again is None else f"{name} again: {again}"
        self._effects[place] += 1
        count = self._effects[place]
        tool, _, _ = name.partition(":")
        step = msgspec.json.encode(
            [f"effect {tool}"[:_LONGEST_NAME], place if count == 1 else f"{place} #{count}"]
        ).decode()
        return EffectStep(self._journal, StepRecord(step, called, effect=name), count == 1, in_step())


class EffectStep:
    """A call of an effect in the ledger as a step: the ledger's row says what happened, and the journal refers to it."""

    __slots__ = ("_first", "_inside", "_journal", "_record")

    def __init__(self, journal: StepJournal, record: StepRecord, first: bool, inside: bool) -> None:
        self._journal, self._record, self._first, self._inside = journal, record, first, inside

    @property
    def ended(self) -> StepRecord | None:
        """The record of its end, if an earlier start has reached it: the ledger may have forgotten the effect since."""
        found = None if self._inside else self._journal.find(self._record.step)
        return found[1] if found is not None and found[0] == "end" else None

    @property
    def hands_out(self) -> bool:
        """Whether an outcome in the ledger may have been delivered to an earlier start, which has not recorded it."""
        return self._first and self._journal.restarted

    def begin(self) -> None:
        """Refer to the ledger's row."""
        if not self._inside:
            self._journal.note("begin", self._record)

    def end(self, result: object) -> None:
        """Store the outcome, for starts after the ledger has forgotten it."""
        self._end(replace(self._record, result=encode_result(result)))

    def fail(self, error: Exception) -> None:
        """Store the failure of a call that had its effect, or that it did not happen; one in doubt stays begun."""
        fault = fault_of(error)
        if fault.executed is Executed.YES:
            failed = json_value(fault)
            self._end(replace(self._record, failed=failed if isinstance(failed, dict) else {}))
        elif fault.executed is Executed.NO and not self._inside:
            self._journal.note("freed", self._record)

    def _end(self, record: StepRecord) -> None:
        if not self._inside:
            self._journal.note(
                "end",
                record
                if record.result is not None or record.failed is not None
                else replace(record, unstored=True),
            )


def _received(name: str, value: dict[str, Any] | None) -> Any:
    if value is None:
        raise LateError(
            f"There was no signal {name!r} in time", executed=Executed.NO, details={"signal": name}
        )
    return value.get("value")


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
            f"Step {step_text(record.step)} happened, but its result could not be stored",
            executed=Executed.YES,
        )
    return None if record.result is None else msgspec.json.decode(record.result)


def restored(record: StepRecord, kind: object) -> Any:
    """
    Return the result of an effect as the type that its function declares.

    Raises:
        FaultError: as `replayed`.

    """
    plain = replayed(record)
    return plain if record.result is None else restore_result(record.result, kind)


def in_doubt(step: str) -> EffectUnknownError:
    """Return the error for a step of which it is not known whether it happened."""
    return EffectUnknownError(
        f"It is not known whether step {step_text(step)} happened, so it is not repeated",
        suggestions=("Look up whether it happened where it would show",),
        details={"step": step_text(step), "in_doubt": True},
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
