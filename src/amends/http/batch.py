"""
Batches that fail in part (P10): nothing that succeeded is lost, and every failed item says what to do about it.

A server runs the items and answers with what came of them:

    found = await run(items, create)        # or run_sync(items, create)
    return JSONResponse(found.body(), found.status, media_type=found.media_type)

200 when all succeeded, 207 when some did, 422 when none did. A client reads the answer item by item (`read`), or has
exactly those items sent again that may succeed later (`resend`, `aresend`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from inspect import isawaitable
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.carriers.extraction import examine
from amends.carriers.objects import read_object
from amends.core.decision import State, decide
from amends.core.enums import Action, Recovery
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.vocabularies.http import VOCABULARY
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.dialects.problem import MEDIA_TYPE, encode
from amends.errors.base import FaultError
from amends.http.application_errors import fault_for
from amends.http.responses import LOG
from amends.recovery.clock import CLOCK

__all__ = ["Batch", "Item", "aresend", "read", "resend", "run", "run_sync"]


class Item(msgspec.Struct, frozen=True):
    """What came of one item: a value, or a fault."""

    index: int
    value: Any = None
    fault: Fault | None = None


class Batch:
    """What came of all items, in their order."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)

    @property
    def failed(self) -> tuple[Fault, ...]:
        """The faults of the items that failed."""
        return tuple(item.fault for item in self.items if item.fault is not None)

    @property
    def status(self) -> int:
        """200, 207 or 422."""
        if not self.failed:
            return 200
        return 422 if len(self.failed) == len(self.items) else 207

    @property
    def media_type(self) -> str:
        """That of a problem, unless there is none."""
        return MEDIA_TYPE if self.failed else "application/json"

    def fault(self) -> Fault | None:
        """The whole as one fault, its parts in `errors`; None when all succeeded."""
        failed = self.failed
        if not failed:
            return None
        code = "PARTIAL_FAILURE" if self.status == 207 else "VALIDATION_ERROR"
        kinds = {each.recovery for each in failed}
        # M1: transient only together, terminal if any is.
        recovery = Recovery.CORRECTABLE
        if kinds == {Recovery.TRANSIENT}:
            recovery = Recovery.TRANSIENT
        elif Recovery.TERMINAL in kinds:
            recovery = Recovery.TERMINAL
        return Fault(
            code=code,
            vocabulary="http",
            status=self.status,
            message=f"{len(self.items) - len(failed)} succeeded, {len(failed)} failed",
            recovery=Recovery.CORRECTABLE if self.status == 207 else recovery,
            suggestions=(VOCABULARY.rows["PARTIAL_FAILURE"].suggestion,) if self.status == 207 else (),
            errors=failed,
        )

    def body(self) -> dict[str, Any]:
        """The answer: `results` [{index, value}] and, where something failed, a problem around them."""
        results = [{"index": item.index, "value": item.value} for item in self.items if item.fault is None]
        fault = self.fault()
        if fault is None:
            return {"results": results}
        problem = encode(fault)
        return {**problem, "results": results} if results else problem


def _failed(index: int, exc: Exception) -> Item:
    fault = fault_for(exc)
    if not isinstance(exc, FaultError):
        LOG.error("item %d of a batch failed", index, exc_info=exc)
    return Item(
        index,
        None,
        replace(fault, instance=f"batch-item-{index}", message=f"Item {index}: {fault.message}"),
    )


async def run(items: Sequence[Any], work: Callable[[Any], Any], *, together: int = 1) -> Batch:
    """
    Do `work` with each item, and keep what came of it.

    Args:
        items: what was sent.
        work: plain or async; what it raises is that item's failure, in our words where it is no FaultError.
        together: how many at once.

    """
    slots = asyncio.Semaphore(together)

    async def one(index: int, item: Any) -> Item:
        async with slots:
            try:
                value = work(item)
                return Item(index, await value if isawaitable(value) else value)
            except Exception as exc:  # noqa: BLE001 - one item's failure is no other's
                return _failed(index, exc)

    return Batch(await asyncio.gather(*(one(index, item) for index, item in enumerate(items))))


def run_sync(items: Sequence[Any], work: Callable[[Any], Any]) -> Batch:
    """The same, one after the other on this thread."""
    found = []
    for index, item in enumerate(items):
        try:
            found.append(Item(index, work(item)))
        except Exception as exc:  # noqa: BLE001 - one item's failure is no other's
            found.append(_failed(index, exc))
    return Batch(found)


def read(response: Any, count: int | None = None) -> Batch:
    """
    What a response says about each item.

    Args:
        response: an object of the usual clients, {"status", "headers", "body"}, or the FaultError a transport raised.
        count: how many items were sent: one about which nothing is said failed like the whole, or for unknown reasons.

    """
    if isinstance(response, FaultError):
        whole: Fault | None = response.fault
        body: Any = {}
    else:
        seen = response if isinstance(response, dict) else read_object(response)[1]
        whole = examine(seen, "http")[1].fault
        body = _body((seen or {}).get("body"))
    found: dict[int, Item] = {}
    results = body.get("results") if isinstance(body, dict) else body
    for place, each in enumerate(results if isinstance(results, list) else ()):
        index = each.get("index") if isinstance(each, dict) and "value" in each else place
        if isinstance(index, int) and index >= 0:
            found[index] = Item(index, each["value"] if isinstance(each, dict) and "value" in each else each)
    for place, fault in enumerate(() if whole is None else whole.errors):
        index = _place(fault.instance)
        found[place if index is None else index] = Item(place if index is None else index, None, fault)
    for index in range(count or 0):
        if index not in found:
            found[index] = Item(index, None, whole or Fault(code="INTERNAL_ERROR", vocabulary="http"))
    return Batch(found[index] for index in sorted(found) if count is None or index < count)


def _body(raw: Any) -> Any:
    if isinstance(raw, str | bytes | bytearray):
        try:
            return read_json(raw)
        except Unreadable:
            return {}
    return raw


def _place(instance: str | None) -> int | None:
    """The N of `batch-item-N`."""
    number = (instance or "").removeprefix("batch-item-")
    return int(number) if number != instance and number.isdecimal() and len(number) < 9 else None


def resend(
    items: Sequence[Any],
    send: Callable[[list[Any]], Any],
    *,
    policy: Policy = DEFAULT,
    operation: Operation | None = None,
) -> Batch:
    """
    Send a batch, then again exactly those items that may succeed later, within the policy's bounds.

    Args:
        items: what to send.
        send: sends a list of items and returns the response, or raises the FaultError of a batch that failed whole.
        policy: how far to go, item by item.
        operation: whether repeating an item is safe that may have had its effect; nothing is assumed.

    """
    if not items:
        return Batch(())
    steps = _rounds(items, policy, operation or Operation())
    some = next(steps)
    while True:
        try:
            answer = send(some[0])
        except FaultError as error:
            answer = error
        try:
            some = steps.send(answer)
        except StopIteration as done:
            found: Batch = done.value
            return found
        CLOCK.sleep(some[1])


async def aresend(
    items: Sequence[Any],
    send: Callable[[list[Any]], Awaitable[Any]],
    *,
    policy: Policy = DEFAULT,
    operation: Operation | None = None,
) -> Batch:
    """The same, awaited."""
    if not items:
        return Batch(())
    steps = _rounds(items, policy, operation or Operation())
    some = next(steps)
    while True:
        try:
            answer = await send(some[0])
        except FaultError as error:
            answer = error
        try:
            some = steps.send(answer)
        except StopIteration as done:
            found: Batch = done.value
            return found
        await CLOCK.asleep(some[1])


def _rounds(
    items: Sequence[Any], policy: Policy, operation: Operation
) -> Generator[tuple[list[Any], float], Any, Batch]:
    """Yields (items to send, wait before that) and is sent answers; returns the Batch."""
    outcome = {index: Item(index) for index in range(len(items))}
    waiting = list(outcome)
    state, delay = State(attempt=0), 0.0
    while waiting:
        answer = yield [items[index] for index in waiting], delay
        state = replace(state, attempt=state.attempt + 1, waited=state.waited + delay)
        again, delays = [], [0.0]
        for index, item in zip(waiting, read(answer, len(waiting)).items, strict=True):
            outcome[index] = Item(index, item.value, item.fault)
            if item.fault is not None:
                decision = decide(item.fault, policy=policy, state=state, operation=operation)
                if decision.action is Action.RETRY:
                    again.append(index)
                    delays.append(decision.delay or 0.0)
        waiting, delay = again, max(delays)
    return Batch(outcome.values())
