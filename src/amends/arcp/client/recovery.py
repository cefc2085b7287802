"""Submit with a key, wait, and submit again if the error is retryable, within the limits of a policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from amends.arcp.client.session_faults import as_transient, error_of
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.errors.arcp import ResumeWindowExpiredError
from amends.recovery.drivers import arecover
from amends.recovery.history import Attempt
from amends.recovery.origins import PER_ORIGIN, PerOrigin
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
    upstream: Upstream | PerOrigin | None = PER_ORIGIN,
    fallback: Any | Iterable[Any] | None = None,
    history: list[Attempt] | None = None,
    **job: Any,
) -> Any:
    """
    Submit a job and return its result, with as many attempts as the policy allows.

    INTERNAL_ERROR, TIMEOUT, HEARTBEAT_LOST and every other error that the runtime marks as retryable are tried again. A new
    session replaces one that could not be resumed; the key makes the new submission the same job.

    Args:
        client: an open client.
        agent: as in `submit`.
        input: as in `submit`.
        idempotency_key: default: a new key for this call.
        policy: how often and how long to try.
        upstream: the state shared with other callers of the same runtime. By default the client has one per agent; None
            turns it off.
        fallback: an alternative if repeating cannot help.
        history: a list to which every attempt is appended.
        job: further arguments of `submit`.

    Raises:
        FaultError: the last failure, with `.decision` and `.history`.

    """
    key = idempotency_key or f"amends-{uuid4()}"

    async def attempt(*_arguments: Any) -> Any:
        try:
            await client._renew()  # noqa: SLF001 - same package
            handle = await client.submit(agent, input, idempotency_key=key, **job)
            return await handle.done
        except ResumeWindowExpiredError as error:
            raise error_of(as_transient(error.fault)) from None

    return await arecover(
        attempt,
        policy=policy,
        upstream=client._upstreams.of(agent) if isinstance(upstream, PerOrigin) else upstream,  # noqa: SLF001
        operation=Operation(name=f"arcp {agent}", key=key, binding="arcp client"),
        fallback=fallback,
        history=history,
    )
