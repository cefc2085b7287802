"""Runs the three agents one after the other with the same services, and scores them by the services' call record."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.demo.agents import Endpoints, StepContext, StepFunction, plain, with_amends, with_tenacity
from amends.demo.call_record import Call, Tally
from amends.demo.scenario import STEPS, make_scenario
from amends.errors.cli import InternalError
from amends.recovery import Event, add_hook, remove_hook

__all__ = [
    "AGENTS",
    "Observer",
    "Report",
    "Score",
    "ServiceProcess",
    "StepResult",
    "compare",
    "running_services",
]

AGENTS: dict[str, dict[str, StepFunction]] = {
    "plain clients": plain.STEP_FUNCTIONS,
    "with tenacity": with_tenacity.STEP_FUNCTIONS,
    "with amends": with_amends.STEP_FUNCTIONS,
}

TIMEOUT = 120.0
"""Seconds for one step of one agent, and for the start of the services; on a busy machine 30 s is not enough."""


class StepResult(msgspec.Struct, frozen=True):
    """How one step ended for one agent."""

    step: str
    done: bool
    seconds: float
    read: int
    """Bytes of error text that a model would have to read."""
    error: str | None = None
    """The class of the exception."""
    effects: int = 0
    """How often the step took effect, by the service's record."""


class Score(msgspec.Struct, frozen=True):
    """The results of one agent."""

    agent: str
    steps: tuple[StepResult, ...]
    tallies: dict[str, Tally]

    @property
    def finished(self) -> int:
        """Steps that succeeded."""
        return sum(step.done for step in self.steps)

    @property
    def calls(self) -> int:
        """Calls that reached a service."""
        return sum(tally.calls for tally in self.tallies.values())

    @property
    def wasted(self) -> int:
        """Calls that could not succeed, as the service had announced before."""
        return sum(tally.wasted for tally in self.tallies.values())

    @property
    def duplicates(self) -> int:
        """Effects that happened more than once."""
        return sum(max(0, self.tallies[step.name].effects - 1) for step in STEPS if step.effect)

    @property
    def seconds(self) -> float:
        """Seconds for all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def read(self) -> int:
        """Bytes of error text that a model would have to read."""
        return sum(step.read for step in self.steps)


class Report(msgspec.Struct, frozen=True):
    """The scores of all agents."""

    seed: int
    scores: tuple[Score, ...]


class Observer:
    """Base class of observers of a comparison: its methods do nothing."""

    def services_starting(self) -> None:
        """The process of the services is being started."""

    def agent_started(self, name: str) -> None:
        """The next agent starts."""

    def step_started(self, name: str) -> None:
        """The agent starts the next step."""

    def call_received(self, call: Call) -> None:
        """A service received a call."""

    def recovery_event(self, event: Event) -> None:
        """Recovery made a decision."""

    def client_recovered(self, how: str) -> None:
        """A client recovered by itself: the ARCP client resumed its session."""

    def step_finished(self, result: StepResult) -> None:
        """A step ended."""


class _LogObserver(logging.Handler):
    """Passes what the ARCP client logs about its session to an observer."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(logging.INFO)
        self._observer = observer

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one record on."""
        self._observer.client_recovered(record.getMessage())


class ServiceProcess:
    """The parent's handle of the services' process."""

    def __init__(self, process: asyncio.subprocess.Process, on_call: Callable[[Call], None]) -> None:
        self._process = process
        self._on_call = on_call
        self._replies: asyncio.Queue[Any] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read_lines())

    async def endpoints(self) -> Endpoints:
        """Wait until all services run, and return their addresses."""
        return msgspec.convert(await self._reply(), Endpoints)

    async def tally(self, command: str = "tally") -> dict[str, Tally]:
        """Return the counts of each step since the last reset."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(f"{command}\n".encode())
        await stdin.drain()
        return msgspec.convert(await self._reply(), dict[str, Tally])

    async def reset(self) -> None:
        """Start a new call record."""
        await self.tally("reset")

    async def wait(self) -> None:
        """Wait until the process exits."""
        await self._process.wait()

    async def close(self) -> None:
        """Close the process's stdin, which makes it exit; kill it if it does not exit within a second."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(1):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reading

    async def _reply(self) -> Any:
        async with asyncio.timeout(TIMEOUT):  # wait_for of Python 3.11 can lose a cancellation
            reply = await self._replies.get()
        if reply is None:
            raise InternalError(
                "the demo's services exited unexpectedly",
                suggestions=["Run python -m amends.demo.host to see the reason"],
            )
        return reply

    async def _read_lines(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        while line := await stdout.readline():
            for kind, value in msgspec.json.decode(line).items():
                if kind == "call":
                    self._on_call(msgspec.convert(value, Call))
                else:
                    self._replies.put_nowait(value)
        self._replies.put_nowait(None)


@contextlib.asynccontextmanager
async def running_services(seed: int, on_call: Callable[[Call], None]) -> AsyncIterator[ServiceProcess]:
    """Start the process of the five services, and stop it at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "amends.demo.host", "--seed", str(seed)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches only the parent; the services exit when their stdin closes
    )
    services = ServiceProcess(process, on_call)
    try:
        yield services
    finally:
        await services.close()


async def compare(seed: int, observer: Observer | None = None) -> Report:
    """Run all agents and return their scores."""
    observer = observer or Observer()
    observer.services_starting()
    async with running_services(seed, observer.call_received) as services:
        endpoints = await services.endpoints()
        scores = [
            await _run_agent(name, functions, endpoints, seed, services, observer)
            for name, functions in AGENTS.items()
        ]
    return Report(seed, tuple(scores))


async def _run_agent(
    name: str,
    functions: dict[str, StepFunction],
    endpoints: Endpoints,
    seed: int,
    services: ServiceProcess,
    observer: Observer,
) -> Score:
    observer.agent_started(name)
    await services.reset()
    add_hook(observer.recovery_event)
    arcp = logging.getLogger("amends.arcp")
    handler, level = _LogObserver(observer), arcp.level
    arcp.addHandler(handler)
    arcp.setLevel(logging.INFO)
    try:
        results = []
        for step in STEPS:
            observer.step_started(step.name)
            result = await _run_step(step.name, functions[step.name], endpoints, seed)
            results.append(replace(result, effects=(await services.tally())[step.name].effects))
            observer.step_finished(results[-1])
    finally:
        remove_hook(observer.recovery_event)
        arcp.removeHandler(handler)
        arcp.setLevel(level)
    return Score(name, tuple(results), await services.tally())


async def _run_step(step: str, function: StepFunction, endpoints: Endpoints, seed: int) -> StepResult:
    read = 0

    def count_model_text(text: str) -> None:
        nonlocal read
        read += len(text.encode())

    context = StepContext(endpoints, make_scenario(seed).requested_time, count_model_text)
    started = time.perf_counter()
    error: str | None = None
    try:
        async with asyncio.timeout(TIMEOUT):
            done = bool(await function(context))
    except Exception as exc:  # noqa: BLE001 - an exception of an agent's client is the step's result
        done, error = False, type(exc).__name__
        read += len(str(exc).encode())
    if (task := asyncio.current_task()) is not None and task.cancelling():
        raise asyncio.CancelledError  # Ctrl-C, and the client raised another exception while it closed
    return StepResult(step, done, time.perf_counter() - started, read, error)
