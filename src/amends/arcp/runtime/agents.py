"""The agents registered on a node by name and version, and the resolution of agent references (section 7.5)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

import msgspec

from amends.arcp.wire.messages import Agent as Inventory
from amends.core.policy import Policy
from amends.core.validate import check_count, check_kind
from amends.effects.durations import seconds
from amends.errors.arcp import AgentNotAvailableError, AgentVersionNotAvailableError, InvalidRequestError
from amends.stores.signal import Signal

__all__ = [
    "Agent",
    "AgentLimits",
    "Agents",
    "Offer",
    "inventory",
    "merge_offers",
    "parse_reference",
    "resolve",
]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}", re.ASCII)
_COMPARED = 1_000
"""How many names of agents a wrong one is compared with."""
_VERSION = re.compile(r"[a-zA-Z0-9.+_-]{1,64}", re.ASCII)


_MOST_PRIORITY = 100


class AgentLimits(msgspec.Struct, frozen=True, kw_only=True):
    """
    How a node runs the jobs of one agent. See `Runtime.register_agent`.

    >>> AgentLimits.of(concurrency=2, rate=(10, 60)).rate
    (10, 60.0)
    """

    concurrency: int | None = None
    rate: tuple[int, float] | None = None
    time_limit: float | None = None
    priority: int = 0
    retry: Policy | None = None

    @classmethod
    def of(
        cls,
        *,
        concurrency: int | None = None,
        rate: tuple[int, float | timedelta] | None = None,
        time_limit: float | timedelta | None = None,
        priority: int = 0,
        retry: Policy | None = None,
    ) -> AgentLimits:
        """
        Check what a user gave.

        Raises:
            TypeError, ValueError: an option has a wrong value; the text names it.

        """
        if concurrency is not None:
            check_count("concurrency", concurrency)
            if concurrency < 1:
                raise ValueError("concurrency is the number of jobs that run at once: at least 1")
        if type(priority) is not int or not -_MOST_PRIORITY <= priority <= _MOST_PRIORITY:
            raise ValueError(f"priority is a whole number from -100 to 100, not {priority!r}")
        if retry is not None:
            check_kind("retry", retry, Policy, "Policy(attempts=3)")
            if retry.attempts is None:
                raise ValueError("retry needs a number of attempts: Policy(attempts=3)")
        return cls(
            concurrency=concurrency,
            rate=None if rate is None else _checked_rate(rate),
            time_limit=None if time_limit is None else seconds("time_limit", time_limit),
            priority=priority,
            retry=retry,
        )


def _checked_rate(rate: object) -> tuple[int, float]:
    if not isinstance(rate, tuple) or len(rate) != 2:
        raise TypeError(f"rate is a pair of a number of jobs and seconds, such as (10, 60), not {rate!r}")
    count, each = rate
    check_count("rate", count)
    if count < 1:
        raise ValueError("rate starts at least one job in its time: (1, 60)")
    return count, seconds("the time of rate", each)


class Agent(msgspec.Struct, frozen=True, gc=False):
    """A function registered under a name and a version."""

    name: str
    version: str
    function: Callable[..., Any]
    repeatable: bool
    streams: bool
    """Whether the function is an async generator that yields the result in chunks."""
    ref: str
    """`name@version`"""
    limits: AgentLimits = AgentLimits()


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """The versions of one agent that a node can run, as published to other nodes; the first is the default."""

    name: str
    versions: tuple[str, ...]
    repeatable: tuple[str, ...] = ()


def parse_reference(reference: str) -> tuple[str, str | None]:
    """
    Split a reference into the agent's name and its version, None if the reference has no version.

    Raises:
        InvalidRequestError: the reference does not match the syntax of section 7.5.

    """
    name, at, version = reference.partition("@")
    if not _NAME.fullmatch(name) or (at and not _VERSION.fullmatch(version)):
        raise InvalidRequestError("The agent reference is malformed", details={"field": "agent"})
    return name, version if at else None


class Agents:
    """The agents that this node can run."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[str, Agent]] = {}
        self._defaults: dict[str, str] = {}
        self._by_reference: dict[str, Agent] = {}
        self.changed = Signal()
        """Notified when an agent is added."""

    def add(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        version: str,
        default: bool | None,
        repeatable: bool,
        limits: AgentLimits | None = None,
    ) -> Agent:
        """Register a function. The first version of a name is the default until a later one sets `default=True`."""
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"an agent's name must consist of lower case letters, digits, '.', '_' and '-', not {name!r}"
            )
        if not _VERSION.fullmatch(version):
            raise ValueError(
                f"a version must consist of letters, digits, '.', '+', '_' and '-', not {version!r}"
            )
        streams = inspect.isasyncgenfunction(function)
        if not callable(function):
            raise TypeError(
                f"an agent must be an async function of (input, ctx), not {type(function).__name__}"
            )
        versions = self._versions.setdefault(name, {})
        if version in versions:
            raise ValueError(f"agent {name}@{version} is registered already")
        agent = Agent(
            name, version, function, repeatable, streams, f"{name}@{version}", limits or AgentLimits()
        )
        versions[version] = agent
        if default or (default is None and name not in self._defaults):
            self._defaults[name] = version
        self._by_reference[agent.ref] = agent
        if name in self._defaults:
            self._by_reference[name] = versions[self._defaults[name]]
        self.changed.notify()
        return agent

    def lookup(self, reference: str) -> Agent | None:
        """Return this node's agent for `name` or `name@version`, or None."""
        return self._by_reference.get(reference)

    def all(self) -> list[Agent]:
        """Return every version of every agent."""
        return [agent for versions in self._versions.values() for agent in versions.values()]

    def by_priority(self) -> list[list[Agent]]:
        """Return all agents in groups of one priority, the highest first."""
        groups: dict[int, list[Agent]] = {}
        for agent in self.all():
            groups.setdefault(agent.limits.priority, []).append(agent)
        return [groups[priority] for priority in sorted(groups, reverse=True)]

    def offers(self) -> tuple[Offer, ...]:
        """Return what this node publishes to other nodes about its agents."""
        return tuple(
            Offer(
                name,
                self._default_first(name),
                tuple(version for version, agent in versions.items() if agent.repeatable),
            )
            for name, versions in self._versions.items()
        )

    def _default_first(self, name: str) -> tuple[str, ...]:
        first = self._defaults.get(name)
        others = (version for version in self._versions[name] if version != first)
        return (first, *others) if first is not None else tuple(others)


def resolve(reference: str, offers: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    """
    Return the name and version that a reference means, given what all nodes offer.

    Raises:
        InvalidRequestError: the reference is malformed.
        AgentNotAvailableError: no node has an agent of this name.
        AgentVersionNotAvailableError: no node has this version of the agent.

    """
    name, version = parse_reference(reference)
    versions = offers.get(name)
    if not versions:
        nearest = get_close_matches(name, list(offers)[:_COMPARED])
        if not nearest:
            raise AgentNotAvailableError(details={"agent": name})
        raise AgentNotAvailableError(
            f"No agent of this name is registered; the nearest: {', '.join(nearest)}",
            details={"agent": name, "nearest": nearest},
        )
    if version is None:
        return name, versions[0]
    if version not in versions:
        raise AgentVersionNotAvailableError(
            details={"agent": name, "version": version, "available": list(versions)}
        )
    return name, version


def merge_offers(offers: Iterable[Iterable[Offer]]) -> dict[str, tuple[str, ...]]:
    """Combine the offers of several nodes; the first node that offers an agent sets its default version."""
    found: dict[str, dict[str, None]] = {}
    for node in offers:
        for offer in node:
            found.setdefault(offer.name, {}).update(dict.fromkeys(offer.versions))
    return {name: tuple(versions) for name, versions in found.items()}


def inventory(offers: Mapping[str, tuple[str, ...]]) -> list[str | Inventory]:
    """Return the list of agents for `session.welcome`."""
    return [Inventory(name, list(versions), versions[0]) for name, versions in sorted(offers.items())]
