"""
An echo job over WebSocket, client and runtime in one process: ours, the published SDK, and a bare loop.

Ours and the SDK send the same three frames per job: submit, accepted, result, of 1,015 and 896 bytes together. The bare
loop sends three shorter ones (344 bytes) with the same library and `json`: no session, no ids, no store. The floor sends our
frames, with our encoding and our way to read and write a socket, and each agent in a task of its own, but without sessions, limits,
logs and tables. None of them compresses its frames. CPU of both sides together; they take turns, and a round's ratios are
taken within the round.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median, quantiles

JOBS = 200
ROUNDS = 60
INPUT = {"instruction": "say it again", "items": [1, 2, 3], "deep": {"a": {"b": "c"}}}

Job = Callable[[], Awaitable[object]]


async def echo(given, ctx):
    return given


@asynccontextmanager
async def ours():
    import amends.arcp

    runtime = amends.arcp.Runtime(tokens={"secret": "bench"})
    runtime.register_agent("echo", echo)
    async with (
        runtime,
        runtime.listen("127.0.0.1", 0) as listening,
        amends.arcp.connect(listening.url, token="secret") as client,
    ):

        async def job():
            handle = await client.submit("echo", INPUT)
            return await handle.done

        yield job


@asynccontextmanager
async def sdk():
    import structlog
    from arcp._auth.bearer import StaticBearerVerifier
    from arcp._messages.session import ClientInfo, RuntimeInfo
    from arcp._transport.websocket import WebSocketTransport, serve_websocket
    from arcp.client import ARCPClient
    from arcp.runtime import ARCPRuntime

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    runtime = ARCPRuntime(
        runtime=RuntimeInfo(name="bench", version="1"), bearer=StaticBearerVerifier({"secret": "bench"})
    )
    runtime.register_agent("echo", echo)
    server = await serve_websocket(runtime.accept, host="127.0.0.1", port=0, compression=None)
    port = server.sockets[0].getsockname()[1]
    client = ARCPClient(client=ClientInfo(name="bench", version="1"), token="secret")
    await client.connect(await WebSocketTransport.connect(f"ws://127.0.0.1:{port}/arcp", compression=None))

    async def job():
        handle = await client.submit(agent="echo", input=INPUT)
        return (await handle.done).result

    yield job
    await client.close()
    server.close()
    await server.wait_closed()
    await runtime.close()


@asynccontextmanager
async def bare():
    from websockets.asyncio.client import connect
    from websockets.asyncio.server import serve

    async def answer(socket):
        async for frame in socket:
            message = json.loads(frame)
            await socket.send(json.dumps({"type": "job.accepted", "id": message["id"]}))
            result = {"final_status": "success", "result": message["payload"]["input"]}
            await socket.send(json.dumps({"type": "job.result", "id": message["id"], "payload": result}))

    async with serve(answer, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}/", compression=None) as socket:
            accepted, done, count = {}, {}, iter(range(10**9))

            async def read():
                async for frame in socket:
                    message = json.loads(frame)
                    if message["type"] == "job.accepted":
                        accepted.pop(message["id"]).set_result(None)
                    else:
                        done.pop(message["id"]).set_result(message["payload"]["result"])

            reader = asyncio.create_task(read())
            loop = asyncio.get_running_loop()

            async def job():
                number = next(count)
                accepted[number], result = loop.create_future(), loop.create_future()
                first, done[number] = accepted[number], result
                await socket.send(
                    json.dumps(
                        {"type": "job.submit", "id": number, "payload": {"agent": "echo", "input": INPUT}}
                    )
                )
                await first
                return await result

            yield job
            reader.cancel()


@asynccontextmanager
async def floor():
    from websockets.asyncio.client import connect
    from websockets.asyncio.server import serve

    from amends.arcp.transports.text_frames import ClientSocket, ServerSocket
    from amends.arcp.transports.websocket import WebSocketConnection
    from amends.arcp.wire import envelope, new_id, now_text, read, read_payload, write
    from amends.arcp.wire import messages as m

    session, trace = new_id("sess"), f"{1:032x}"

    async def answer(socket):
        connection, running = WebSocketConnection(socket), set()

        async def run(request_id, given):
            job_id = new_id("job")
            ids = {"session_id": session, "trace_id": trace, "job_id": job_id}
            accepted = m.Accepted(
                job_id, "echo@1.0.0", {}, accepted_at=now_text(), trace_id=trace, request_id=request_id
            )
            frames = [write(envelope("job.accepted", accepted, **ids))]
            result = m.Result("success", await echo(given, None), completed_at=now_text())
            frames.append(write(envelope("job.result", result, event_seq=2, **ids)))
            connection.post(frames)

        while (frame := await connection.receive()) is not None:
            message = read(frame)
            task = asyncio.create_task(run(message.id, read_payload(message).input))
            running.add(task)
            task.add_done_callback(running.discard)

    async with serve(answer, "127.0.0.1", 0, compression=None, create_connection=ServerSocket) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(
            f"ws://127.0.0.1:{port}/", compression=None, create_connection=ClientSocket
        ) as socket:
            connection, accepted, done = WebSocketConnection(socket), {}, {}
            loop = asyncio.get_running_loop()

            async def receive():
                while (frame := await connection.receive()) is not None:
                    message = read(frame)
                    payload = read_payload(message)
                    if message.type == "job.accepted":
                        done[message.job_id] = loop.create_future()
                        accepted.pop(payload.request_id).set_result(done[message.job_id])
                    else:
                        done.pop(message.job_id).set_result(payload.result)

            reader = asyncio.create_task(receive())

            async def job():
                message = envelope("job.submit", m.Submit("echo", INPUT), session_id=session)
                answered = accepted[message.id] = loop.create_future()
                connection.post([write(message)])
                return await (await answered)

            yield job
            reader.cancel()


async def cpu(job: Job, jobs: int, at_once: int) -> float:
    """Microseconds of CPU per job."""

    async def some():
        for _ in range(jobs // at_once):
            assert await job() == INPUT

    begin = time.process_time_ns()
    await asyncio.gather(*(some() for _ in range(at_once)))
    return (time.process_time_ns() - begin) / jobs / 1000


async def compared(at_once: int, rounds: int, jobs: int) -> list[str]:
    async with AsyncExitStack() as stack:
        sides = [await stack.enter_async_context(side()) for side in (ours, sdk, bare, floor)]
        taken: list[list[float]] = []
        for number in range(rounds + 3):
            order = list(range(len(sides)))
            order = order[number % len(order) :] + order[: number % len(order)]
            times = [0.0] * len(order)
            for side in order:
                times[side] = await cpu(sides[side], jobs, at_once)
            if number >= 3:
                taken.append(times)
    lines = []
    for other, name, want in (
        (1, "the published SDK", "≤ 0.50"),
        (2, "a bare websockets loop", "≤ 2.00"),
        (3, "the floor of these frames", ""),
    ):
        ratios = [times[0] / times[other] for times in taken]
        low, _, high = quantiles(ratios, n=4)
        lines.append(
            f"| {at_once} at a time, {name} | {median(times[0] for times in taken):.0f} | "
            f"{median(times[other] for times in taken):.0f} | {median(ratios):.2f} ({low:.2f}–{high:.2f}) | {want} |"
        )
    return lines


def main(rounds: int = ROUNDS, jobs: int = JOBS) -> list[str]:
    logging.disable(logging.CRITICAL)
    lines = [
        "CPU time of an echo job over WebSocket, client and runtime together, with the in-memory store.",
        "",
    ]
    lines += ["| against | ours µs | other µs | ratio (middle half) | want |", "|---|---|---|---|---|"]
    for at_once in (1, 50):
        lines += asyncio.run(compared(at_once, rounds, jobs))
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
