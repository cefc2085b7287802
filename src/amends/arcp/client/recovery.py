"""S5's loop: submit with a key, wait, and again where the code is retryable, within a policy's bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from amends.arcp.client.session_faults import error_of, transient
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.errors.arcp import ResumeWindowExpiredError
from amends.recovery.drivers import arecover
from amends.recovery.history import Attempt
from amends.recovery.upstream import Upstream

if TYPE_CHECKING:
    from amends.arcp.client.client import Client

__all__ = ["submit_with_recovery"]


async def submit_with_recovery(
    client: Client,
    agent: str,
    input: Any = None,
    *,
    idempotency_key: str | None = None,
    policy: Policy | None = DEFAULT,
    upstream: Upstream | None = None,
    fallback: Any | Iterable[Any] | None = None,
    history: list[Attempt] | None = None,
    **job: Any,
) -> Any:
    """
    The result of a job, however often it has to be asked for.

    INTERNAL_ERROR, TIMEOUT and HEARTBEAT_LOST are tried again, and whatever else the runtime calls retryable; a
    session that could not be resumed is replaced, because the key makes the new submission the same job.

    Args:
        client: an open client.
        agent: as in `submit`.
        input: as in `submit`.
        idempotency_key: without one, a key is made for this call.
        policy: how often and how long.
        upstream: what is shared with other callers of the same runtime.
        fallback: another way, where repeating cannot help.
        history: a list that gets every attempt.
        job: further arguments of `submit`.

    Raises:
        FaultError: the last failure, with `.decision` and `.history`.

    """
    key = idempotency_key or f"amends-{uuid4()}"

    async def attempt(*_arguments: Any) -> Any:
        try:
            await client._renew()  # noqa: SLF001 - same family
            handle = await client.submit(agent, input, idempotency_key=key, **job)
            return await handle.done
        except ResumeWindowExpiredError as error:
            raise error_of(transient(error.fault)) from None

    return await arecover(
        attempt,
        policy=policy,
        upstream=upstream,
        operation=Operation(name=f"arcp {agent}", key=key),
        fallback=fallback,
        history=history,
    )
