"""Checks that reject requests before they are dispatched (A3)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from amends.carriers import jsonrpc
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.serving.reporting import report
from amends.serving.server_errors import classify_safely

__all__ = ["Rejected", "number_for", "rejection_for"]

Rejected = Fault | FaultError | None
"""What a check returns: the reason to reject the request, or None to let it pass. A check may also raise the reason."""


async def rejection_for(
    check: Callable[[Any], Rejected | Awaitable[Rejected]],
    request: object,
    *,
    log: logging.Logger,
    traceparent: str | None = None,
) -> Fault | None:
    """
    Run a check, and return the fault to reject the request with, or None to let it pass.

    An exception other than a FaultError rejects the request too, because the check has not approved it. The fault is in
    the adcp vocabulary, and its `executed` is `no`.
    """
    try:
        reason = check(request)
        if isinstance(reason, Awaitable):
            reason = await reason
    except Exception as exc:  # noqa: BLE001 - whatever the check raises, the request does not pass
        cause: BaseException = exc
    else:
        if reason is None:
            return None
        cause = FaultError.from_fault(reason) if isinstance(reason, Fault) else reason
    fault = report(classify_safely(cause, log=log), log=log, what="request rejected", traceparent=traceparent)
    return replace(fault, executed=Executed.NO)


def number_for(code: str, *, protocol: str | None = None, collapse: bool = False) -> int:
    """
    Return the JSON-RPC error number of a rejection; codes without a number of their own have the collapsed one.

    Args:
        code: the AdCP code.
        protocol: the negotiated MCP version; 2026-07-28 moved the numbers.
        collapse: use one number for all codes.

    """
    if code not in jsonrpc.RESERVED:
        return jsonrpc.collapsed(protocol)
    return jsonrpc.number(code, protocol=protocol, collapse=collapse)
