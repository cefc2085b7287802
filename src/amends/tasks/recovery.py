"""
Decide what follows a failed attempt of a step: a retry, a remedy, a check, a fallback, or the failure of the step.

The decision comes from the recovery engine's pure stepper. Nothing here waits: a wait is a time in the record, and the queue
delivers the task's message again at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.vocabulary import row_for
from amends.logs import logger
from amends.recovery.clock import CLOCK
from amends.recovery.plan import hook_arguments
from amends.recovery.policies import from_retry_policy
from amends.recovery.stepper import Stepper, remedy_for
from amends.tasks.agent import Agent
from amends.tasks.capability import Capability, Hook, Policies, policies_of
from amends.tasks.context import Context, Question
from amends.tasks.entries import Asked, Failed, Finished, Parked, Record
from amends.tasks.fallbacks import Fallback
from amends.tasks.invoke import HookCalls
from amends.tasks.state import StepState
from amends.tasks.values import to_json_value

__all__ = ["StepRecovery", "overridden"]

_log = logger("amends.tasks")
_REASONS = {"setup": "set-up", "refresh": "refreshed"}
_MCP_MISSING = frozenset({"MCP_NOT_CONNECTED", "MCP_AUTH_FAILED"})


class StepRecovery:
    """Handles the failed attempts of one step."""

    def __init__(
        self,
        agent: Agent | None,
        capability: Capability | None,
        hooks: HookCalls,
        *,
        clock: Callable[[], float],
        policies: Policies,
        retry_policy: Mapping[str, object] | None,
        until: float | None,
        most: int | None = None,
    ) -> None:
        """
        Args:
            agent: the agent whose capability was called; None if it was not found.
            capability: that capability; without it there are no fallbacks and no `verify`.
            hooks: calls its hooks.
            clock: wall-clock seconds.
            policies: the capability's policy, or the worker's.
            retry_policy: the request's `retryPolicy` (T8), applied to that policy.
            until: the task's deadline.
            most: the calls that the submitter had left.
        """
        self._agent, self._capability, self.hooks = agent, capability, hooks
        self._clock = clock
        self._policies = policies
        if retry_policy is not None:
            self._policies = policies_of(from_retry_policy(retry_policy, policies[False]))
        self._until, self._retry_policy, self._most = until, retry_policy, most

    async def handle_failure(
        self,
        fault: Fault,
        name: str,
        step: StepState,
        times: tuple[float, float],
        operation: Operation,
        payload: object = None,
        ctx: Context | None = None,
    ) -> list[Record]:
        """
        Return the records of a failed attempt; the last one determines how the step goes on.

        Args:
            fault: why it failed.
            name: the name of the step, or of the delegation.
            step: its state.
            times: when the attempt began and ended.
            operation: what is known about repeating the call.
            payload: the input of the call.
            ctx: its context.
        """
        began, now = times
        if self._own_agent_busy(fault):
            wait = max(0.05, fault.retry_after or 1.0)
            if wait <= self._stepper(step, operation, fallback=False).patience(now):
                return [Parked(at=now, step=name, until=now + wait)]
        fallbacks = self._find_fallbacks(fault, ctx)
        stepper = self._stepper(step, operation, fallback=bool(fallbacks)).failed(
            fault, started=began, ended=now, draw=CLOCK.draw()
        )
        remedy, decision = None, stepper.decision
        rest: list[Record] = []
        if decision.action is not Action.RETRY:
            remedy = await self._apply_remedy(remedy_for(fault), fault, stepper)
            if remedy is not None:
                now = self._clock()
                decision = stepper.remedied(remedy, _REASONS[remedy], now).decision
            elif decision.action is Action.VERIFY and self._capability is not None:
                seen, now = await self.verify_step(payload, ctx), self._clock()
                if seen is False:
                    decision = stepper.not_happened(now, CLOCK.draw()).decision
                elif seen is not None:
                    rest.append(Finished(at=now, step=name, began=began, result=seen))
            if decision.action is Action.FALLBACK:
                rest = await self._run_fallbacks(fallbacks, fault, name, began, payload, ctx)
        ignored = None if decision.action is Action.RETRY else overridden(self._retry_policy, fault)
        if ignored is not None:
            fault = replace(fault, details={**(fault.details or {}), "retryPolicy": ignored})
        failed = Failed(at=now, step=name, began=began, fault=fault, decision=decision, remedy=remedy)
        return [failed, *rest]

    def _stepper(self, step: StepState, operation: Operation, *, fallback: bool) -> Stepper:
        """The step's stepper with this worker's policy and the task's deadline."""
        stepper = step.stepper
        return replace(
            stepper,
            policy=self._policies[fallback],
            operation=operation,
            state=replace(stepper.state, until=self._until, most=self._most),
        )

    def _own_agent_busy(self, fault: Fault) -> bool:
        """Whether the agent in this process is at its concurrency limit: that does not count as an attempt."""
        agent = self._agent
        return (
            fault.code == "AGENT_BUSY"
            and agent is not None
            and self._capability is not None
            and fault.origin is None
            and (fault.details or {}).get("agent") == agent.name
        )

    async def _apply_remedy(self, remedy: str | None, fault: Fault, stepper: Stepper) -> str | None:
        """Run the agent's `setup` or `reauth` hook, each once per step. Return the remedy if the hook succeeded."""
        agent = self._agent
        if agent is None or remedy is None or remedy in stepper.remedies:
            return None
        hook = agent.setup if remedy == "setup" else agent.reauth
        if hook is None or not await self._run_hook(hook, *hook_arguments(hook, fault)):
            return None
        missing = (fault.details or {}).get("mcp")
        if isinstance(missing, str):
            agent.connections.drop(missing)
        return remedy

    async def _run_hook(self, hook: Hook, *arguments: object) -> bool:
        try:
            return await self.hooks.call(hook, *arguments) is not False
        except Exception:  # noqa: BLE001 - the step's own failure is the one to report
            _log.exception("a hook of %s failed", self._agent)
            return False

    async def verify_step(self, payload: object, ctx: Context | None) -> object:
        """Return what the capability's `verify` returns: False, the result, or None if it is unknown or `verify` failed."""
        agent, capability = self._agent, self._capability
        if agent is None or capability is None or capability.verify is None or ctx is None:
            return None
        try:
            ctx = ctx.for_verify()
            if not ctx.mcp:
                await agent.connect(capability, ctx)
            seen = await self.hooks.call(capability.verify, self._convert_input(payload), ctx)
            return seen if seen is None or seen is False else to_json_value(seen)
        except Exception:  # noqa: BLE001 - unknown, then
            _log.exception("verify of %s failed", capability.name)
            return None

    def _convert_input(self, payload: object) -> object:
        check = None if self._capability is None else self._capability.check
        return payload if check is None else check(payload)

    # Fallbacks (T9) ---------------------------------------------------------------------------------------------

    def _find_fallbacks(self, fault: Fault, ctx: Context | None) -> tuple[Hook | Fallback, ...]:
        """
        The capability's own fallbacks, then those in prose, which apply only to a missing MCP server.

        There are none for a step that is known to have happened: they would do it again in another way.
        """
        agent, capability = self._agent, self._capability
        if agent is None or capability is None or ctx is None:
            return ()
        if fault.executed is Executed.YES and not capability.read_only:
            return ()
        missing = (fault.details or {}).get("mcp")
        prose: tuple[Fallback, ...] = ()
        if fault.code in _MCP_MISSING and isinstance(missing, str):
            prose = tuple(each for each in agent.fallbacks if each.applies(missing, agent.name))
        return (*capability.fallbacks, *prose)

    async def _run_fallbacks(
        self,
        fallbacks: tuple[Hook | Fallback, ...],
        fault: Fault,
        name: str,
        began: float,
        payload: object,
        ctx: Context | None,
    ) -> list[Record]:
        """Run the fallbacks in order until one succeeds or asks a question; no records if none does."""
        for fallback in fallbacks:
            if isinstance(fallback, Fallback):
                result: object = {"fallback": {"missing": fallback.mcp, "steps": list(fallback.steps)}}
            else:
                try:
                    value = await self.hooks.call(fallback, self._convert_input(payload), ctx, may_ask=True)
                    result = to_json_value(value)
                except Question as asked:
                    return [Asked(at=self._clock(), step=name, question=asked.question, schema=asked.schema)]
                except Exception:  # noqa: BLE001 - the next fallback is tried, or the original failure reported
                    _log.exception("a fallback of %s failed", name)
                    continue
            return [Finished(at=self._clock(), step=name, began=began, result=result, degraded=fault.code)]
        return []


def overridden(policy: Mapping[str, object] | None, fault: Fault) -> str | None:
    """Why a request's `maxAttempts` did not apply to a failure; None if it did, or was not given."""
    most = None if policy is None else policy.get("maxAttempts")
    if not isinstance(most, int | float) or most <= 1:
        return None
    if row_for("task", fault.code).category == "input":
        return "not applied: input errors are never retried"
    if fault.recovery is Recovery.TERMINAL:
        return "not applied: an error that is not recoverable is never retried"
    if fault.recovery is Recovery.CORRECTABLE:
        return "not applied: the same request would fail again until its cause is removed"
    return None
