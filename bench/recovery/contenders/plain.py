"""The two ends of the scale: no retry at all, and knowing the server's future."""

import asyncio

from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import LostError, Response


def _no_retry(process: Process) -> Perform:
    return Call.send


def _oracle(process: Process) -> Perform:
    """
    Sends when the server will have room, refreshes before the token dies, keys its writes.

    It cannot change the dice of a call, so it repeats at once after bad luck; it does not call at all when no call
    can succeed. Time to success is therefore the shortest possible given the server, success the highest.
    """
    service = process.service

    async def perform(call: Call) -> Response:
        key = f"op-{call.operation}" if call.keyed else None
        while True:
            at = service.opportunity(process.now(), call.operation)
            if at is None:
                raise LostError("no call can succeed")
            await asyncio.sleep(at - process.now())
            if process.token < (token := int(process.now() >= getattr(service, "death", float("inf")))):
                process.token = token
                service.refresh(process.now())
            try:
                response = await call.send(key)
            except LostError:
                continue
            if response.ok:
                return response

    return perform


NO_RETRY = Contender("no retry", "one call", _no_retry)
ORACLE = Contender("oracle", "knows when the server will answer; upper bound", _oracle)
