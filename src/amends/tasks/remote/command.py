"""Commands as capabilities: the payload as JSON on stdin; the CLI agent spec's envelope, other JSON or text on stdout."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from amends.core.fault import Fault
from amends.core.named_options import NamedOptions
from amends.core.text import decoded, uncoloured
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.errors.task import CapabilityNotFoundError
from amends.process import arun
from amends.recovery.policies import NONE
from amends.tasks.agent import Agent
from amends.tasks.capability import Hook
from amends.tasks.context import Context

__all__ = ["Command", "CommandAgent"]


_NOT_INSTALLED = frozenset({"ENOENT", "EACCES", "ENOTDIR", "ENOEXEC"})


class Command(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedOptions):
    """
    One command, and what may be assumed about running it. `CommandAgent` takes them as its capabilities.

        deploy = Command(argv=["deploy", "--request-id", "{key}"], keyed=True, timeout=300)
        agent = CommandAgent("deploy-agent", {"deploy": deploy})
    """

    argv: Sequence[str]
    """The command and its arguments, run without a shell. `{key}` is replaced by the step's idempotency key."""
    read_only: bool = False
    idempotent: bool = False
    keyed: bool = False
    """The command recognises a repeat by `{key}` or by the environment variable AMENDS_KEY."""
    profile: str | None = None
    """The exit codes it uses: v1, v2, or the profile of a known tool."""
    cwd: str | None = None
    undo: Hook | None = None
    verify: Hook | None = None
    timeout: float | None = None


class CommandAgent(Agent):
    """
    An agent that runs commands.

        git = CommandAgent("git-agent", {"status": Command(argv=["git", "status"], read_only=True, profile="git")})

    When a command is stopped by a time-out or a cancelled task, its whole process group is stopped.
    """

    @explains_wrong_calls
    def __init__(
        self,
        name: str,
        commands: Mapping[str, Command],
        *,
        env: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        **options: Any,
    ) -> None:
        """
        Args:
            name: the agent's name.
            commands: its capabilities.
            env: the environment of the commands; by default that of this process.
            timeout: seconds for one run, unless the command has its own.
            options: as for `Agent`.
        """
        super().__init__(name, timeout=timeout, **options)
        for capability, command in commands.items():
            self.relay(
                capability,
                partial(_run, command, env, command.timeout or timeout),
                read_only=command.read_only,
                idempotent=command.idempotent,
                keyed=command.keyed,
                undo=command.undo,
                verify=command.verify,
                timeout=None,
            )


async def _run(
    command: Command, env: Mapping[str, str] | None, seconds: float, payload: object, ctx: Context
) -> object:
    left = ctx.time_left
    try:
        done = await arun(
            [part.replace("{key}", ctx.key) for part in command.argv],
            read_only=command.read_only,
            mutating=not (command.read_only or command.idempotent or command.keyed),
            profile=command.profile,
            policy=NONE,
            timeout=seconds if left is None else min(seconds, max(left, 0.001)),
            stdin=b"" if payload is None else msgspec.json.encode(payload),
            env={**(os.environ if env is None else env), "AMENDS_KEY": ctx.key},
            cwd=command.cwd,
        )
    except FaultError as error:
        if not _cannot_start(error.fault):
            raise
        raise CapabilityNotFoundError(
            "The command of this capability is not installed, or cannot be started",
            details={"agent": ctx.agent, "capability": ctx.capability},
        ) from error
    return _content(done.stdout)


def _cannot_start(fault: Fault) -> bool:
    """Whether the program, its interpreter or its directory does not exist, or is not allowed to run."""
    own = fault.origin is not None and fault.origin.path == "exit"
    return own and (fault.details or {}).get("errno") in _NOT_INSTALLED


def _content(stdout: bytes | str) -> object:
    """The output of a successful run: the data of an envelope, other JSON, or the text."""
    text = decoded(stdout)
    try:
        found: object = msgspec.json.decode(uncoloured(text))
    except (msgspec.DecodeError, UnicodeError):
        return text
    if isinstance(found, dict) and found.get("ok") is True:
        return found.get("data", found.get("result"))
    return found
