"""The agents of a node by name and version, and which one a request means (section 7.5)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from amends.arcp.wire.messages import Agent as Inventory
from amends.errors.arcp import AgentNotAvailableError, AgentVersionNotAvailableError, InvalidRequestError
from amends.stores.signal import Signal

__all__ = ["Agent", "Agents", "Offer", "inventory", "merged", "parsed", "resolve"]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}", re.ASCII)
_VERSION = re.compile(r"[a-zA-Z0-9.+_-]{1,64}", re.ASCII)


class Agent(msgspec.Struct, frozen=True, gc=False):
    """A function registered under a name and a version."""

    name: str
    version: str
    function: Callable[..., Any]
    repeatable: bool
    streams: bool
    """An async generator: what it yields is its result, chunk by chunk."""
    ref: str
    """`name@version`"""


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """An agent's versions as other nodes see them; the first is the default."""

    name: str
    versions: tuple[str, ...]
    repeatable: tuple[str, ...] = ()


def parsed(reference: str) -> tuple[str, str | None]:
    """
    The name and, where pinned, the version.

    Raises:
        InvalidRequestError: the reference follows no rule of 7.5.

    """
    name, at, version = reference.partition("@")
    if not _NAME.fullmatch(name) or (at and not _VERSION.fullmatch(version)):
        raise InvalidRequestError("The agent's name is malformed", details={"field": "agent"})
    return name, version if at else None


class Agents:
    """What this node can run."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[str, Agent]] = {}
        self._defaults: dict[str, str] = {}
        self._meant: dict[str, Agent] = {}
        self.changed = Signal()
        """Rings when there is another one."""

    def add(
        self, name: str, function: Callable[..., Any], *, version: str, default: bool | None, repeatable: bool
    ) -> Agent:
        """Register a function. The first version of a name is its default until another one says so."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"an agent's name is lower case letters, digits, '.', '_' and '-': {name!r}")
        if not _VERSION.fullmatch(version):
            raise ValueError(f"a version is letters, digits, '.', '+', '_' and '-': {version!r}")
        streams = inspect.isasyncgenfunction(function)
        if not callable(function):
            raise TypeError(f"an agent is an async function of (input, ctx), not {type(function).__name__}")
        versions = self._versions.setdefault(name, {})
        if version in versions:
            raise ValueError(f"agent {name}@{version} is registered already")
        agent = Agent(name, version, function, repeatable, streams, f"{name}@{version}")
        versions[version] = agent
        if default or (default is None and name not in self._defaults):
            self._defaults[name] = version
        self._meant[agent.ref] = agent
        if name in self._defaults:
            self._meant[name] = versions[self._defaults[name]]
        self.changed.notify()
        return agent

    def meant(self, reference: str) -> Agent | None:
        """The agent of this node that a name, with or without a version, stands for."""
        return self._meant.get(reference)

    def all(self) -> list[Agent]:
        """Every agent of every version."""
        return [agent for versions in self._versions.values() for agent in versions.values()]

    def get(self, name: str, version: str) -> Agent | None:
        """The agent of exactly this version, if it is here."""
        return self._versions.get(name, {}).get(version)

    def offers(self) -> tuple[Offer, ...]:
        """What this node tells the others."""
        return tuple(
            Offer(
                name,
                self._ordered(name),
                tuple(version for version, agent in versions.items() if agent.repeatable),
            )
            for name, versions in self._versions.items()
        )

    def _ordered(self, name: str) -> tuple[str, ...]:
        first = self._defaults.get(name)
        rest = (version for version in self._versions[name] if version != first)
        return (first, *rest) if first is not None else tuple(rest)


def resolve(reference: str, offers: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    """
    The name and version a request means, of what all nodes together offer.

    Raises:
        InvalidRequestError: malformed.
        AgentNotAvailableError: nobody has an agent of this name.
        AgentVersionNotAvailableError: nobody has this version of it.

    """
    name, version = parsed(reference)
    versions = offers.get(name)
    if not versions:
        raise AgentNotAvailableError(details={"agent": name})
    if version is None:
        return name, versions[0]
    if version not in versions:
        raise AgentVersionNotAvailableError(
            details={"agent": name, "version": version, "available": list(versions)}
        )
    return name, version


def merged(offers: Iterable[Iterable[Offer]]) -> dict[str, tuple[str, ...]]:
    """What all nodes together offer; the node first asked has the word on defaults."""
    found: dict[str, dict[str, None]] = {}
    for node in offers:
        for offer in node:
            found.setdefault(offer.name, {}).update(dict.fromkeys(offer.versions))
    return {name: tuple(versions) for name, versions in found.items()}


def inventory(offers: Mapping[str, tuple[str, ...]]) -> list[str | Inventory]:
    """The welcome's list of agents."""
    return [Inventory(name, list(versions), versions[0]) for name, versions in sorted(offers.items())]
