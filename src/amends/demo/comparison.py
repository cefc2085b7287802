"""Three agents, one after the other, before the same services; and the score the services' own memory gives."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.demo.agents import Act, Errand, Places, plain, with_amends, with_tenacity
from amends.demo.call_record import Call, Tally
from amends.demo.scenario import STEPS, tell
from amends.errors.cli import InternalError
from amends.recovery import Event, add_hook, remove_hook

__all__ = ["AGENTS", "Audience", "Deed", "Report", "Score", "Services", "perform", "services"]

AGENTS: dict[str, dict[str, Act]] = {
    "plain clients": plain.ACTS,
    "with tenacity": with_tenacity.ACTS,
    "with amends": with_amends.ACTS,
}

PATIENCE = 120.0
"""Seconds one step of one agent may take, and the services to come up: on a busy machine, half a minute is soon over."""


class Deed(msgspec.Struct, frozen=True):
    """How one step ended for one agent."""

    step: str
    done: bool
    seconds: float
    read: int
    """Bytes of error text a model would have had to read."""
    error: str | None = None
    """The class of what was raised."""
    effects: int = 0
    """How often it really happened, by the service's own word."""


class Score(msgspec.Struct, frozen=True):
    """One agent's attempt at the job."""

    agent: str
    deeds: tuple[Deed, ...]
    tallies: dict[str, Tally]

    @property
    def finished(self) -> int:
        """Steps that got done."""
        return sum(deed.done for deed in self.deeds)

    @property
    def calls(self) -> int:
        """Calls that reached a service."""
        return sum(tally.calls for tally in self.tallies.values())

    @property
    def wasted(self) -> int:
        """Calls that could not succeed, and whose caller had been told so."""
        return sum(tally.wasted for tally in self.tallies.values())

    @property
    def duplicates(self) -> int:
        """Things that happened once more than they were wanted."""
        return sum(max(0, self.tallies[step.name].effects - 1) for step in STEPS if step.effect)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return sum(deed.seconds for deed in self.deeds)

    @property
    def read(self) -> int:
        """Bytes of error text a model would have had to read."""
        return sum(deed.read for deed in self.deeds)


class Report(msgspec.Struct, frozen=True):
    """The whole evening."""

    seed: int
    scores: tuple[Score, ...]


class Audience:
    """Gets told what happens as it happens. Does nothing; `view` has one that writes."""

    def agent(self, name: str) -> None:
        """The next one begins."""

    def step(self, name: str) -> None:
        """It turns to the next step."""

    def call(self, call: Call) -> None:
        """A service saw a call."""

    def event(self, event: Event) -> None:
        """Amends decided something."""

    def deed(self, deed: Deed) -> None:
        """A step ended."""


class Services:
    """The services' process, as its parent sees it."""

    def __init__(self, process: asyncio.subprocess.Process, heard: Callable[[Call], None]) -> None:
        self._process = process
        self._heard = heard
        self._answers: asyncio.Queue[Any] = asyncio.Queue()
        self._listening = asyncio.create_task(self._listen())

    async def places(self) -> Places:
        """Where everything is, once everything is up."""
        return msgspec.convert(await self._answer(), Places)

    async def tally(self, word: str = "tally") -> dict[str, Tally]:
        """What has happened since the last reset."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(f"{word}\n".encode())
        await stdin.drain()
        return msgspec.convert(await self._answer(), dict[str, Tally])

    async def reset(self) -> None:
        """Begin anew."""
        await self.tally("reset")

    async def ended(self) -> None:
        """Wait until it ends by itself, which it does not."""
        await self._process.wait()

    async def close(self) -> None:
        """End it: it ends with its input, and is ended if it does not do so at once; it keeps nothing worth waiting for."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 1)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._listening

    async def _answer(self) -> Any:
        answer = await asyncio.wait_for(self._answers.get(), PATIENCE)
        if answer is None:
            raise InternalError(
                "the services of the show ended by themselves",
                suggestions=["See why with: python -m amends.demo.host"],
            )
        return answer

    async def _listen(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        while line := await stdout.readline():
            for kind, value in msgspec.json.decode(line).items():
                if kind == "call":
                    self._heard(msgspec.convert(value, Call))
                else:
                    self._answers.put_nowait(value)
        self._answers.put_nowait(None)


@contextlib.asynccontextmanager
async def services(seed: int, heard: Callable[[Call], None]) -> AsyncIterator[Services]:
    """All five services up, and gone afterwards."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "amends.demo.host", "--seed", str(seed)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us: they end with their input, and have nothing to say about it
    )
    found = Services(process, heard)
    try:
        yield found
    finally:
        await found.close()


async def perform(seed: int, audience: Audience | None = None) -> Report:
    """Let every agent try, and say how it went."""
    audience = audience or Audience()
    async with services(seed, audience.call) as found:
        places = await found.places()
        scores = [await _attempt(name, acts, places, seed, found, audience) for name, acts in AGENTS.items()]
    return Report(seed, tuple(scores))


async def _attempt(
    name: str, acts: dict[str, Act], places: Places, seed: int, found: Services, audience: Audience
) -> Score:
    audience.agent(name)
    await found.reset()
    add_hook(audience.event)
    try:
        deeds = []
        for step in STEPS:
            audience.step(step.name)
            deed = await _do(step.name, acts[step.name], places, seed)
            deeds.append(replace(deed, effects=(await found.tally())[step.name].effects))
            audience.deed(deeds[-1])
    finally:
        remove_hook(audience.event)
    return Score(name, tuple(deeds), await found.tally())


async def _do(step: str, act: Act, places: Places, seed: int) -> Deed:
    read = 0

    def told(_: str, words: str) -> None:
        nonlocal read
        read += len(words.encode())

    errand = Errand(places, tell(seed).wished, told)
    begun = time.perf_counter()
    error: str | None = None
    try:
        answer = await asyncio.wait_for(act(errand), PATIENCE)
        done = bool(answer)
    except Exception as exc:  # noqa: BLE001 - whatever an agent's client raises ends its step, and is the point here
        done, error = False, type(exc).__name__
        read += len(str(exc).encode())
    return Deed(step, done, time.perf_counter() - begun, read, error)
