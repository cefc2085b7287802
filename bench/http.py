"""
What problem details cost a FastAPI application, in process: CPU time per request, with and without, interleaved.

The application is called directly, without a server or a client, so that nothing hides the difference. A success is a
route that returns a dict of two keys; a failure is FastAPI's own `HTTPException(404)` against the same answered with a
problem document. Each round measures all of them in shuffled order; ratios are those of one round. Rounds are short,
because a busy machine disturbs long ones more.
"""

import asyncio
import gc
import logging
import random
import sys
import time
from statistics import median, quantiles

from fastapi import FastAPI, HTTPException

from amends.bindings.fastapi import install
from amends.errors import NotFoundError

ROUNDS, CALLS = 1500, 10


async def ok():
    return {"id": "1", "fine": True}


async def lost():
    raise HTTPException(404, "There is no such order")


async def raised():
    raise NotFoundError("There is no such order")


def application(endpoint, *, with_problems):
    """One route each, so that routing costs the same."""
    app = FastAPI()
    app.get("/orders/1")(endpoint)
    if with_problems:
        install(app)
    return app


def scope(path="/orders/1"):
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8000"), (b"accept", b"*/*"), (b"user-agent", b"bench")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }


async def receive():
    return {"type": "http.request", "body": b"", "more_body": False}


async def send(message):
    pass


async def timed(app, calls):
    """Microseconds of CPU per request."""
    began = time.process_time_ns()
    for _ in range(calls):
        await app(scope(), receive, send)
    return (time.process_time_ns() - began) / calls / 1000


CONTENDERS = {
    "success, bare": (ok, False),
    "success, with problems": (ok, True),
    "HTTPException, bare": (lost, False),
    "HTTPException, as a problem": (lost, True),
    "typed error, as a problem": (raised, True),
}
WANTED = {
    "success, with problems": ("success, bare", "≤ 1.05"),
    "HTTPException, as a problem": ("HTTPException, bare", "≤ 2"),
    "typed error, as a problem": ("HTTPException, bare", "≤ 2"),
}


async def measured(rounds, calls):
    apps = {name: application(endpoint, with_problems=ours) for name, (endpoint, ours) in CONTENDERS.items()}
    found = {name: [] for name in CONTENDERS}
    order = list(CONTENDERS)
    for app in apps.values():
        await timed(app, 50 * calls)
    gc.collect()
    gc.freeze()  # what is there by now need not be looked at in every round
    gc.disable()
    for _ in range(rounds):
        random.shuffle(order)
        gc.collect()
        for name in order:
            found[name].append(await timed(apps[name], calls))
    gc.enable()
    gc.unfreeze()
    return found


def main(rounds=ROUNDS, calls=CALLS):
    logging.getLogger("amends.http").setLevel(logging.ERROR)
    found = asyncio.run(measured(rounds, calls))
    lines = ["| request | CPU µs | ratio (middle half) | want |", "|---|---|---|---|"]
    for name, times in found.items():
        if name not in WANTED:
            lines.append(f"| {name} | {median(times):.1f} | | |")
            continue
        other, want = WANTED[name]
        ratios = [a / b for a, b in zip(times, found[other], strict=True)]
        low, middle, high = quantiles(ratios, n=4)
        lines.append(f"| {name} | {median(times):.1f} | {middle:.3f} ({low:.3f}–{high:.3f}) | {want} |")
    return lines


if __name__ == "__main__":
    print("\n".join(main(*(int(each) for each in sys.argv[1:]))))
