"""One run of a scenario with a contender and a seed, and its record."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from bench.recovery.blocking import BlockingThreads, block_on
from bench.recovery.clock import VirtualLoop, run_virtual
from bench.recovery.load import Arrival
from bench.recovery.services import Service
from bench.recovery.wire import LostError, Request, Response


class Process:
    """One client process. Its operations share the clock, the credential and the service."""

    def __init__(
        self, loop: VirtualLoop, service: Service, threads: BlockingThreads, index: int, seed: int
    ) -> None:
        self.loop = loop
        self.service = service
        self.threads = threads
        self.index = index
        self.seed = seed
        self.token = 0

    def now(self) -> float:
        return self.loop.now

    async def refresh(self) -> None:
        """Fetch a new credential. Every later call is sent with it."""
        await asyncio.sleep(self.service.refresh_seconds)
        self.token = self.service.refresh(self.loop.now)


class Call:
    """One logical operation, as the contender gets it."""

    def __init__(self, process: Process, operation: int) -> None:
        self.process = process
        self.operation = operation
        self.method = process.service.method
        self.keyed = process.service.keyed
        self.searchable = process.service.searchable
        self.priority = process.service.priority(operation)
        self.size = int(process.service.size(operation))
        self.sent = 0

    async def send(self, key: str | None = None) -> Response:
        """Make one call. Raises LostError if there is no answer within the client's time-out."""
        process = self.process
        now = process.loop.now
        self.sent += 1
        answer = process.service.receive(now, Request(self.operation, self.sent, key, process.token))
        limit = process.service.timeout
        if answer is None or answer[0] - now > limit:
            await asyncio.sleep(limit)
            raise LostError(f"no answer within {limit:g} s")
        await asyncio.sleep(answer[0] - now)
        return answer[1]

    def send_blocking(self, key: str | None = None) -> Response:
        """Make one call from blocking code."""
        return block_on(lambda: self.send(key))

    async def refresh(self) -> None:
        await self.process.refresh()

    async def happened(self) -> bool:
        """Ask the service whether this operation has had its effect. Only a searchable service answers."""
        service = self.process.service
        await asyncio.sleep(service.latency)
        return service.commits[self.operation] > 0


Perform = Callable[[Call], Awaitable[Response]]


@dataclass(slots=True)
class Contender:
    """
    A library, or a way of retrying, that takes part in the comparison.

    `client(process)` is called once for each client process and returns the coroutine function that performs one
    operation: it returns the last response, or raises.
    """

    name: str
    note: str  # the configuration, for the table of contenders
    client: Callable[[Process], Perform]
    clocks: Callable[[VirtualLoop], AbstractContextManager[object]] = nullcontext  # patches further clocks
    heavy: bool = False  # takes milliseconds of CPU per call, so it gets fewer seeds in the fleet scenario


@dataclass(slots=True)
class Record:
    """The record of one run."""

    service: Service
    arrivals: list[Arrival]
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    succeeded: list[bool] = field(default_factory=list)


def run(
    service: Service, arrivals: list[Arrival], contender: Contender, seed: int, *, workers: int = 0
) -> Record:
    """
    Have `contender` perform an operation at every arrival, and return when the last one has ended.

    `workers`: at most so many operations run at the same time, the others wait for a worker; 0: any number.
    """
    threads = BlockingThreads()
    count = len(arrivals)
    record = Record(service, arrivals, [at for at, _ in arrivals], [0.0] * count, [False] * count)

    async def operation(perform: Perform, call: Call) -> None:
        try:
            response = await perform(call)
            record.succeeded[call.operation] = response.ok
        except Exception:
            record.succeeded[call.operation] = False
        record.ends[call.operation] = call.process.loop.now

    async def work(
        queue: Iterator[int], loop: VirtualLoop, perform: Callable[[int], Awaitable[None]]
    ) -> None:
        for index in queue:
            at = arrivals[index][0]
            if at > loop.now:
                await asyncio.sleep(at - loop.now)
            record.starts[index] = loop.now
            await perform(index)

    async def main(loop: VirtualLoop) -> None:
        count = 1 + max((client for _, client in arrivals), default=0)
        processes = [Process(loop, service, threads, index, seed) for index in range(count)]
        performs = [contender.client(process) for process in processes]

        async def perform(index: int) -> None:
            client = arrivals[index][1]
            await operation(performs[client], Call(processes[client], index))

        if workers:
            queue = iter(range(len(arrivals)))
            await asyncio.gather(*(work(queue, loop, perform) for _ in range(workers)))
            return
        tasks = []
        for index, (at, _) in enumerate(arrivals):
            if at > loop.now:
                await asyncio.sleep(at - loop.now)
            tasks.append(loop.create_task(perform(index)))
        await asyncio.gather(*tasks)

    async def timed(loop: VirtualLoop) -> None:
        with contender.clocks(loop):
            await main(loop)

    try:
        run_virtual(
            timed, seed=f"{contender.name}:{seed}", sleep=lambda s: block_on(lambda: asyncio.sleep(s))
        )
    finally:
        threads.close()
    return record
