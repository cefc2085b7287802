"""
The cells of the crash matrix: who calls what, which side uses amends, and what dies or stalls when.

Every cell runs real processes. What dies is started again after a second; what is stopped goes on after three seconds, which is
longer than its lease. The reader is in `callers`; it wants exactly one order and obeys only what it sees.
"""

import itertools
import json
import time
from pathlib import Path
from typing import NamedTuple

from tests.crash import servers
from tests.crash.callers import BOUND, caller
from tests.crash.instants import INSIDE, INSTANTS, plan, reach
from tests.crash.processes import STOPPED, Process, Proxy, Store, Waker
from tests.crash.shop import APPS, create, placed
from tests.ports import free_port

CLIENTS = ("httpx2", "httpx", "requests", "aiohttp", "httpx2-async", "httpx-async")
SIDES = {"both": "client and server", "client": "client only", "server": "server only", "none": "neither"}
BETWEEN = tuple(each for each in INSTANTS if each not in INSIDE)


class Cell(NamedTuple):
    """One cell of the matrix."""

    binding: str
    """What is called and how: a key of FAMILIES, for HTTP `client → server`."""
    side: str
    """both, client, server or none: who uses amends."""
    dies: str
    """client, server, store, host (server, store and client together), or the gateway or api in between; connection for a cut."""
    how: str
    """kill, stop, long stop or cut."""
    instant: str
    store: str = "sqlite"

    def __str__(self):
        kept = "" if self.store == "sqlite" else f" on {self.store}"
        return f"{self.binding}{kept}, amends on {self.side}: {self.how} {self.dies} {self.instant}"

    @property
    def family(self):
        return (
            "http"
            if " → " in self.binding and self.binding.split()[0] in {*CLIENTS, "plain"}
            else self.binding
        )

    @property
    def keyed(self):
        """Whether a repeat is documented to be safe: the service honours keys, or there is a ledger."""
        family, ours = self.family, self.side in {"both", "server"}
        if family in {"http", "gateway"}:
            return ours
        return (
            FAMILIES[family].ledger
            or family in {"tasks", "effects", "effects → api"}
            or (family == "arcp" and ours)
        )


class Outcome(NamedTuple):
    """What a cell ended with."""

    effects: int
    seconds: float
    """Until the reader knew all that it was going to know."""
    longest: float
    """The longest call of it."""
    told: str
    """done, or the last answer that the reader got."""


class Family(NamedTuple):
    """How one kind of binding is run."""

    sides: tuple[str, ...] = ("both", "client", "server", "none")
    dies: tuple[str, ...] = ("server", "client", "host", "connection")
    ledger: bool = False
    api: bool = False
    """Whether it calls a further service."""
    keyed: bool = False
    """Whether that service honours keys. Otherwise it is without amends."""
    marks: tuple[bytes, ...] = (b"POST ",)
    """What the request of the call has in it, for the proxy."""
    proxy: bool = True


MCP = (b'"tools/call"',)
FAMILIES = {
    "http": Family(dies=("server", "client", "host", "store", "connection")),
    "gateway": Family(dies=("server", "gateway", "connection")),
    "mcp": Family(marks=MCP),
    "mcp with a ledger": Family(
        marks=MCP,
        ledger=True,
        sides=("both", "client", "server"),
        dies=("server", "client", "host", "store", "connection"),
    ),
    "mcp → api": Family(marks=MCP, api=True, dies=("api",)),
    "mcp → api with keys": Family(
        marks=MCP, api=True, keyed=True, sides=("both", "server"), dies=("api", "server")
    ),
    "a2a": Family(),
    "a2a with a ledger": Family(
        ledger=True, sides=("both", "server"), dies=("server", "client", "host", "store", "connection")
    ),
    "a2a → api": Family(api=True, dies=("api",)),
    "arcp": Family(marks=(), dies=("server", "client", "host", "store", "connection")),
    "tasks": Family(sides=("both",), dies=("server", "client", "host", "store"), proxy=False),
    "effects": Family(sides=("client",), dies=("client", "store"), proxy=False),
    "effects → api": Family(sides=("both", "client"), dies=("client", "api", "host", "connection"), api=True),
    "commands": Family(dies=("server", "client"), proxy=False),
    "commands with a ledger": Family(
        sides=("both", "client"), dies=("server", "client", "host"), ledger=True, proxy=False
    ),
}
VICTIMS = {"host": ["client", "server", "api", "store"], "client": ["client", "run"]}


def places(family, dies):
    """Yield (how, instant, store) of a victim."""
    options = FAMILIES[family]
    if dies == "connection":
        for instant in BETWEEN:
            yield "cut", instant, "sqlite"
        return
    if dies == "store":
        for instant in ("before sending", *INSIDE[:2]):
            yield from (("stop", instant, "sqlite"), ("stop", instant, "nats"), ("kill", instant, "nats"))
            yield from (("long stop", instant, "sqlite"), ("long stop", instant, "nats"))
        return
    instants = INSTANTS if options.proxy or family.startswith("commands") else ("before sending", *INSIDE)
    if family.startswith("commands"):
        instants = (*INSIDE, "in the answer")
    elif (
        (options.api and family != "effects → api")
        or dies == "api"
        or (family == "effects → api" and dies != "client")
    ):
        instants = ("before sending", *INSIDE)
    for how, instant in itertools.product(("kill", "stop"), instants):
        if dies in {"client", "host"} and instant == "before sending":
            continue  # nothing has begun
        if dies == "host" and how == "stop":
            continue  # that of its server and its client
        yield how, instant, "sqlite"
    if dies not in {"client", "host"}:
        for instant in instants:
            if instant in {"before sending", *INSIDE[:2]}:
                yield "long stop", instant, "sqlite"


def cells():
    """Every cell, in a fixed order. Each HTTP client meets every server, and every instant at every server is a cell."""
    for name, family in FAMILIES.items():
        for side, dies in itertools.product(family.sides, family.dies):
            if dies == "store" and side not in {"both", "server"} and name != "effects":
                continue
            for number, place in enumerate(places(name, dies)):
                how, instant, store = place
                if name != "http":
                    yield Cell(name, side, dies, how, instant, store)
                elif side in {"both", "client"}:
                    for turn, client in enumerate(CLIENTS):
                        server = tuple(APPS)[(number + turn) % len(APPS)]
                        yield Cell(f"{client} → {server}", side, dies, how, instant, store)
                else:
                    for server in APPS:
                        yield Cell(f"plain → {server}", side, dies, how, instant, store)


def run(cell, folder):
    """Run one cell."""
    folder = Path(folder)
    family = FAMILIES[cell.family]
    victims = VICTIMS.get(cell.dies, [cell.dies])
    if cell.dies == "store" and cell.store == "sqlite":
        victims = ["lock"]
    if cell.family.startswith("commands") and cell.dies == "client":
        victims = ["run"]
    plan(folder, cell.how, victims, cell.instant)
    create(folder)
    seconds = STOPPED.get(cell.how, 0.0)
    opened = [waker := Waker(folder, seconds), store := Store(folder, cell.store, seconds)]
    try:
        return _call(cell, folder, family, store, opened, waker)
    finally:
        for each in reversed(opened):
            each.close()


def _call(cell, folder, family, store, opened, waker):
    """Start the servers, then the caller, and wait for its last answer."""
    port = _serve(cell, folder, family, store, opened)
    if family.proxy:
        proxy = Proxy(folder, port, cell.how, cell.instant, family.marks)
        opened.append(proxy)
        port = proxy.port
    if cell.instant == "before sending" and cell.how != "cut":
        reach(folder, cell.instant)
    (folder / "began").write_text(str(time.time()))
    restarts = cell.keyed and cell.how == "kill" and cell.dies in {"client", "host"}
    facts = {
        "family": _method(cell.family),
        "binding": cell.binding,
        "client": cell.binding.split(" → ")[0] if cell.family == "http" else "httpx2",
        "side": cell.side,
        "how": cell.how,
        "keyed": cell.family in {"http", "gateway", "effects → api"} and cell.side == "both",
        "safe": cell.keyed,
        "keeps_key": restarts or (cell.family == "arcp" and cell.side == "both"),
        "ledger": family.ledger,
        "api": family.api,
    }
    process = Process(folder, "client", caller, [facts, port, store.url], again=restarts)
    opened.append(process)
    until = time.monotonic() + 2 * BOUND
    while not (folder / "told").exists() and not process.ended.is_set() and time.monotonic() < until:
        time.sleep(0.05)
    _settle(cell, waker)
    if not (folder / "told").exists():
        killed = cell.how == "kill" and cell.dies in {"client", "host"}
        late = time.monotonic() >= until
        return Outcome(
            placed(folder), 0.0, 0.0, "nothing, for too long" if late else "killed" if killed else "no answer"
        )
    told, seconds, longest = json.loads((folder / "told").read_text())
    return Outcome(placed(folder), seconds, longest, told)


def _method(family):
    return family.partition(" ")[0]


def _settle(cell, waker):
    """Let processes that are stopped go on: what they do then counts."""
    until = time.monotonic() + STOPPED["stop"] + 3
    while time.monotonic() < until and waker.stopped:
        time.sleep(0.05)
    time.sleep(0.4 if "stop" in cell.how or cell.dies in {"client", "host"} else 0.05)


def _serve(cell, folder, family, store, opened):
    """Start the servers of a cell, and return the port to call."""
    ours, port = cell.side in {"both", "server"}, free_port()
    name, options = cell.family, [ours, port, store.url, cell.how]

    def start(part, target, *args, at=None):
        opened.append(Process(folder, part, target, args, port=at or port))

    if name == "http":
        start("server", servers.shop, cell.binding.split(" → ")[1], *options)
    elif name == "gateway":
        start("server", servers.shop, "starlette", *options)
        front = free_port()
        start("gateway", servers.gateway, front, port, at=front)
        return front
    elif name == "effects → api":
        start(
            "api",
            servers.shop,
            "starlette",
            cell.side == "both",
            port,
            f"sqlite:///{folder}/shop.db",
            cell.how,
        )
    elif name == "tasks":
        start("server", servers.worker, *options)
    elif name in {"effects", "commands", "commands with a ledger"}:
        return port
    else:
        api = None
        if family.api:
            api = free_port()
            start("api", servers.shop, "starlette", family.keyed, api, store.url, cell.how, at=api)
        start("server", getattr(servers, _method(name)), *options, family.ledger, api, family.keyed)
    return port
