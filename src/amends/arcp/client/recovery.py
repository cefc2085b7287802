"""Submit with a key, wait, and submit again if the error is retryable, within the limits of a policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import uuid4

from amends.arcp.client.session_faults import as_transient, error_of
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.errors.arcp import ResumeWindowExpiredError
from amends.errors.base import FaultError
from amends.recovery.drivers import arecover
from amends.recovery.history import Attempt
from amends.recovery.origins import PER_ORIGIN, PerOrigin
from amends.recovery.upstream import Upstream

__all__ = ["submit_with_recovery"]


async def submit_with_recovery(
    attempt: Callable[..., Awaitable[Any]],
    agent: str,
    default_upstream: Callable[[], Upstream | None],
    *,
    idempotency_key: str | None = None,
    policy: Policy | None = DEFAULT,
    upstream: Upstream | PerOrigin | None = PER_ORIGIN,
    fallback: Any | Iterable[Any] | None = None,
    history: list[Attempt] | None = None,
    **job: object,
) -> Any:
    """
    Submit a job and return its result, with as many attempts as the policy allows.

    INTERNAL_ERROR, TIMEOUT, HEARTBEAT_LOST and every other error that the runtime marks as retryable are tried again. A new
    session replaces one that could not be resumed; the key makes the new submission the same job.

    Args:
        attempt: submits with a key and the arguments in `job`, in a new session if the old one is over, and waits for the end.
        agent: as in `submit`.
        default_upstream: the client's upstream for this agent.
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

    async def once(*_arguments: object) -> Any:
        try:
            return await attempt(key, **job)
        except ResumeWindowExpiredError as error:
            raise error_of(as_transient(error.fault)) from None

    try:
        return await arecover(
            once,
            policy=policy,
            upstream=default_upstream() if isinstance(upstream, PerOrigin) else upstream,
            operation=Operation(name=f"arcp {agent}", key=key, binding="arcp client"),
            fallback=fallback,
            history=history,
        )
    except FaultError as error:
        error.key_is_new = idempotency_key is None
        raise
