"""
What follows from a failed try: the recovery engine's pure stepper decides; hooks remove causes; fallbacks stand in.

Nothing here waits. A wait is a time in the record, and the queue brings the task back then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Action
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.recovery.clock import CLOCK
from amends.recovery.plan import hook_arguments
from amends.recovery.policies import from_retry_policy
from amends.recovery.stepper import Stepper, remedy_for
from amends.tasks.agent import Agent
from amends.tasks.capability import Capability, called
from amends.tasks.context import Context, Question
from amends.tasks.entries import Asked, Failed, Finished, Parked, Record, stored
from amends.tasks.fallbacks import Fallback
from amends.tasks.steps import StepState

__all__ = ["Judge"]

_log = logging.getLogger("amends.tasks")
_REASONS = {"setup": "set-up", "refresh": "refreshed"}
_MCP_GONE = frozenset({"MCP_NOT_CONNECTED", "MCP_AUTH_FAILED"})


class Judge:
    """Decides about the failed tries of one step."""

    def __init__(
        self,
        agent: Agent | None,
        capability: Capability | None,
        *,
        clock: Callable[[], float],
        policy: Policy,
        retry_policy: dict[str, Any] | None,
        until: float | None,
    ) -> None:
        self._agent, self._capability = agent, capability
        self._clock = clock
        base = policy if capability is None or capability.policy is None else capability.policy
        self._policy = from_retry_policy(retry_policy, base)
        self._until = until

    async def about(
        self,
        fault: Fault,
        name: str,
        step: StepState,
        began: float,
        operation: Operation,
        given: Any = None,
        ctx: Context | None = None,
    ) -> list[Record]:
        """The records of a failed try, the last of which says how it goes on."""
        now = self._clock()
        if self._parked(fault, step):
            wait = max(0.05, fault.retry_after or 1.0)
            if wait <= self._seen(step, operation, ()).patience(now):
                return [Parked(at=now, step=name, until=now + wait)]
        ways = self._ways(fault, given, ctx)
        stepper = self._seen(step, operation, ways).failed(fault, started=began, ended=now, draw=CLOCK.draw())
        remedy = None
        if stepper.decision.action is not Action.RETRY:
            remedy = await self._remedied(fault, stepper)
            if remedy is not None:
                stepper = stepper.remedied(remedy, _REASONS[remedy], self._clock())
            elif stepper.decision.action is Action.VERIFY and self._capability is not None:
                seen = await self.verified(given, ctx)
                if seen is False:
                    stepper = stepper.not_happened(self._clock(), CLOCK.draw())
                elif seen is not None:
                    return [
                        self._record(fault, name, began, stepper, None),
                        Finished(at=self._clock(), step=name, began=began, result=seen),
                    ]
        records: list[Record] = [self._record(fault, name, began, stepper, remedy)]
        if stepper.decision.action is Action.FALLBACK:
            records += await self._stood_in(fault, name, began, ways)
        return records

    def _seen(self, step: StepState, operation: Operation, ways: tuple[Any, ...]) -> Stepper:
        """The step's stepper as this worker sees it: with its own policy, and the task's deadline."""
        stepper = step.stepper
        return replace(
            stepper,
            policy=replace(self._policy, fallback=bool(ways)),
            operation=operation,
            state=replace(stepper.state, until=self._until),
        )

    def _parked(self, fault: Fault, step: StepState) -> bool:
        """Our own agent has no hands free: that is no try, and costs none."""
        agent = self._agent
        return (
            fault.code == "AGENT_BUSY"
            and agent is not None
            and fault.origin is None
            and (fault.details or {}).get("agent") == agent.name
        )

    def _record(self, fault: Fault, name: str, began: float, stepper: Stepper, remedy: str | None) -> Failed:
        decision = stepper.decision
        return Failed(at=self._clock(), step=name, began=began, fault=fault, decision=decision, remedy=remedy)

    async def _remedied(self, fault: Fault, stepper: Stepper) -> str | None:
        """What removed the cause: the agent's set-up or signing in again, each of them once for a step."""
        remedy, agent = remedy_for(fault), self._agent
        if agent is None or remedy is None or remedy in stepper.remedies:
            return None
        hook = agent.setup if remedy == "setup" else agent.reauth
        if hook is None or not await self._hook(hook, *hook_arguments(hook, fault)):
            return None
        missing = (fault.details or {}).get("mcp")
        if isinstance(missing, str):
            agent.connections.drop(missing)
        return remedy

    async def _hook(self, hook: Callable[..., Any], *arguments: Any) -> bool:
        try:
            return await called(hook, *arguments) is not False
        except Exception:  # noqa: BLE001 - the failure in hand is the one to report
            _log.exception("a hook of %s did not work", self._agent)
            return False

    async def verified(self, given: Any, ctx: Context | None) -> Any:
        """What the capability's own look says: False, None, or the result."""
        capability = self._capability
        if capability is None or capability.verify is None or ctx is None:
            return None
        try:
            seen = await called(capability.verify, self._checked(given), ctx)
            return seen if seen is None or seen is False else stored(seen)
        except Exception:  # noqa: BLE001 - nobody can tell, then
            _log.exception("the look whether %s happened did not work", capability.name)
            return None

    def _checked(self, given: Any) -> Any:
        check = None if self._capability is None else self._capability.check
        return given if check is None else check(given)

    # Fallbacks (T9) ---------------------------------------------------------------------------------------------

    def _ways(self, fault: Fault, given: Any, ctx: Context | None) -> tuple[Any, ...]:
        """Other ways, those in code first. Prose is for a missing MCP server; it never hides another failure."""
        agent, capability = self._agent, self._capability
        if agent is None or capability is None or ctx is None:
            return ()
        missing = (fault.details or {}).get("mcp")
        prose: tuple[Fallback, ...] = ()
        if fault.code in _MCP_GONE and isinstance(missing, str):
            prose = tuple(each for each in agent.fallbacks if each.applies(missing, agent.name))
        return tuple((way, given, ctx) for way in capability.fallbacks) + prose

    async def _stood_in(self, fault: Fault, name: str, began: float, ways: tuple[Any, ...]) -> list[Record]:
        for way in ways:
            if isinstance(way, Fallback):
                result: Any = {"fallback": {"missing": way.mcp, "steps": list(way.steps)}}
            else:
                function, given, ctx = way
                try:
                    result = stored(await called(function, self._checked(given), ctx))
                except Question as asked:
                    return [Asked(at=self._clock(), step=name, question=asked.question, schema=asked.schema)]
                except Exception:  # noqa: BLE001 - the next way, or the failure it stood in for
                    _log.exception("a fallback of %s did not work", name)
                    continue
            return [Finished(at=self._clock(), step=name, began=began, result=result, degraded=fault.code)]
        return []
