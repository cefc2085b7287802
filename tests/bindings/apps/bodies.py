"""The commands of the sample applications, independent of the framework that parses the arguments."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

from amends.bindings.guard import operation


def show(name, count=1, color="red"):
    print(f"{name} is shown")
    return {"name": name, "count": count, "color": color}


def fail(kind):
    from amends import errors

    if kind == "printed":
        print("a line that stays in the buffer")
        raise errors.NotFoundError("No such order")
    if kind == "limited":
        raise errors.RateLimitedError("Slow down", retry_after=7)
    if kind == "missing":
        raise errors.NotFoundError("No such order", suggestions=["List them"])
    if kind == "unavailable":
        raise errors.ServiceUnavailableError("Closed")
    if kind == "denied":
        raise errors.PermissionDeniedError("Not yours")
    if kind == "own":
        raise _own()("None left")
    if kind == "unauthenticated":
        raise errors.UnauthenticatedError
    if kind == "value":
        raise ValueError("secret-host.internal:5432 answered password hunter2")
    if kind == "timeout":
        raise TimeoutError("secret-host.internal")
    if kind == "exit-text":
        sys.exit("it went wrong")
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "reset":
        raise BrokenPipeError("secret-host.internal")
    if kind == "task group":
        raise ExceptionGroup("tasks", [ExceptionGroup("inner", [errors.NotFoundError("No such order")])])
    if kind == "group":
        raise ExceptionGroup("many", [ConnectionRefusedError("secret-host"), ConnectionRefusedError("other")])
    return sys.exit(int(kind))


def noise():
    print("printed")
    sys.stdout.write("written\n")
    os.write(1, b"descriptor\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    ctypes.CDLL(None).puts(b"from C, buffered until the process ends")
    return ["quiet"]


def odd(kind):
    if kind == "nan":
        return {"value": float("nan"), "text": "lone \ud800"}
    if kind == "object":
        return {"value": object()}
    if kind == "cycle":
        loop = []
        loop.append(loop)
        return loop
    from datetime import UTC, datetime

    return {"when": datetime(2026, 1, 1, tzinfo=UTC), 3: "key"}


def slow(path):
    try:
        # Inside the try block, because the signal may arrive as soon as the file exists.
        Path(path).write_text("started")
        time.sleep(60)
    finally:
        Path(path).write_text("cleaned up")


def big():
    for _ in range(100_000):
        print("y" * 80)


@operation(read_only=True)
def broken(kind, path):
    """Raise a bug, or open a file; count the runs in `path`.runs."""
    import json

    with Path(f"{path}.runs").open("a") as file:
        file.write("run\n")
    if kind == "open":
        return Path(path).read_text()
    if kind == "elsewhere":
        return Path(f"{path}/secret/elsewhere").read_text()
    calls = {
        "lookup": lambda: {}["secret"],
        "type": lambda: "secret" + 1,
        "json": lambda: json.loads("{secret"),
        "encoding": lambda: b"\xffsecret".decode(),
        "value": lambda: int("secret"),
        "division": lambda: 1 / 0,
    }
    return calls[kind]()


async def later(path):
    """Wait for a signal on the event loop, and clean up; return at once if there is no path."""
    import asyncio

    await asyncio.sleep(0)
    if path == "none":
        return {"loop": asyncio.get_running_loop().is_running()}
    if path == "missing":
        from amends.errors import NotFoundError

        raise NotFoundError("No such order")
    try:
        Path(path).write_text("started")
        await asyncio.sleep(60)
    finally:
        Path(path).write_text("cleaned up")


@operation(read_only=True)
async def flaky_later(path, times):
    import asyncio

    await asyncio.sleep(0)
    return flaky(path, times)


@operation(read_only=True)
def flaky(path, times):
    """Fail `times` times with a rate limit, and count the runs in a file."""
    from amends.errors import RateLimitedError

    file = Path(path)
    runs = int(file.read_text() or 0) + 1 if file.exists() else 1
    file.write_text(str(runs))
    if runs <= times:
        raise RateLimitedError("Slow down", retry_after=0.01)
    return {"runs": runs}


@operation(keyed=True)
def keyed(path):
    from amends.errors import ServiceUnavailableError
    from amends.recovery import current_operation

    with Path(path).open("a") as file:
        file.write(f"{current_operation().key}\n")
    raise ServiceUnavailableError("Later", retry_after=0.01)


def upstream(url):
    import httpx2

    declare_own()

    return httpx2.get(url, timeout=5).raise_for_status().json()


def declare_own():
    """Declare the service that the variable OWN names as part of the own system."""
    from amends import own

    if "OWN" in os.environ:
        own(os.environ["OWN"])


def recovered(url):
    import httpx2

    from amends import Operation, Policy, recover

    declare_own()

    def call():
        return httpx2.get(url, timeout=5).raise_for_status()

    policy = Policy(attempts=2, max_wait=60)
    return recover(call, policy=policy, operation=Operation(read_only=True)).json()


def _own():
    from amends import FaultError

    class OutOfStock(FaultError):
        """The item is out of stock"""

        code = "OUT_OF_STOCK"
        recovery = "correctable"
        exit = 6

    return OutOfStock
