"""
Batches that fail in part (P10): the response keeps every success and describes every failure.

A server runs the items and answers with their outcomes:

    batch = await run(items, create)        # or run_sync(items, create)
    return JSONResponse(batch.body(), batch.status, batch.headers, media_type=batch.media_type)

The status is 200 if all items succeeded and 207 if some did. If none did it is the items' own status, with their longest
wait, and the batch is what each item is. If they failed with different ones it is 422 if each item can be corrected, else the
highest 5xx, and the whole can be sent again only if every item can, and none may have had its effect. A client reads the response item by item (`read`), or sends exactly those items again that may succeed later
(`resend`, `aresend`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.carriers.extraction import examine
from amends.carriers.objects import read_object
from amends.core.crosswalk import source_row
from amends.core.decision import State, decide
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.core.vocabularies.http import VOCABULARY
from amends.core.vocabulary import APP, EVERYDAY, row_for
from amends.core.wire import Unreadable
from amends.core.wire import read as read_json
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects.problem import MEDIA_TYPE
from amends.errors.base import FaultError
from amends.http.application_errors import fault_for, is_expected
from amends.http.current import current_request
from amends.http.responses import LOG, problem_document, retry_after, with_wait
from amends.recovery.clock import CLOCK

__all__ = ["Batch", "Item", "aresend", "read", "resend", "run", "run_sync"]


class Item(msgspec.Struct, frozen=True):
    """
    The outcome of one item: a value or a fault.

    >>> [item.value for item in run_sync(["a", "b"], str.upper).items if item.fault is None]
    ['A', 'B']
    """

    index: int
    value: Any = None
    fault: Fault | None = None


class Batch:
    """
    The outcomes of all items, in their order.

    `run`, `run_sync`, `read` and `resend` return it.

    >>> batch = Batch([Item(0, "order 1"), Item(1, fault=Fault(code="CONFLICT"))])
    >>> batch.status, [fault.code for fault in batch.failed]
    (207, ['CONFLICT'])
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(items)
        self._problem: dict[str, object] | None = None

    @property
    def failed(self) -> tuple[Fault, ...]:
        """The faults of the failed items."""
        return tuple(item.fault for item in self.items if item.fault is not None)

    @property
    def status(self) -> int:
        """The status of the response: 200, 207, or the one of `fault`."""
        failed = self.failed
        if not failed:
            return 200
        return 207 if len(failed) < len(self.items) else _status_of_all(failed)

    @property
    def media_type(self) -> str:
        """The content type of the response: JSON if all items succeeded, else that of a problem."""
        return MEDIA_TYPE if self.failed else "application/json"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response: `Retry-After` and `Cache-Control` if items failed."""
        if not self.failed:
            return {}
        wait = retry_after(self.body())
        return {"Cache-Control": "no-store", **({} if wait is None else {"Retry-After": wait})}

    def fault(self) -> Fault | None:
        """Return one fault for the batch, with the items' faults in `errors`; None if all items succeeded."""
        failed, status = self.failed, self.status
        if not failed:
            return None
        message = f"{len(self.items) - len(failed)} succeeded, {len(failed)} failed"
        if status == 207:
            row = VOCABULARY.rows["PARTIAL_FAILURE"]
            return Fault(
                code=row.code,
                vocabulary="http",
                status=status,
                message=message,
                recovery=Recovery.CORRECTABLE,
                suggestions=(row.suggestion,),
                errors=failed,
                executed=Executed.YES,
            )
        codes = {(each.vocabulary, each.code) for each in failed}
        same = len({_status(each) for each in failed}) == 1
        vocabulary, code = next(iter(codes)) if len(codes) == 1 and same else ("http", _code(failed, status))
        recovery, executed = _recovery_of_all(failed, same=same), _worst(failed)
        return Fault(
            code=code,
            vocabulary=vocabulary,
            status=status,
            message=message,
            recovery=recovery,
            retry_after=_longest_wait(failed) if recovery is Recovery.TRANSIENT else None,
            suggestions=() if len(codes) == 1 else (_EACH,),
            errors=failed,
            executed=executed,
        )

    def body(self) -> dict[str, Any]:
        """
        Return the response: `results` [{index, value}], inside a problem document if any item failed.

        Called inside a handler of an application with one of the bindings, the document has the type, the page and the
        trace id of an error of that application, and is logged like one.
        """
        results = [{"index": item.index, "value": item.value} for item in self.items if item.fault is None]
        if self._problem is None:
            fault = self.fault()
            if fault is None:
                return {"results": results}
            self._problem = problem_document(fault, *current_request())
        return {**self._problem, "results": results} if results else dict(self._problem)


def _longest_wait(failed: Iterable[Fault]) -> float | None:
    """Return the longest wait of the items, with those that are written for items without one."""
    return max((with_wait(each).retry_after or 0.0 for each in failed), default=None)


_EFFECTS = (Executed.NO, Executed.MAYBE, Executed.YES)
_EACH = "Look at each failed item, and correct it or send it again as it says"


def _worst(failed: Sequence[Fault]) -> Executed:
    return max((each.executed for each in failed), key=_EFFECTS.index)


def _recovery_of_all(failed: Sequence[Fault], *, same: bool) -> Recovery:
    """
    Return the recovery of a batch without a success.

    Args:
        failed: the faults of all items.
        same: all items failed with the same status: then the batch is what each item is. Otherwise it is sent again only if
            that is right for every item, and none may have had its effect.

    """
    kinds = {each.recovery for each in failed}
    if Recovery.TERMINAL in kinds:
        return Recovery.TERMINAL
    if same and kinds <= {Recovery.TRANSIENT, Recovery.UNCERTAIN}:
        return Recovery.UNCERTAIN if Recovery.UNCERTAIN in kinds else Recovery.TRANSIENT
    again = kinds == {Recovery.TRANSIENT} and _worst(failed) is Executed.NO
    return Recovery.TRANSIENT if again else Recovery.CORRECTABLE


def _status_of_all(failed: Sequence[Fault]) -> int:
    """
    Return the status of a batch without a success: the items' own, 422 if all can be corrected, else the highest 5xx.

    Without a 5xx it is that of an item that decides: terminal if any is, else correctable.
    """
    statuses = {_status(each) for each in failed}
    if len(statuses) == 1:
        return statuses.pop()
    recovery = _recovery_of_all(failed, same=False)
    if all(each.recovery is Recovery.CORRECTABLE for each in failed):
        return 422
    if max(statuses) >= 500:
        return max(statuses)
    return max({_status(each) for each in failed if each.recovery is recovery} or statuses)


def _code(failed: Sequence[Fault], status: int) -> str:
    """Return the code of the status, or the one that all items with this status have."""
    codes = {each.code for each in failed if _status(each) == status and each.vocabulary in _OWN}
    return codes.pop() if len(codes) == 1 else VOCABULARY.status_row(status).code


_OWN = frozenset({"http", EVERYDAY, APP})
"""Vocabularies whose codes a problem document of ours has."""


def _status(fault: Fault) -> int:
    row = source_row(fault)
    return fault.status or row.status or row_for(EVERYDAY, row.everyday).status or 500


def _failed_item(index: int, exc: Exception) -> Item:
    settings = current_request()[1]
    fault = fault_for(exc, settings=settings)
    if not is_expected(exc, settings):
        LOG.error("item %d of a batch failed", index, exc_info=exc)
    return Item(
        index,
        None,
        replace(fault, instance=f"batch-item-{index}", message=f"Item {index}: {fault.message}"),
    )


@explains_wrong_calls
async def run(items: Sequence[object], work: Callable[[Any], object], *, together: int = 1) -> Batch:
    """
    Call `work` with each item and return the outcomes.

        found = await run(await request.json(), create)
        return JSONResponse(found.body(), found.status, found.headers, media_type=found.media_type)

    Args:
        items: the items of the request.
        work: a plain or async function. An exception is the item's failure; only a FaultError's own text is sent.
        together: how many items run at the same time.

    """
    slots = asyncio.Semaphore(together)

    async def one(index: int, item: object) -> Item:
        async with slots:
            try:
                value = work(item)
                return Item(index, await value if isawaitable(value) else value)
            except Exception as exc:  # noqa: BLE001 - a failed item must not stop the others
                return _failed_item(index, exc)

    return Batch(await asyncio.gather(*(one(index, item) for index, item in enumerate(items))))


@explains_wrong_calls
def run_sync(items: Sequence[object], work: Callable[[Any], object]) -> Batch:
    """
    Same as `run`, but one item after the other on this thread.

    >>> batch = run_sync(["book", "pen"], lambda name: {"ordered": name})
    >>> batch.status, batch.items[1].value
    (200, {'ordered': 'pen'})
    """
    outcomes = []
    for index, item in enumerate(items):
        try:
            outcomes.append(Item(index, work(item)))
        except Exception as exc:  # noqa: BLE001 - a failed item must not stop the others
            outcomes.append(_failed_item(index, exc))
    return Batch(outcomes)


@explains_wrong_calls
def read(response: object, count: int | None = None) -> Batch:
    """
    Return the outcome of each item from a response.

    >>> batch = read({"status": 200, "headers": {}, "body": '{"results": ["order 1", "order 2"]}'})
    >>> [item.value for item in batch.items]
    ['order 1', 'order 2']

    Args:
        response: a response of one of the supported clients, {"status", "headers", "body"}, or the FaultError that a
            transport raised.
        count: how many items were sent. An item that the response does not mention gets the fault of the whole batch,
            or INTERNAL_ERROR if there is none.

    """
    if isinstance(response, FaultError):
        whole: Fault | None = response.fault
        body: object = {}
    else:
        seen = response if isinstance(response, dict) else read_object(response)[1]
        whole = examine(seen, "http")[1].fault
        body = _parse_body((seen or {}).get("body"))
    results = body.get("results") if isinstance(body, dict) else body
    values = results if isinstance(results, list) else []
    faults = () if whole is None else whole.errors
    placed = {index: fault for fault in faults if (index := _index_of(fault.instance)) is not None}
    unplaced = [fault for fault in faults if _index_of(fault.instance) is None]
    found = _successes(values, placed, unplaced, count)
    found |= {index: Item(index, None, fault) for index, fault in placed.items()}
    total = len(found) + len(unplaced) if count is None else count
    free = [index for index in range(total) if index not in found]
    partial = whole is not None and whole.status == _PARTIAL
    if len(free) == len(unplaced) or not (results or partial):
        # Errors that do not say which item they are about belong to the items without an outcome, in their order.
        found |= {index: Item(index, None, fault) for index, fault in zip(free, unplaced, strict=False)}
    elif partial and not isinstance(results, list) and _names_every_failure(body, placed, total):
        # The response has no list of the others: they succeeded.
        found |= {index: Item(index) for index in free}
    for index in range(count or 0):
        if index not in found:
            found[index] = Item(index, None, whole or Fault(code="INTERNAL_ERROR", vocabulary="http"))
    return Batch(found[index] for index in sorted(found) if count is None or index < count)


_PARTIAL = 207


def _successes(
    values: list[Any], placed: Mapping[int, Fault], unplaced: Sequence[Fault], count: int | None
) -> dict[int, Item]:
    """Return the items that succeeded: by their index, or in the order of the items that did not fail."""
    own = [_is_indexed(each) for each in values]
    total = len(values) + len(placed) if count is None else count
    free = [index for index in range(total) if index not in placed]
    if placed and not unplaced and not any(own) and len(free) == len(values):
        # A plain list of the successes: `results.push(…)` for each item that did not fail.
        return {index: Item(index, value) for index, value in zip(free, values, strict=True)}
    found = {}
    for place, (each, indexed) in enumerate(zip(values, own, strict=True)):
        index = each.get("index") if indexed else place
        if isinstance(index, int) and index >= 0:
            found[index] = Item(index, each["value"] if indexed else each)
    return found


def _names_every_failure(body: object, placed: Mapping[int, Fault], total: int) -> bool:
    """Return whether each error of a response could be read, and names an item of its own."""
    errors = body.get("errors") if isinstance(body, dict) else None
    return isinstance(errors, list) and len(errors) == len(placed) > 0 and max(placed) < total


def _is_indexed(value: object) -> bool:
    return isinstance(value, dict) and "value" in value


def _parse_body(raw: object) -> object:
    if isinstance(raw, str | bytes | bytearray):
        try:
            return read_json(raw)
        except Unreadable:
            return {}
    return raw


def _index_of(instance: str | None) -> int | None:
    """Return the N of `batch-item-N`, or None."""
    number = (instance or "").removeprefix("batch-item-")
    return int(number) if number != instance and number.isdecimal() and len(number) < 9 else None


@explains_wrong_calls
def resend(
    items: Sequence[object],
    send: Callable[[list[Any]], object],
    *,
    policy: Policy = DEFAULT,
    operation: Operation | None = None,
) -> Batch:
    """
    Send a batch, then send again those items that may succeed later, within the policy's bounds.

    >>> from amends.testing import FakeClock, Script
    >>> response = {"status": 200, "headers": {}, "body": '{"results": ["order 1"]}'}
    >>> with FakeClock() as clock:  # without it, this waits for two seconds
    ...     batch = resend(["book"], Script(FaultError(code="RATE_LIMITED", retry_after=2), response))
    >>> batch.items[0].value, clock.waits
    ('order 1', [2.0])

    Args:
        items: the items to send.
        send: sends a list of items and returns the response, or raises a FaultError if the whole batch failed.
        policy: the bounds, applied to each item.
        operation: whether an item that may have had its effect may be repeated; by default it may not.

    """
    if not items:
        return Batch(())
    rounds = _rounds(items, policy, operation or Operation())
    batch, _ = next(rounds)
    while True:
        try:
            response = send(batch)
        except FaultError as error:
            response = error
        try:
            batch, delay = rounds.send(response)
        except StopIteration as done:
            result: Batch = done.value
            return result
        CLOCK.sleep(delay)


@explains_wrong_calls
async def aresend(
    items: Sequence[object],
    send: Callable[[list[Any]], Awaitable[object]],
    *,
    policy: Policy = DEFAULT,
    operation: Operation | None = None,
) -> Batch:
    """
    Same as `resend`, but `send` is awaited.

    >>> async def send(orders: list[str]) -> object:  # for example with `httpx.AsyncClient.post`
    ...     return {"status": 200, "headers": {}, "body": '{"results": ["order 1"]}'}
    >>> asyncio.run(aresend(["book"], send)).items[0].value
    'order 1'
    """
    if not items:
        return Batch(())
    rounds = _rounds(items, policy, operation or Operation())
    batch, _ = next(rounds)
    while True:
        try:
            response = await send(batch)
        except FaultError as error:
            response = error
        try:
            batch, delay = rounds.send(response)
        except StopIteration as done:
            result: Batch = done.value
            return result
        await CLOCK.asleep(delay)


def _rounds(
    items: Sequence[object], policy: Policy, operation: Operation
) -> Generator[tuple[list[object], float], object, Batch]:
    """Yield (items to send, seconds to wait before), receive the response, and return the Batch at the end."""
    outcomes = {index: Item(index) for index in range(len(items))}
    waiting = list(outcomes)
    state, delay = State(attempt=0), 0.0
    while waiting:
        response = yield [items[index] for index in waiting], delay
        state = replace(state, attempt=state.attempt + 1, waited=state.waited + delay)
        again, delays = [], [0.0]
        for index, item in zip(waiting, read(response, len(waiting)).items, strict=True):
            outcomes[index] = Item(index, item.value, item.fault)
            if item.fault is not None:
                decision = decide(item.fault, policy=policy, state=state, operation=operation)
                if decision.action is Action.RETRY:
                    again.append(index)
                    delays.append(decision.delay or 0.0)
        waiting, delay = again, max(delays)
    return Batch(outcomes.values())
