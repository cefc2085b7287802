"""
Plans: which failures are sent, where and how often.

A plan is read from TOML, or made from the kinds that a service has examples of. The same seed gives the same plan.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from amends.rehearse.examples import Example, examples_of
from amends.rehearse.kinds import BUILT, CONNECTION, KINDS, STREAMING

__all__ = ["Failure", "Plan", "ServiceOptions", "kinds_of", "read_plan"]

_Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class ServiceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One service of a plan."""

    name: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]
    url: str = ""
    """The address of a test service to which calls are forwarded; empty: a fake answers."""
    fake: str = ""
    """`openai`, `anthropic`, `rest`, `mcp` or `a2a`; empty: by the name."""
    hosts: list[str] = []
    """Further hosts that stand for this service in the process."""
    env: str = ""
    """The variable that holds its address; empty: by the name."""
    keys: bool | None = None
    """Whether it honours idempotency keys; empty: as its service file says."""
    key_header: str = ""
    script: list[Any] = []
    """Answers of a fake model, in order: a text, or a table with `tool` and `arguments`."""


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One planned failure."""

    service: str
    kind: str
    example: str = ""
    """The id of an example; empty: one of this kind, chosen by the seed."""
    route: str = ""
    """Only calls of this route count, as `POST /v1/*`; empty: all."""
    call: Annotated[int, Meta(ge=1)] | None = None
    """Which of the calls that count meets the failure; None: chosen by the seed."""
    rate: Annotated[float, Meta(gt=0, le=1)] | None = None
    """Instead of `call`: the share of the calls that meet it."""
    repeat: Annotated[int, Meta(ge=1, le=1000)] = 1
    """How many calls meet it."""
    until: _Seconds | None = None
    """Seconds after its first time, when it ends."""

    @property
    def id(self) -> str:
        """The service and the kind."""
        return f"{self.service}/{self.kind}"

    def concerns(self, method: str, path: str) -> bool:
        """
        Return whether a call counts for this failure.

        >>> Failure("orders", "rate", route="POST /orders*").concerns("POST", "/orders/1")
        True
        """
        return not self.route or fnmatchcase(f"{method} {path}", self.route) or fnmatchcase(path, self.route)


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What a rehearsal does. Without `failure` there is one of every kind that the services have examples of."""

    seed: int = 0
    wait: _Seconds = 2.0
    """The longest wait that a service announces: longer ones of examples are shortened to it."""
    patience: _Seconds = 30.0
    """Seconds after which a program that waits for a silent connection counts as stuck."""
    calls: Annotated[int, Meta(ge=1)] = 6
    """Calls for one failure above which layers of retries multiply."""
    together: bool = False
    """Whether all failures happen in one run; otherwise each has a run of its own."""
    kinds: list[str] = []
    """Only these kinds; empty: all."""
    service: list[ServiceOptions] = []
    failure: list[Failure] = []


def read_plan(source: str | Path | Mapping[str, Any]) -> Plan:
    """
    Return a plan from a file in TOML, or from a mapping of the same form.

    >>> read_plan({"seed": 7, "failure": [{"service": "openai", "kind": "quota"}]}).failure[0].id
    'openai/quota'

    Raises:
        ValueError: it is no plan; the message says where.
        OSError: the file cannot be read.

    """
    if not isinstance(source, Mapping):
        try:
            source = tomllib.loads(Path(source).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{source}: {error}") from None
    try:
        plan = msgspec.convert(source, Plan)
    except msgspec.ValidationError as error:
        raise ValueError(f"the plan is wrong: {error}") from None
    for name in (*plan.kinds, *(each.kind for each in plan.failure)):
        if name not in KINDS:
            raise ValueError(f"there is no kind of failure {name!r}; there are {', '.join(KINDS)}")
    for each in plan.failure:
        if each.example and _example(each) is None:
            raise ValueError(
                f"{each.service} has no example {each.example!r} of {each.kind}; it has {_ids(each.service)}"
            )
        if each.call is not None and each.rate is not None:
            raise ValueError(f"{each.id}: name `call` or `rate`, not both")
    return plan


def _ids(service: str) -> str:
    return ", ".join(each.id for each in examples_of(service)) or "none"


def _example(failure: Failure) -> Example | None:
    return next((each for each in examples_of(failure.service) if each.id == failure.example), None)


def kinds_of(service: str, *, connections: bool, streams: bool) -> tuple[str, ...]:
    """
    Return the kinds of failure that a service can send, in the order of reports.

    >>> kinds_of("orders", connections=False, streams=False)[:3]
    ('rate', 'quota', 'overload')

    Args:
        service: its name.
        connections: whether failures of the connection can be produced, which needs the interception in the process.
        streams: whether the program asks for streams.

    """
    known = {each.kind for each in examples_of(service)}
    built = BUILT - (set() if connections else CONNECTION)
    found = (known | built) - (set() if streams else STREAMING)
    return tuple(name for name in KINDS if name in found)


def choose_example(failure: Failure, dice: Random, longest: float) -> Example | None:
    """Return the example that a failure sends: the named one, or one of its kind. Those with a wait come first."""
    if failure.example:
        return _example(failure)
    candidates = [each for each in examples_of(failure.service) if each.kind == failure.kind]
    announcing = [each for each in candidates if each.wait is not None]
    preferred = announcing if failure.kind in {"rate", "overload", "busy"} else []
    pool: Sequence[Example] = preferred or candidates
    return dice.choice(pool) if pool else None


def planned(failures: Iterable[Failure], seed: int, places: Mapping[str, int]) -> list[Failure]:
    """
    Return the failures with a place each: a call between the first and the last of the program, chosen by the seed.

    >>> planned([Failure("orders", "rate")], 7, {"orders/rate": 4})[0].call
    1

    Args:
        failures: the failures.
        seed: the seed.
        places: id of a failure → how many calls of the program it may meet.

    """
    found = []
    for each in failures:
        placed = each
        if each.call is None and each.rate is None:
            dice = Random(f"{seed} {each.id} {each.route}")  # noqa: S311 - reproducible, not secret
            placed = msgspec.structs.replace(each, call=dice.randint(1, max(1, places.get(each.id, 1))))
        found.append(placed)
    return found
