"""The two bounds of the comparison: no retry, and an oracle that knows the server's future."""

import asyncio

from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import LostError, Response


def _no_retry(process: Process) -> Perform:
    return Call.send


def _oracle(process: Process) -> Perform:
    """
    Send when the server has room, refresh before the token expires, and send keys with writes.

    The oracle cannot change the random outcome of a call, so it repeats at once after a failure. It makes no call if none
    can succeed. So its time to success is the shortest possible, and its success the highest.
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
