"""
The attempts that one worker makes of one task's steps: calls, effects, delegations, undoing, and what interrupted ones did.

Each attempt returns the records of its outcome, and the caller writes them. Written here are only records that have to be in the
log earlier: the start of a call that must not happen twice, an effect that happens once, and a delegation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.operation import Operation
from amends.effects.steps import within_steps
from amends.errors.base import FaultError
from amends.errors.task import TaskGraphCycleError
from amends.proof import Claim, Proof, rests_on
from amends.recovery.drivers import arecover
from amends.recovery.effect_context import within_scope
from amends.recovery.incoming import outgoing_left
from amends.serving.tracing import handling
from amends.stores.contract import Transaction
from amends.tasks.agent import Agent
from amends.tasks.capability import HOOK_SECONDS, Capability
from amends.tasks.commands import send_command, verify
from amends.tasks.context import Context, Question, Suspended, is_made_by_undo
from amends.tasks.entries import (
    Asked,
    Delegated,
    Doubted,
    Effect,
    Failed,
    Finished,
    Record,
    Started,
    Verified,
)
from amends.tasks.events import TaskEvent, attempt_scope, publish, publish_failure, publish_record
from amends.tasks.faults import DEADLINE, STOPPED, delegation_failed, to_task_fault
from amends.tasks.fold import delegation
from amends.tasks.invoke import HookCalls, thread_key
from amends.tasks.journal import Journal
from amends.tasks.plan import Step, fill_results
from amends.tasks.recovery import StepRecovery
from amends.tasks.registry import Registry
from amends.tasks.state import StepState
from amends.tasks.steps import TaskSteps
from amends.tasks.values import storable, to_json_value

__all__ = ["Attempts", "operation_of"]

T = TypeVar("T")

_NO_OPERATION = Operation()
_DEEPEST = 32
"""The number of calls, the step's included, that may wait for one another by delegation."""
_STOP_SECONDS = 1.0
"""Seconds for an undo whose end was requested."""


def operation_of(capability: Capability, agent: str, key: str) -> Operation:
    """What the recovery engine has to know about repeating a call."""
    return Operation(
        name=f"{agent}/{capability.name}",
        read_only=capability.read_only,
        idempotent=capability.idempotent,
        key=key if capability.keyed else None,
        binding="tasks",
    )


def check_delegation(ctx: Context, agent: str, type: str, payload: object) -> None:
    """
    Refuse a delegation that would go on without end.

    Raises:
        FaultError: TASK_GRAPH_CYCLE if a call delegates to itself with the same payload, or delegations are nested too deeply.
    """
    call = (agent, type, payload)
    calls = [*ctx.calls, call]
    if call in ctx.calls:
        calls = calls[calls.index(call) :]
    elif len(calls) <= _DEEPEST:
        return
    chain = [f"{each[0]}/{each[1]}" for each in calls]
    raise TaskGraphCycleError(
        f"Circular dependency detected: {' → '.join(chain)}"
        if call in ctx.calls
        else f"More than {_DEEPEST} calls delegate to one another",
        details={"cycle": chain},
    )


@dataclass(slots=True)
class Attempts:
    """The attempts that one worker makes of one task's steps. Implements `TaskServices` for their contexts."""

    registry: Registry
    journal: Journal
    _under_way: dict[str, tuple[Capability, Context]] = field(default_factory=dict)

    async def attempt_step(self, name: str) -> list[Record]:
        """Attempt a step once and return the records of its outcome."""
        clock = self.registry.clock
        step, began = self.journal.state.steps[name], clock()
        plan = step.plan
        self._under_way.pop(name, None)
        try:
            agent, capability = await self.registry.find(plan.type, plan.agent)
            payload = self._payload(plan)
        except Exception as exc:  # noqa: BLE001 - a remote agent may raise anything while its capability is looked up
            # Nothing was called yet.
            fault = replace(to_task_fault(exc, plan.agent or "", plan.type), executed=Executed.NO)
            ended, recovery = clock(), self.recovery(None, None, plan, name)
            return await recovery.handle_failure(fault, name, step, (began, ended), _NO_OPERATION)
        ctx = self._context(name, step, agent, capability)
        ctx.calls = ((agent.name, capability.name, payload),)
        self._under_way[name] = capability, ctx
        try:
            try:
                result = await self._call(agent, capability, payload, ctx, began)
            except FaultError as error:
                if not capability.repeatable and self._watch_thread(plan, agent, capability, payload, ctx):
                    return [Doubted(at=clock(), step=name)]
                operation, ended = operation_of(capability, agent.name, ctx.key), clock()
                recovery = self.recovery(agent, capability, plan, ctx.key)
                return await recovery.handle_failure(
                    error.fault, name, step, (began, ended), operation, payload, ctx
                )
        except Question as asked:
            return [Asked(at=clock(), step=name, question=asked.question, schema=asked.schema)]
        except Suspended:
            return []  # the log says which delegation has to be verified, or asked a question
        return [Finished(at=clock(), step=name, began=began, result=result, version=agent.version)]

    def _tries_left(self, step: StepState | None, capability: Capability) -> int | None:
        """Return how many calls an attempt may cause, for all layers together."""
        policy = (capability.policies or self.registry.policies)[False]
        limits = [each for each in (policy.attempts, self.journal.state.head.tries) if each is not None]
        return max(1, min(limits) - (0 if step is None else step.stepper.tries)) if limits else None

    async def _call(
        self, agent: Agent, capability: Capability, payload: object, ctx: Context, began: float
    ) -> object:
        """Call the capability within its own time limit and the task's deadline. Raises what `Agent.perform` raises."""
        head, guard, repeatable = self.journal.state.head, self.journal.guard, capability.repeatable
        left = None if head.until is None else head.until - began
        if left is not None and left <= 0:
            late = FaultError.from_fault(DEADLINE)
            raise FaultError.from_fault(to_task_fault(late, agent.name, capability.name))
        if repeatable:
            await self.journal.write_announced()
        else:
            started = Started(at=began, step=ctx.step_name, attempt=ctx.attempt, version=agent.version)
            await self.journal.write([started])
        longest = min((each for each in (capability.timeout, left) if each is not None), default=None)
        event = TaskEvent(
            kind="attempt",
            at=began,
            task=ctx.task,
            agent=agent.name,
            capability=capability.name,
            step=ctx.step_name,
            attempt=ctx.attempt,
            trace=head.trace,
        )
        # An attempt that is made again has the same scope of effects, so that the effects inside it are recognised.
        with (
            attempt_scope(event),
            within_scope(f"task/{ctx.task}/{ctx.step_name}"),
            within_steps(ctx.get_steps),
            handling(
                head.trace,
                outgoing_left(
                    self._tries_left(self.journal.state.steps.get(ctx.step_name), capability), longest
                ),
            ),
        ):
            work = agent.perform(capability, payload, ctx, longest, guard.ensure)
            return await (work if repeatable else guard.run(work))

    @rests_on(Claim.NOT_HAPPENED, Proof.NOT_SENT)
    def may_have_happened(self, name: str) -> bool:
        """Whether an attempt under way has called a capability that may have changed something."""
        found = self._under_way.get(name)
        return found is not None and found[1].called and not found[0].read_only

    # What an attempt needs --------------------------------------------------------------------------------------

    def _context(
        self, name: str, step: StepState, agent: Agent, capability: Capability, *, undo: bool = False
    ) -> Context:
        """The context of the next attempt of a step, or of the next attempt to undo it."""
        head, attempted = self.journal.state.head, step.undo if undo else step
        key = f"{head.id}/{name}" if step.round == 1 else f"{head.id}/{name}/{step.round}"
        return Context(
            task=head.id,
            step_name=name,
            agent=agent.name,
            capability=capability.name,
            attempt=(0 if attempted is None else attempted.stepper.state.attempt) + 1,
            key=f"{key}/undo" if undo else key,
            undo=undo,
            answers=list(step.answers),
            services=self,
            until=head.until,
            clock=self.registry.clock,
        )

    def _payload(self, plan: Step) -> object:
        """The payload of a step, with the results it refers to. An optional step that failed has the result None."""
        state = self.journal.state
        if state.head.single or ">" in plan.name:
            return plan.payload  # the log has a delegation's payload as it was sent
        return fill_results(plan.payload, lambda name: state.steps[name].result)

    def recovery(
        self,
        agent: Agent | None,
        capability: Capability | None,
        plan: Step,
        key: str,
        *,
        guarded: bool = True,
        undo: bool = False,
    ) -> StepRecovery:
        """
        Decides about the failed attempts of a step, or of undoing it: without fallbacks, `verify` and the request's retry policy.

        Args:
            agent: the agent whose capability was called; None if it was not found.
            capability: that capability.
            plan: the step.
            key: its idempotency key.
            guarded: whether this worker has to hold the task when it calls a hook.
            undo: whether the step is being undone. Its hooks may run after the task's deadline.
        """
        head, clock = self.journal.state.head, self.registry.clock
        return StepRecovery(
            agent,
            None if undo else capability,
            HookCalls(
                self.journal.guard if guarded else None,
                agent.threads if agent else None,
                capability,
                key,
                clock=clock,
                until=None if undo else head.until,
            ),
            clock=clock,
            policies=(capability and capability.policies) or self.registry.policies,
            retry_policy=None if undo else plan.retry_policy or head.retry_policy,
            until=head.until,
            most=None if undo else head.tries,
        )

    # Interrupted calls ------------------------------------------------------------------------------------------

    async def resolve(self, name: str, *, repeats: bool = True) -> Verified | Doubted:
        """
        Check whether an interrupted step or delegation has happened; `Doubted` if that is unknown.

        Args:
            name: the step.
            repeats: whether the step may run again. If not, a step that may be repeated is checked as well.
        """
        state, clock = self.journal.state, self.registry.clock
        step = state.steps[name]
        try:
            agent, capability = await self.registry.find(step.plan.type, step.plan.agent)
            payload = self._payload(step.plan)
        except Exception:  # noqa: BLE001 - without the agent, the step cannot be checked here
            return Doubted(at=clock(), step=name)
        # What was declared about repeating the interrupted attempt when it was begun.
        began = state.promises.get(name, capability.promises) if step.promises is None else step.promises
        if repeats and capability.repeatable and began in {"read_only", capability.promises}:
            return Verified(at=clock(), step=name, happened=False)
        ctx = self._context(name, step, agent, capability)
        if self._watch_thread(step.plan, agent, capability, payload, ctx):
            return Doubted(at=clock(), step=name)
        seen = await self.recovery(agent, capability, step.plan, ctx.key).verify_step(payload, ctx)
        if seen is None:
            publish(self.journal.state, "doubt", at=clock(), step=name, agent=agent.name)
            return Doubted(at=clock(), step=name)
        result = None if seen is False else seen
        return Verified(at=clock(), step=name, happened=seen is not False, result=result)

    def _watch_thread(
        self, plan: Step, agent: Agent, capability: Capability, payload: object, ctx: Context
    ) -> bool:
        """If a thread of the step is still running: have its outcome recorded when it ends, and return True."""
        thread = agent.threads.running(thread_key(capability.call, ctx.key))
        if thread is None:
            return False
        recovery = self.recovery(agent, capability, plan, ctx.key, guarded=False)

        async def record(happened: bool, result: object) -> None:
            now, journal = self.registry.clock(), self.journal
            await send_command(
                journal.store,
                journal.space,
                ctx.task,
                lambda state: verify(state, now=now, happened=happened, result=result, step=plan.name),
            )

        self.registry.late_results.watch(thread, record, lambda: recovery.verify_step(payload, ctx))
        return True

    async def changed_promises(self, name: str) -> bool:
        """
        Whether a lost worker may have begun the step under promises that the code no longer makes.

        The start of a step that may be repeated is not recorded, so what the lost worker declared decides.
        """
        state = self.journal.state
        step, began = state.steps[name], state.promises.get(name)
        if not began or began == "read_only":
            return False
        try:
            _, capability = await self.registry.find(step.plan.type, step.plan.agent)
        except Exception:  # noqa: BLE001 - the attempt will fail in the same way
            return False
        return capability.promises != began

    # Effects and delegations ------------------------------------------------------------------------------------

    async def once(self, ctx: Context, name: str, work: Callable[[Transaction], T]) -> T:
        """See `Context.once`."""
        where, what = ctx.step_name, name
        if ">" in where and not ctx.undo:
            # A delegation is recorded when it is done. Until then its effects are recorded with the delegating step.
            where, what = where.partition(">")[0], f"{ctx.key}:{name}"
        step = self.journal.state.steps[where]
        effects = (step.undo.effects if step.undo is not None else {}) if ctx.undo else step.effects
        if what in effects:
            return cast("T", effects[what])

        def record(value: T) -> Record:
            now = self.registry.clock()
            return Effect(at=now, step=where, name=what, result=to_json_value(value), undo=ctx.undo)

        return await self.journal.commit(work, record)

    def steps(self, ctx: Context) -> TaskSteps:
        """See `Context.step`."""
        return TaskSteps(self.journal, ctx, self.registry.clock)

    async def delegate(self, ctx: Context, type: str, payload: object, agent: str | None) -> object:
        """See `Context.delegate`."""
        found: Agent | None = None
        name, began = "", self.registry.clock()
        try:
            found, capability = await self.registry.find(type, agent)
            name = ctx.child_name(found.name, type)
            parent = self.journal.state.steps[ctx.step_name.partition(">")[0]]
            if name in parent.delegations or await self._happened(name):
                return self.journal.state.steps[name].result
            sent = storable(payload, "payload")
            check_delegation(ctx, found.name, type, sent)
            result = await self._perform_delegation(ctx, name, sent, found, capability, began)
        except FaultError as error:
            called = found.name if found else agent
            # The step that delegates may handle it, and then nothing else says that it failed.
            attempt = TaskEvent(
                kind="attempt",
                at=began,
                task=ctx.task,
                agent=called,
                capability=type,
                step=name or ctx.step_name,
                trace=self.journal.state.head.trace,
            )
            publish_failure(attempt, error.fault, at=self.registry.clock())
            raise delegation_failed(error.fault, called, type) from error
        if ctx.verifying:
            return result
        made = Delegated(
            at=self.registry.clock(),
            step=name,
            agent=found.name,
            type=type,
            payload=sent,
            began=began,
            result=result,
        )
        await self.journal.write([made])
        return result

    async def _happened(self, name: str) -> bool:
        """
        Whether an earlier attempt of this delegation is known to have happened.

        Raises:
            Suspended: that is unknown, and the delegation must not happen twice.
        """
        known = self.journal.state.steps.get(name)
        if known is None or not known.in_doubt:
            return False
        record = await self.resolve(name)
        await self.journal.write([record])
        if isinstance(record, Doubted):
            raise Suspended
        return record.happened

    async def _perform_delegation(
        self, caller: Context, name: str, payload: object, agent: Agent, capability: Capability, began: float
    ) -> object:
        """
        Run a delegation with recovery and return its result.

        Before a call that must not happen twice, its start is recorded, so that no later attempt repeats it blindly.

        Raises:
            Suspended: the called capability asked a question, which is in the log.
        """
        state, guard = self.journal.state, self.journal.guard
        recorded = not capability.repeatable and not caller.verifying
        step = state.steps.get(name) or delegation(
            name, agent.name, capability.name, payload, state.steps[name.partition(">")[0]]
        )
        ctx = self._context(name, step, agent, capability)
        ctx.calls = (*caller.calls, (agent.name, capability.name, payload))
        ctx.verifying = caller.verifying

        async def call() -> object:
            ctx.called = False
            ctx.begin_again()
            work = agent.perform(capability, payload, ctx, capability.timeout, guard.ensure)
            with within_steps(ctx.get_steps):
                return await (work if capability.repeatable else guard.run(work))

        if recorded:
            started = Started(
                at=began,
                step=name,
                attempt=1,
                version=agent.version,
                agent=agent.name,
                type=capability.name,
                payload=payload,
            )
            await self.journal.write([started])
        try:
            return await arecover(
                call,
                policy=capability.policy or self.registry.policy,
                operation=operation_of(capability, agent.name, ctx.key),
                setup=agent.setup,
                refresh=agent.reauth,
            )
        except Question as asked:
            if caller.verifying or is_made_by_undo(name):
                raise
            # The question and its answer belong to the delegation. The calling step starts again when the answer has come.
            question = Asked(
                at=self.registry.clock(),
                step=name,
                question=asked.question,
                schema=asked.schema,
                agent=agent.name,
                type=capability.name,
                payload=payload,
            )
            await self.journal.write([question])
            publish_record(self.journal.state, question)
            raise Suspended from None
        except FaultError as error:
            if recorded:
                now = self.registry.clock()
                failed = Failed(at=now, step=name, began=began, fault=error.fault, decision=STOPPED)
                await self.journal.write([failed])
            raise

    # Undoing ----------------------------------------------------------------------------------------------------

    def undo_due(self, name: str) -> float | None:
        """
        When a step may be undone; None if its capability has no `undo`.

        If a worker was lost that may have been running the step, its call may still be under way: the step is undone when that
        call must have ended.
        """
        step = self.journal.state.steps[name]
        due = 0.0 if step.undo is None else step.undo.due
        capability = self.registry.known_capability(step.plan)
        if capability is not None and capability.undo is None:
            return None
        longest = HOOK_SECONDS if capability is None else capability.longest
        return due if step.contested is None else max(due, step.contested + longest)

    async def attempt_undo(self, name: str) -> list[Record]:
        """
        Attempt once to undo a step and return the records of the outcome; none if the capability has no `undo`.

        An undo runs at least once: it has an idempotency key, and is repeated until it succeeds or recovery gives up. After the
        task's deadline it gets one attempt.
        """
        step, began = self.journal.state.steps[name], self.registry.clock()
        undo, stopping = step.undo or StepState(step.plan), self.journal.state.stop_undo
        agent: Agent | None = None
        capability: Capability | None = None
        operation = _NO_OPERATION
        try:
            agent, capability = await self.registry.find(step.plan.type, step.plan.agent)
            if capability.undo is None:
                return []
            ctx = self._context(name, step, agent, capability, undo=True)
            operation = Operation(name=f"{agent.name}/{capability.name}", idempotent=True, key=ctx.key)
            started = Started(at=began, step=name, attempt=ctx.attempt, undo=True, version=agent.version)
            await self.journal.write([started])
            await agent.connect(capability, ctx)
            payload = self._payload(step.plan)
            payload = payload if capability.check is None else capability.check(payload)
            hooks = self.recovery(agent, capability, step.plan, ctx.key, undo=True).hooks
            most = _STOP_SECONDS if stopping else None
            with within_steps(ctx.get_steps):
                await hooks.call(capability.undo, payload, step.result, ctx, most=most)
        except Exception as exc:  # noqa: BLE001 - recovery decides about any exception
            fault = to_task_fault(exc, agent.name if agent else step.plan.agent or "", step.plan.type)
            ended, recovery = (
                self.registry.clock(),
                self.recovery(agent, capability, step.plan, name, undo=True),
            )
            records = await recovery.handle_failure(fault, name, undo, (began, ended), operation)
            failed = [replace(each, undo=True) for each in records if isinstance(each, Failed)]
            return [replace(each, decision=STOPPED) if stopping else each for each in failed]
        return [Finished(at=self.registry.clock(), step=name, began=began, undo=True, version=agent.version)]
