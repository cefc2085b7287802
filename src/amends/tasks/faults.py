"""
The faults of attempts, delegations and tasks, in the task vocabulary (T4).

The text of an exception is only written to this process's log. A fault that another agent, tool or service reported is
translated into the task vocabulary; its context is added and its original code kept.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from amends.core.crosswalk import transfer
from amends.core.decision import Decision
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.task import VOCABULARY as TASK_CODES
from amends.core.vocabulary import row_for
from amends.dialects import task as dialect
from amends.dialects.outgoing import FORMATS, masked
from amends.errors.base import FaultError, is_about_a_call
from amends.foreign import from_exception
from amends.foreign.bugs import bug_fault, is_bug
from amends.foreign.groups import join, parts_of
from amends.foreign.own_service import as_own_service, is_from_own_service
from amends.foreign.registry import registered_fault
from amends.foreign.upstream import is_conformant, refusal_of_stranger
from amends.logs import logger
from amends.serving.tracing import further_traces, id_of, incoming
from amends.tasks.entries import Failed
from amends.tasks.state import TaskState
from amends.tasks.values import UnstorableError

__all__ = [
    "DEADLINE",
    "STOPPED",
    "cancelled_fault",
    "delegation_failed",
    "doubtful_fault",
    "failed_task",
    "final_fault",
    "interrupted_attempt",
    "log_foreign_text",
    "to_task_fault",
    "unstorable_result",
    "workers_lost",
]

_log = logger("amends.tasks")
_SHARED = frozenset({"TIMEOUT", "RATE_LIMITED", "INTERNAL_ERROR"})

STOPPED = Decision(action=Action.ESCALATE, delay=None, reason="terminal")
"""The decision about an attempt that was stopped."""
DEADLINE = Fault(
    code="TIMEOUT",
    vocabulary="task",
    message="The deadline of the task is over",
    recovery=Recovery.TERMINAL,
    executed=Executed.NO,
)
"""Why an attempt does not start, or why a task ends that waits for an answer, after its deadline."""


# One attempt ---------------------------------------------------------------------------------------------------


def to_task_fault(exc: Exception, agent: str, capability: str, *, relays: bool = False) -> Fault:
    """
    Convert any exception into a fault of the task vocabulary with its context (T4).

    Exceptions that are no FaultError are logged here and nowhere else. `relays`: the capability is one call of another service
    and does nothing else, so what that service said is passed on.
    """
    trace = id_of(incoming())
    if isinstance(exc, FaultError):
        if (further := further_traces(trace, exc.fault.trace_id, None)) and trace is not None:
            _log.info("%s/%s: %s [trace_id=%s]%s", agent, capability, exc.fault.code, trace, further)
        return _with_context(_fault_of(exc, relays=relays), agent, capability)
    if not all(isinstance(part, FaultError) for part in parts_of(exc)):
        where = f" [trace_id={trace}]" if trace else ""
        _log.error("%s/%s raised %s%s", agent, capability, type(exc).__name__, where, exc_info=exc)
    return _with_context(join(exc, partial(_fault_of, relays=relays)), agent, capability)


def _with_context(fault: Fault, agent: str, capability: str) -> Fault:
    details = dict(fault.details or {})
    if "requiredBy" not in details:
        details.setdefault("context", {"agent": agent, "capability": capability})
    return replace(fault, details=details, message=fault.message or row_for("task", fault.code).message)


def _fault_of(exc: BaseException, *, relays: bool) -> Fault:
    if not isinstance(exc, FaultError):
        registered = registered_fault(type(exc))
        if registered is not None:
            return transfer(registered, "task")
        fault = _from_foreign(from_exception(exc))
        return replace(fault, raised=bug_fault()) if is_bug(exc) and fault.code == "INTERNAL_ERROR" else fault
    fault = exc.fault
    if relays:
        fault = _without_foreign_text(fault)
    elif is_about_a_call(exc):
        refused = refusal_of_stranger(exc)
        if refused is not None:
            fault = refused
        elif is_from_own_service(exc):
            fault = as_own_service(fault)
        elif not is_conformant(fault):
            # It holds the text of another party's service.
            return replace(_from_foreign(fault), attempt=fault.attempt)
    # A code of the task vocabulary that arrived in another format is kept unchanged. Codes that the formats share are
    # left to the translation, which gives them the same name.
    if fault.vocabulary != "task" and fault.code in TASK_CODES.rows and fault.code not in _SHARED:
        fault = replace(fault, vocabulary="task")
    return transfer(fault, "task") if fault.vocabulary != "task" or fault.errors else fault


def _without_foreign_text(fault: Fault) -> Fault:
    """
    Return a fault of another service without its text, unless it was written for callers: in one of the five formats.

    The text of a failed MCP tool, A2A task or JSON-RPC method is often that of an exception.
    """
    if fault.origin is None or fault.origin.dialect in FORMATS:
        return fault
    log_foreign_text(fault)
    return as_own_service(fault)


def log_foreign_text(fault: Fault) -> None:
    """Write the text of another service, which the caller does not get, to the log; without credentials."""
    if fault.message:
        _log.warning(
            "%s failed with %s: %s", fault.origin and fault.origin.dialect, fault.code, masked(fault.message)
        )


def _from_foreign(fault: Fault) -> Fault:
    """
    Reduce the fault of a foreign exception to what the caller of the agent may see.

    If a library or service rejected what the agent sent, the caller cannot correct that, and the same task would send it again:
    such a fault becomes a terminal INTERNAL_ERROR. Of other faults only the members that decide about recovery are kept; text,
    other members and addresses belong to the other service.
    """
    if fault.recovery is Recovery.CORRECTABLE:
        return Fault(
            code="INTERNAL_ERROR", vocabulary="task", recovery=Recovery.TERMINAL, executed=fault.executed
        )
    translated = transfer(fault, "task")
    return Fault(
        code=translated.code,
        vocabulary="task",
        recovery=translated.recovery,
        executed=translated.executed,
        actor=translated.actor,
        retry_after=translated.retry_after,
    )


def unstorable_result(agent: str, capability: str, problem: UnstorableError) -> Fault:
    """The fault of a call that was executed and whose result cannot be stored; a repeat would return the same result."""
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message=f"The step happened, but its result cannot be stored: {problem.reason}",
        recovery=Recovery.TERMINAL,
        executed=Executed.YES,
        details={"context": {"agent": agent, "capability": capability}, "happened": True},
    )


def failed_task(fault: Fault) -> FaultError:
    """
    Return the error of a failed task for code of the program that submitted it: as the step raised it, with what is known of it.

    >>> failed_task(Fault(code="INVALID_INPUT", vocabulary="task", raised=Fault(code="OUT_OF_STOCK", message="Sold out"))).code
    'OUT_OF_STOCK'
    """
    raised = fault.raised
    if raised is not None:
        fault = replace(
            raised,
            executed=fault.executed,
            attempt=fault.attempt,
            trace_id=fault.trace_id,
            details=fault.details,
            in_doubt=fault.in_doubt,
        )
    error = FaultError.from_fault(fault)
    error.own = True
    return error


# The whole task -------------------------------------------------------------------------------------------------


def final_fault(state: TaskState, cause: Fault | None) -> Fault:
    """
    The fault of a failed task.

    A task of a single step fails with the step's own fault, a plan with COORDINATION_FAILED and the step's fault as its cause.
    `completed` has the results of the steps that were not undone, `undone` and `notUndone` the steps that were undone or could
    not be, `inDoubt` those of which it is unknown whether they happened.
    """
    cause = cause or Fault(code="INTERNAL_ERROR", vocabulary="task")
    if (trace := id_of(state.head.trace)) is not None:
        cause = replace(cause, trace_id=trace)
    kept = _left_behind(state)
    if state.head.single:
        tries = max(1, next(iter(state.steps.values())).stepper.tries)
        cause = replace(cause, attempt=tries if tries > 1 else cause.attempt)
        return replace(cause, details={**(cause.details or {}), **kept}) if kept else cause
    faults = {name: step.fault for name, step in state.steps.items() if step.fault and not step.plan.optional}
    failed = next((name for name, fault in faults.items() if fault == cause), next(iter(faults), None))
    return Fault(
        code="COORDINATION_FAILED",
        vocabulary="task",
        message=row_for("task", "COORDINATION_FAILED").message,
        recovery=cause.recovery,
        executed=cause.executed if not state.done else Executed.MAYBE,
        details={
            **({"step": failed} if failed is not None else {}),
            "cause": dialect.encode_with_field(cause),
            "completed": _completed(state),
            **kept,
        },
        errors=(cause,),
        user_message=cause.user_message,
        retry_after=cause.retry_after,
    )


def _left_behind(state: TaskState) -> dict[str, list[str]]:
    """The steps that were undone, that could not be undone, and of which it is unknown whether they happened."""
    undos = {name: state.steps[name].undo for name in state.done}
    found = {
        "undone": [name for name, undo in undos.items() if undo is not None and undo.state == "done"],
        "notUndone": [name for name, undo in undos.items() if undo is not None and undo.state != "done"],
        "inDoubt": state.in_doubt,
    }
    return {name: steps for name, steps in found.items() if steps}


def _completed(state: TaskState) -> dict[str, object]:
    """The results of the plan's finished steps that were not undone."""
    undone = _left_behind(state).get("undone", [])
    return {name: result for name, result in state.results.items() if name not in undone}


def cancelled_fault(state: TaskState) -> Fault | None:
    """What a cancelled task leaves behind: None if everything that happened was undone, or changed nothing."""
    kept: dict[str, object] = {**_left_behind(state)}
    left = {
        name: result for name, result in _completed(state).items() if state.promises.get(name) != "read_only"
    }
    if left:
        kept["completed"] = left
    doubt = "inDoubt" in kept
    if not left and not doubt and "notUndone" not in kept:
        return None
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message="The task was cancelled while a step may have happened"
        if doubt
        else "The task was cancelled after a step had happened, which was not undone",
        recovery=Recovery.UNCERTAIN,
        executed=Executed.MAYBE if doubt else Executed.YES,
        details=kept,
    )


def doubtful_fault(state: TaskState) -> Fault:
    """The fault of a task that waits for `verify`, because a step may have happened."""
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message="It is not known whether a step of the task happened, so the task waits",
        recovery=Recovery.UNCERTAIN,
        executed=Executed.MAYBE,
        suggestions=("Find out whether it happened, and answer with `verify`: the task goes on",),
        details={"inDoubt": state.in_doubt},
        max_retries=0,
    )


def delegation_failed(cause: Fault, agent: str | None, capability: str) -> FaultError:
    """DELEGATION_FAILED with the cause, its recovery, its `retry_after`, and the attempts that the delegation made."""
    details: dict[str, object] = {
        "agent": agent,
        "capability": capability,
        "cause": dialect.encode_with_field(cause),
    }
    return FaultError.from_fault(
        Fault(
            code="DELEGATION_FAILED",
            vocabulary="task",
            message=row_for("task", "DELEGATION_FAILED").message,
            recovery=cause.recovery,
            executed=cause.executed,
            details={name: value for name, value in details.items() if value is not None},
            errors=(cause,),
            retry_after=cause.retry_after,
            attempt=cause.attempt,
            user_message=cause.user_message,
        )
    )


def interrupted_attempt(step: str, began: float, now: float) -> Failed:
    """The record of an attempt that was stopped before it could have an effect."""
    fault = replace(transfer(Fault(code="CANCELLED"), "task"), executed=Executed.NO)
    return Failed(at=now, step=step, began=began, fault=fault, decision=STOPPED)


def workers_lost(count: int) -> Fault:
    """The fault of a task that was given up because too many workers were lost while they ran it."""
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message="The task was given up because too many workers were lost while running it",
        recovery=Recovery.TERMINAL,
        details={"workersLost": count},
    )
