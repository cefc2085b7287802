"""
What a task consists of: one step, a sequence, a fan-out, or a graph. Pure; what is wrong is found before anything runs.

A step's payload may use what other steps gave: `result_of("outline")`, or a part of it, `result_of("outline", "/title")`.
It is plain JSON, so it survives on the store, and it makes the one step wait for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from amends.errors.task import InvalidFieldValueError, TaskGraphCycleError

__all__ = ["Step", "fan_out", "filled", "graph", "result_of", "sequence"]

_FROM = "$from"
_DEPTH = 64


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One call of one agent."""

    name: str
    type: str
    """The capability."""
    payload: Any = None
    agent: str | None = None
    after: tuple[str, ...] = ()
    """Steps that have to be finished first, beside those whose results the payload uses."""
    optional: bool = False
    """Whether the whole can do without it."""
    retry_policy: dict[str, Any] | None = None


def result_of(step: str, at: str = "") -> dict[str, str]:
    """
    What `step` gave, or the part a JSON Pointer names: to be put into another step's payload.

    >>> result_of("outline", "/title")
    {'$from': 'outline', 'at': '/title'}
    """
    return {_FROM: step, "at": at} if at else {_FROM: step}


def sequence(*steps: Step) -> tuple[Step, ...]:
    """Steps that are done one after the other: each waits for the one before it, and for whatever it names itself."""
    after = [(), *((step.name,) for step in steps[:-1])]
    return graph(
        msgspec.structs.replace(step, after=tuple(dict.fromkeys((*step.after, *earlier))))
        for step, earlier in zip(steps, after, strict=True)
    )


def fan_out(*steps: Step, partial: bool = False) -> tuple[Step, ...]:
    """All at once. With `partial` it is enough that one of them succeeds; what failed is reported beside."""
    return graph(msgspec.structs.replace(step, optional=step.optional or partial) for step in steps)


def graph(steps: Iterable[Step]) -> tuple[Step, ...]:
    """
    Steps in any order that wait for one another.

    Raises:
        FaultError: TASK_GRAPH_CYCLE naming the cycle; INVALID_FIELD_VALUE for a name that is there twice or not at all.
    """
    found = tuple(steps)
    if not found:
        raise InvalidFieldValueError("A plan has at least one step", field="/steps")
    seen: set[str] = set()
    for name in (step.name for step in found):
        if name in seen or not name or ">" in name:
            raise InvalidFieldValueError(
                f"Step names are unique, not empty and without “>”: {name!r}",
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
                    f"Step {name!r} waits for {other!r}, which is no step of this plan",
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
    """The steps this one waits for: those it names, and those its payload uses."""
    return tuple(dict.fromkeys((*step.after, *_used(step.payload, _DEPTH))))


def _used(value: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    if isinstance(value, Mapping):
        if isinstance(value.get(_FROM), str):
            yield value[_FROM]
            return
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _used(item, depth - 1)


def _cycle(before: Mapping[str, Sequence[str]]) -> list[str]:
    """One cycle, its first name again at the end; empty when there is none. Iterative: plans may be long."""
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
                # Written in the order things would have to happen, not in that of the arrows back.
                circle = path[path.index(following) :]
                return [following, *reversed(circle)]
            elif following not in done:
                path.append(following)
                on_path.add(following)
                ways.append(iter(before[following]))
    return []


def filled(payload: Any, results: Callable[[str], Any], depth: int = _DEPTH) -> Any:
    """
    The payload with the results it uses put in; `results` gives what a step gave.

    Raises:
        FaultError: INVALID_FIELD_VALUE when a result has no such part.
    """
    if depth == 0:
        return payload
    if isinstance(payload, Mapping):
        source = payload.get(_FROM)
        if isinstance(source, str):
            return _part(results(source), payload.get("at", ""), source)
        return {name: filled(value, results, depth - 1) for name, value in payload.items()}
    if isinstance(payload, list | tuple):
        return [filled(value, results, depth - 1) for value in payload]
    return payload


def _part(value: Any, at: Any, source: str) -> Any:
    for token in str(at).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidFieldValueError(
                f"The result of step {source!r} has no part {at}",
                field=str(at),
                details={"name": source, "pointer": str(at)},
            ) from None
    return value
