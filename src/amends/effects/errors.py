"""The errors that a call of an effect raises instead of running once more."""

from __future__ import annotations

from amends.core import recording
from amends.core.enums import Executed
from amends.effects.records import (
    EffectRecord,
    answer_text,
    call_text,
    instant,
    question_text,
    shortened,
)
from amends.errors import ConflictError, ServiceUnavailableError, ValidationError
from amends.errors.base import FaultError
from amends.serving.effect_unknown import EffectUnknownError

__all__ = [
    "AlreadyDoneError",
    "EffectRunningError",
    "InDoubtError",
    "KeyReusedError",
    "LedgerUnavailableError",
    "SimilarError",
]

_SHOWN = 2000
"""Characters of an outcome that an error carries in its details."""


class AlreadyDoneError(FaultError):
    """
    The effect happened before, and its outcome was delivered

    >>> from amends.effects import Effects
    >>> effects = Effects("memory:")
    >>> @effects.once
    ... def order(item):
    ...     return f"ordered {item}"
    >>> order("tea")
    'ordered tea'
    >>> try:
    ...     order("tea")
    ... except AlreadyDoneError as done:
    ...     done.outcome
    'ordered tea'
    """

    code = "ALREADY_DONE"
    recovery = "correctable"
    executed = "yes"
    actor = "caller"
    status = 409
    user_message = "That was already done."

    key: str = ""
    outcome: object = None
    """The result of the call that had the effect."""


class SimilarError(FaultError):
    """
    A very similar call was made recently

    The call was not made. Ask the user, or pass the reason for another call as `again`.

    >>> from amends.effects import Effects
    >>> effects = Effects("memory:")
    >>> @effects.once(similar=600)
    ... def mail(text):
    ...     return "sent"
    >>> mail("Your train leaves at 9:12 from platform 4")
    'sent'
    >>> try:
    ...     mail("Your train leaves at 9:12 from platform 4!")
    ... except SimilarError as similar:
    ...     similar.fault.field
    'again'
    """

    code = "SIMILAR_CALL"
    recovery = "correctable"
    executed = "no"
    actor = "caller"
    status = 409
    user_message = "That looks like something that was just done. Should it be done once more?"

    key: str = ""
    """The similar effect in the ledger."""


class InDoubtError(EffectUnknownError):
    """
    The effect may have happened: `question` says what to find out

    >>> from amends.effects import Effects
    >>> effects = Effects("memory:")
    >>> @effects.once(key="order")
    ... def pay(order):
    ...     raise TimeoutError
    >>> try:
    ...     pay(17)
    ... except InDoubtError as doubt:
    ...     doubt.key
    'pay:17'
    """

    key: str = ""
    question: str = ""


class KeyReusedError(ValidationError):
    """
    The key belongs to a call with other arguments

    >>> from amends.effects import Effects
    >>> effects = Effects("memory:")
    >>> @effects.once(key="order")
    ... def pay(order, amount):
    ...     return f"paid {amount}"
    >>> pay(17, 20)
    'paid 20'
    >>> try:
    ...     pay(17, 30)
    ... except KeyReusedError as reused:
    ...     reused.fault.suggestions[0]
    'Make the first call again, unchanged'
    """


class EffectRunningError(ConflictError):
    """
    Another caller runs the effect

    It was not over after `Effects(wait=...)` seconds. A later call waits for it again.

        effects = Effects("sqlite:///effects.db", wait=5)
        try:
            receipt = await pay(order)
        except EffectRunningError as running:
            print(running.fault.retry_after)
    """


class LedgerUnavailableError(ServiceUnavailableError):
    """
    The ledger cannot be reached, so the call was not made

    It may be made again when the ledger can be reached.

        try:
            receipt = await pay(order)
        except LedgerUnavailableError as unavailable:
            print(unavailable.fault.executed, unavailable.fault.retry_after)
    """


def already_done(name: str, record: EffectRecord, outcome: object) -> AlreadyDoneError:
    """Return the answer to a call whose outcome was delivered before."""
    details: dict[str, object] = {"key": name, "done_at": instant(record.ended)}
    if record.outcome is not None and len(record.outcome) <= _SHOWN:
        details["outcome"] = outcome
    error = AlreadyDoneError(
        f'already done at {instant(record.ended)}; pass again="reason" to do it once more'
        if record.derived
        else f"already done at {instant(record.ended)}, but its result could not be stored",
        details=details,
        field="again" if record.derived else None,
        suggestions=(
            "Use the result of the first call",
            'Pass again="reason" only if it has to be done once more',
        )
        if record.derived
        else ("Look up the result where it would show",),
    )
    error.key, error.outcome = name, outcome
    return error


def again_done(name: str, record: EffectRecord, outcome: object) -> AlreadyDoneError:
    """Return the answer to a second call with the same reason."""
    error = already_done(name, record, outcome)
    message = f"already done once more for this reason, last at {instant(record.ended)}; pass another reason to do it again"
    repeated = AlreadyDoneError(
        message, details=error.details, field="again", suggestions=error.fault.suggestions[:1]
    )
    repeated.key, repeated.outcome = name, outcome
    return repeated


OF_AN_EFFECT = (
    AlreadyDoneError,
    SimilarError,
    InDoubtError,
    KeyReusedError,
    EffectRunningError,
    LedgerUnavailableError,
)
"""What the ledger raises instead of making a call. It is about that call, not about an effect that the call is a part of."""


def in_doubt(name: str, record: EffectRecord) -> InDoubtError:
    """Return the error of an effect whose outcome is not known."""
    question = question_text(name, record)
    error = InDoubtError(
        f"It is not known whether {shortened(call_text(record))} happened, so it is not repeated",
        suggestions=(
            f"Began at {instant(record.started)}. Look it up where it would show, then: {answer_text(name)}",
        ),
        details={"key": name},
    )
    error.key, error.question = name, question
    recording.emit("effects", "doubt", error.fault, name=name, trace_id=error.fault.trace_id or name)
    return error


def key_reused(name: str) -> KeyReusedError:
    """Return the error of a key that is used for another call."""
    return KeyReusedError(
        f"The key {name!r} was used for a call with other arguments",
        executed=Executed.NO,
        suggestions=("Make the first call again, unchanged", "Or use another key for this call"),
    )


def running(name: str, seconds: float) -> EffectRunningError:
    """Return the error of a caller that waited long enough for the one that runs the effect."""
    return EffectRunningError(
        f"{name!r} is still running after {seconds:g} seconds",
        recovery="transient",
        retry_after=1.0,
        executed=Executed.NO,
        details={"key": name},
    )


def may_still_act(name: str, seconds: float) -> EffectRunningError:
    """Return the error of a caller that cannot wait until the time limit of a lost call is over."""
    return EffectRunningError(
        f"An earlier call of {name!r} was lost, and has no effect yet; it may have it for another {seconds:.0f} seconds",
        recovery="transient",
        retry_after=max(1.0, seconds),
        executed=Executed.NO,
        details={"key": name},
    )


def running_around(name: str) -> EffectRunningError:
    """Return the error of a call that is made inside the effect with the same key: to wait for it would never end."""
    return EffectRunningError(
        f"{name!r} is running, and this call is a part of it: give one of the two another key",
        recovery="terminal",
        executed=Executed.NO,
        details={"key": name},
    )


def similar(name: str, record: EffectRecord) -> SimilarError:
    """Return the question about a call that is nearly identical to an earlier one."""
    error = SimilarError(
        f'{shortened(call_text(record))} was called at {instant(record.started)}; pass again="reason" if this call is meant as another one',
        field="again",
        details={"key": name, "called_at": instant(record.started)},
    )
    error.key = name
    return error


def unavailable() -> LedgerUnavailableError:
    """Return the error of a call that was not made because the ledger cannot be reached."""
    return LedgerUnavailableError(
        "The ledger of effects cannot be reached, so the call was not made",
        retry_after=5.0,
        executed=Executed.NO,
    )
