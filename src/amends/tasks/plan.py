"""
The plan of a task: one step, a sequence, a fan-out, or a graph. Pure; a plan is checked before anything runs.

A step's payload may refer to the result of another step, `result_of("outline")`, or to a part of it,
`result_of("outline", "/title")`. The reference is plain JSON, so it can be stored, and the step waits for the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from amends.core.named_options import NamedOptions
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.task import InvalidFieldValueError, TaskGraphCycleError

__all__ = ["Step", "fan_out", "fill_results", "graph", "result_of", "sequence"]

_FROM = "$from"
_DEPTH = 64


class Step(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", metaclass=NamedOptions
):
    """
    One step of a plan: a call of one capability. `sequence`, `fan_out` and `graph` make plans of them.

    >>> draft = Step(name="draft", type="write", payload={"title": result_of("outline", "/title")})
    >>> needs(draft)
    ('outline',)
    """

    name: str
    type: str
    """The name of the capability."""
    payload: object = None
    agent: str | None = None
    after: tuple[str, ...] = ()
    """Steps that have to be finished first, in addition to those whose results the payload uses."""
    optional: bool = False
    """Whether the plan can be completed if this step fails."""
    retry_policy: dict[str, object] | None = None


@explains_wrong_calls
def result_of(step: str, at: str = "") -> dict[str, str]:
    """
    Refer to the result of `step`, or to the part of it at a JSON Pointer, in another step's payload.

    >>> result_of("outline", "/title")
    {'$from': 'outline', 'at': '/title'}
    """
    return {_FROM: step, "at": at} if at else {_FROM: step}


@explains_wrong_calls
def sequence(*steps: Step) -> tuple[Step, ...]:
    """
    A plan whose steps run one after the other. Each step also waits for the steps in its own `after`.

    >>> trip = sequence(Step(name="hotel", type="book"), Step(name="car", type="book"))
    >>> trip[1].after
    ('hotel',)
    """
    return graph(
        msgspec.structs.replace(
            step,
            after=tuple(dict.fromkeys((*step.after, *(earlier.name for earlier in steps[:number][-1:])))),
        )
        for number, step in enumerate(steps)
    )


@explains_wrong_calls
def fan_out(*steps: Step, partial: bool = False) -> tuple[Step, ...]:
    """
    A plan whose steps run at once. With `partial`, one success is enough, and the failures are in `Response.failures`.

    >>> search = fan_out(Step(name="a", type="search"), Step(name="b", type="search"), partial=True)
    >>> [step.optional for step in search]
    [True, True]
    """
    return graph(msgspec.structs.replace(step, optional=step.optional or partial) for step in steps)


@explains_wrong_calls
def graph(steps: Iterable[Step]) -> tuple[Step, ...]:
    """
    A plan of steps in any order that wait for one another.

    >>> plan = graph([
    ...     Step(name="draft", type="write", payload=result_of("outline")),
    ...     Step(name="outline", type="plan"),
    ... ])
    >>> plan[0].after
    ('outline',)

    Raises:
        FaultError: TASK_GRAPH_CYCLE with the cycle; INVALID_FIELD_VALUE for a duplicate or unknown name, or for no steps.
    """
    found = tuple(steps)
    if not found:
        raise InvalidFieldValueError("A plan must have at least one step", field="/steps")
    seen: set[str] = set()
    for name in (step.name for step in found):
        if name in seen or not name or ">" in name:
            raise InvalidFieldValueError(
                f"A step name must be unique, not empty and without “>”: {name!r}",
                field="/steps",
                details={"name": name},
            )
        seen.add(name)
    whole = tuple(msgspec.structs.replace(step, after=needs(step)) for step in found)
    before = {step.name: step.after for step in whole}
    for name, earlier in before.items():
        for other in earlier:
            if other not in before:
                raise InvalidFieldValueError(
                    f"Step {name!r} waits for {other!r}, which is not a step of this plan",
                    field="/steps",
                    details={"name": other, "step": name},
                )
    cycle = _cycle(before)
    if cycle:
        raise TaskGraphCycleError(
            f"Circular dependency detected: {' → '.join(cycle)}", details={"cycle": cycle}
        )
    return whole


def needs(step: Step) -> tuple[str, ...]:
    """The steps that a step waits for: those in `after`, and those whose results its payload uses."""
    return tuple(dict.fromkeys((*step.after, *_referenced_steps(step.payload, _DEPTH))))


def _referenced_steps(value: object, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    if isinstance(value, Mapping):
        if isinstance(value.get(_FROM), str):
            yield value[_FROM]
            return
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _referenced_steps(item, depth - 1)


def _cycle(before: Mapping[str, Sequence[str]]) -> list[str]:
    """One cycle, with its first name repeated at the end; empty if there is none. Iterative, because plans may be long."""
    done: set[str] = set()
    for root in before:
        if root in done:
            continue
        path: list[str] = [root]
        on_path = {root}
        ways = [iter(before[root])]
        while ways:
            following = next(ways[-1], None)
            if following is None:
                done.add(path[-1])
                on_path.discard(path.pop())
                ways.pop()
            elif following in on_path:
                # In the order in which the steps would have to run.
                circle = path[path.index(following) :]
                return [following, *reversed(circle)]
            elif following not in done:
                path.append(following)
                on_path.add(following)
                ways.append(iter(before[following]))
    return []


def fill_results(payload: object, results: Callable[[str], object], depth: int = _DEPTH) -> object:
    """
    Replace the references in a payload by the results of the steps, which `results` returns.

    Raises:
        FaultError: INVALID_FIELD_VALUE if a result has no such part.
    """
    if depth == 0:
        return payload
    if isinstance(payload, Mapping):
        source = payload.get(_FROM)
        if isinstance(source, str):
            return _value_at(results(source), payload.get("at", ""), source)
        return {name: fill_results(value, results, depth - 1) for name, value in payload.items()}
    if isinstance(payload, list | tuple):
        return [fill_results(value, results, depth - 1) for value in payload]
    return payload


def _value_at(value: Any, at: object, source: str) -> object:
    for token in str(at).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidFieldValueError(
                f"The result of step {source!r} has no value at {at}",
                field=str(at),
                details={"name": source, "pointer": str(at)},
            ) from None
    return value
