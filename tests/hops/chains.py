"""
Builds a chain from its name, runs one failure through it, and says what arrived.

A name lists the hops from the caller to the service: "mcp:both,http:client". A side is "both", "server" (the client has no
amends), "client" (the server has none), "bare" (neither) or "gateway" (neither, with the gateway between).

Services are "own" (`own=True` on every client), of a "stranger", or of one "system": with the same secret in AMENDS_SYSTEM.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import amends
from amends import Fault, FaultError, extract
from amends.core.decision import decide
from amends.core.enums import Executed, Recovery
from amends.foreign.trust import _COMMANDS, SYSTEM
from amends.serving.tracing import handling
from amends.testing import FakeClock
from tests.hops.failures import (
    ATTEMPTS,
    COUNTS,
    FAILURES,
    LOGGED,
    MORE_FAILURES,
    OPEN,
    SECRETS,
    SPECIAL,
    TRUTHS,
    Part,
)
from tests.hops.formats import BEHIND, FORMATS, MORE, Cli, PlainError, command, in_own_trace
from tests.hops.zygote import zygote

SIDES = ("both", "server", "client", "bare", "gateway")
TRUST = ("own", "stranger", "system")
SYSTEM_SECRET = "the secret of this system"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
FAMILIES = {"flask": "http", "aiohttp": "http", "run": "cli"}
"""Which format a host reads, where the name of a hop is another one; all others hold an AdCP error."""
MEANING = (
    "code",
    "class",
    "decision",
    "wait",
    "field",
    "suggestions",
    "errors",
    "message",
    "trace",
    "one-id",
)
SAFETY = ("no-leak", "executed", "plain-safe", "calls")
LOST = frozenset({"lost", "reset", "broken", "raw-lost", "raw-reset"})
"""The failures that are calls without an answer."""
_TRACES = ("trace", "one-id")
CALLING = frozenset({"lost", "slow-down", "refused"}) | {
    name for name, fail in MORE_FAILURES.items() if not hasattr(fail, "make")
}
"""The failures of a service of another party, which the last server calls."""


class Case(NamedTuple):
    """One chain with one failure. `roots`: every handler runs in an OpenTelemetry trace of its own."""

    chain: str
    failure: str
    trust: str = "own"
    roots: bool = False

    def __str__(self):
        return f"{self.chain} {self.failure} {self.trust}{' roots' * self.roots}"

    @property
    def hops(self):
        return [tuple(each.split(":")) for each in self.chain.split(",")]

    @property
    def full(self):
        """Whether all hops have amends on both sides."""
        return all(side == "both" for _, side in self.hops)

    @property
    def keeps_all(self):
        """Whether everything has to arrive: services of one system, and amends everywhere."""
        return self.full and self.trust != "stranger"


class Outcome(NamedTuple):
    """What arrived. `found` has True or False by property; a property that does not apply is not in it."""

    case: Case
    found: dict
    calls: int
    fault: Fault | None
    document: object
    ids: tuple = ()

    @property
    def good(self):
        return all(self.found.values())


def cases(lengths, *, sides=("both",), trust=("own",), formats=FORMATS, failures=FAILURES, roots=False):
    """Return all cases of these lengths."""
    hops = [f"{name}:{side}" for name in formats for side in sides if side != "gateway" or name in BEHIND]
    return [
        Case(",".join(chain), failure, whose, roots)
        for length in lengths
        for chain in itertools.product(hops, repeat=length)
        for failure in failures
        for whose in trust
    ]


def handler_of(hops, failure, trust, called_by_amends=False, *, roots=False):
    """Return the handler that calls the rest of a chain. `called_by_amends`: whether the program around it has amends."""
    if not hops:

        async def last():
            await (FAILURES.get(failure) or SPECIAL[failure])(called_by_amends)

        return last, contextlib.AsyncExitStack()
    (name, side), rest = hops[0], hops[1:]
    guarded = side in {"both", "server"}
    described = json.dumps({"hops": rest, "failure": failure, "trust": trust, "roots": roots})
    make = BEHIND[name] if side == "gateway" else FORMATS.get(name) or MORE[name]
    if issubclass(make, Cli):
        hop = make(None, amends=guarded, own=trust == "own", rest=described)
        inner = contextlib.AsyncExitStack()
    else:
        handler, inner = handler_of(rest, failure, trust, guarded, roots=roots)
        hop = make(in_own_trace(handler) if roots else handler, amends=guarded, own=trust == "own")

    class Both(contextlib.AsyncExitStack):
        async def __aenter__(self):
            await super().__aenter__()
            await self.enter_async_context(inner)
            await self.enter_async_context(hop.serve())
            return self

    async def call():
        await hop.call(side in {"both", "client"})

    return call, Both()


async def _call(hops, failure, trust, amends, *, roots=False, first=True):
    # The caller of the chain has the trace that is asked for; a command is a server, with a trace of its own.
    handler, servers = handler_of(hops, failure, trust, amends, roots=roots)
    async with servers:
        await (in_own_trace(handler)() if roots and not first else handler())


def command_main(arguments):
    """Run in the process of a command."""
    sides, rest = arguments
    described = json.loads(rest)
    hops = [tuple(each) for each in described["hops"]]
    if described["trust"] == "system":
        amends.own(command=sys.executable)
    ids = _Ids()
    log = logging.getLogger("amends")
    log.setLevel(logging.INFO)
    log.addHandler(ids)
    log.propagate = False
    failure, trust, roots = described["failure"], described["trust"], described["roots"]
    try:
        with FakeClock():
            command(
                lambda: _call(hops, failure, trust, sides == "amends", roots=roots, first=False),
                sides == "amends",
            )
    finally:
        with Path(os.environ[LOGGED]).open("a") as file:
            file.writelines(f"{line}\n" for line in ids.lines)


class _Ids(logging.Handler):
    """Keeps the trace ids of each line, with spaces between."""

    def __init__(self):
        super().__init__()
        self.lines = set()

    def emit(self, record):
        found = re.findall(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", record.getMessage())
        if found:
            self.lines.add(" ".join(found))


async def run(case):
    """Run a case and judge it."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        counts.touch()
        logged = Path(folder) / "logged"
        logged.touch()
        os.environ[COUNTS], os.environ[LOGGED] = str(counts), str(logged)
        os.environ.pop(SYSTEM, None)
        before_own = list(_COMMANDS)
        if case.trust == "system":
            os.environ[SYSTEM] = SYSTEM_SECRET
            amends.own(command=sys.executable)
        ids = _Ids()
        log = logging.getLogger("amends")
        before, log.propagate = log.level, False
        log.setLevel(logging.INFO)
        log.addHandler(ids)
        for name in ("mcp", "a2a", "asyncio", "uvicorn.error", "httpx", "httpx2"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        ended = None
        try:
            with FakeClock(), handling(PARENT):
                async with asyncio.timeout(100):
                    await _call(case.hops, case.failure, case.trust, True, roots=case.roots)
        except Exception as error:
            ended = error
        finally:
            os.environ.pop(SYSTEM, None)
            _COMMANDS[:] = before_own
            log.removeHandler(ids)
            log.setLevel(before)
            log.propagate = True
        calls = counts.stat().st_size
        lines = ids.lines | set(logged.read_text().splitlines())
    return judge(case, ended, calls, lines)


def judge(case, ended, calls, lines):
    """Return the outcome of a chain that ended with an exception. `lines`: the trace ids of each line of the logs."""
    if isinstance(ended, PlainError):
        document = ended.document
        fault = extract(document, native=True)
        if fault is None:
            fault = Fault(code="INTERNAL_ERROR", recovery=Recovery.UNCERTAIN, executed=Executed.MAYBE)
    elif isinstance(ended, FaultError):
        document, fault = None, ended.fault
    else:
        return Outcome(case, {"arrived": False}, calls, None, repr(ended))
    truth = TRUTHS[case.failure]
    # Servers without amends that run in the process of a command write tracebacks to its stderr.
    told = {**document, "stderr": ""} if isinstance(document, dict) and "stderr" in document else document
    shown = json.dumps(told, default=str) if document is not None else _shown(ended)
    found = {
        "no-leak": not any(each in shown for each in SECRETS) or _tells_alone(case),
        "executed": not (truth.executed == "maybe" and fault.executed is Executed.NO),
        "calls": calls <= ATTEMPTS ** _limits(case),
    }
    if isinstance(ended, PlainError) and case.failure in LOST and _knows_the_loss(case):
        found["plain-safe"] = not repeats(case.hops[0][0], document)
    if case.keeps_all:
        meant = _meaning(case, truth, fault, lines)
        found |= {name: meant[name] for name in _TRACES} if case.failure in OPEN else meant
    return Outcome(case, found, calls, fault, document or shown, tuple(sorted(lines)))


def _tells_alone(case):
    """Whether a server without amends is the one that answers: what it tells is not ours."""
    return case.hops[0][1] not in {"both", "server"} and case.hops[0][0] not in {"task", "arcp"}


def _knows_the_loss(case):
    """Whether the server that answers can know of the loss: nothing without amends is between."""
    (_, first), *rest = case.hops
    return first == "server" and all(side == "both" for _, side in rest)


def _limits(case):
    """
    Return how many limits of calls there are, one below the other.

    What the caller has left goes down through hops with amends on both sides. Where one is without it, the next client with
    amends has a limit of its own; the last server's own client, for a failure of another party's service, is one as well.
    """
    count, handed = 0, False
    for _, side in case.hops:
        if side in {"both", "client", "gateway"} and not handed:
            count += 1
        handed = side == "both" or (handed and side == "gateway")
    last = case.hops[-1][1]
    if case.failure in CALLING and last in {"both", "server"} and not handed:
        count += 1
    return max(1, count)


def _shown(error):
    fault = error.fault
    return " ".join(
        [str(error), repr(fault), *map(repr, _all_parts(fault)), *getattr(error, "__notes__", ())]
    )


def _all_parts(fault):
    return [*fault.errors, *(each for part in fault.errors for each in _all_parts(part))]


def _meaning(case, truth, fault, lines):
    """Return whether each property of the failure is as it was raised."""
    wanted, executed = Recovery(truth.recovery), Executed(truth.executed)
    if len(case.hops) > 1 and wanted in {Recovery.TRANSIENT, Recovery.UNCERTAIN}:
        executed = Executed.MAYBE  # M3: a handler may have done something before the call that failed
    right = decide(
        Fault(code=truth.code, recovery=wanted, executed=executed, retry_after=truth.wait), draw=0.5
    )
    decided = decide(fault, draw=0.5)
    parts = tuple(Part(part.code, part.field, part.message, part.suggestions) for part in fault.errors)
    return {
        "code": fault.code == truth.code,
        "class": fault.recovery is wanted,
        "executed": fault.executed is executed,
        "decision": decided.action is right.action and (truth.wait is None or decided.delay == right.delay),
        # HTTP writes a wait of one second where the error has none.
        "wait": fault.retry_after == truth.wait
        or (truth.wait is None and fault.retryable and fault.retry_after == 1),
        "field": fault.field == truth.field,
        "suggestions": not truth.suggestions or fault.suggestions == truth.suggestions,
        "errors": parts == truth.parts,
        "message": truth.message is None or fault.message == truth.message,
        "trace": fault.trace_id == TRACE,
        "one-id": _is_found(lines) if case.roots else bool(lines) and _flat(lines) == {TRACE},
    }


def _is_found(lines):
    """Return whether lines that name two ids lead from the caller's to every other id."""
    known, found = {TRACE}, {TRACE}
    while found:
        found = {each for line in lines if known & set(line.split()) for each in line.split()} - known
        known |= found
    return any(TRACE in line for line in lines) and known >= {each for line in lines for each in line.split()}


def _flat(lines):
    return {" ".join(dict.fromkeys(line.split())) for line in lines}


def repeats(name, document):
    """Return whether a host that reads only the standard members of a format is told to send the request again."""
    name = FAMILIES.get(name, name)
    if name in {"http", "gateway"}:
        body = document["body"] if isinstance(document["body"], dict) else {}
        headers = {key.lower() for key in document["headers"]}
        return body.get("is_retriable") is True or "retry-after" in headers or "retry_after_ms" in body
    text = json.dumps(document)
    if name == "cli":
        try:
            error = json.loads(document["stdout"])["error"]
        except (ValueError, KeyError, TypeError):
            return False
        return error["retryable"] is not False or document["exit"] == 7 or error["code"] == "TIMEOUT"
    if name in {"task", "arcp"}:
        error = document["error"] if name == "task" else document["payload"]
        flag = error.get("recoverable", error.get("retryable"))
        return flag is not False or error["code"] == "TIMEOUT"
    found = re.findall(r'"recovery":\s*\\?"(\w+)', re.sub(r'"amends/fault":\s*\{.*?\}(?=[,}])', "", text))
    return any(each != "terminal" for each in found) or '"retry_after"' in text


def totals(outcomes):
    """Return one line of totals."""
    kept = sum(outcome.good for outcome in outcomes)
    line = [f"{kept}/{len(outcomes)} chains keep everything"]
    for name in (*MEANING, *SAFETY, "arrived"):
        values = [outcome.found[name] for outcome in outcomes if name in outcome.found]
        if values and (name != "arrived" or not all(values)):
            line.append(f"{name} {sum(values)}/{len(values)}")
    return ", ".join(line)


def run_some(chosen, until):
    """Run cases until a time is over. Return their outcomes, without what was received."""
    outcomes = []
    with zygote():
        for case in chosen:
            if time.time() > until:
                break
            outcomes.append(asyncio.run(run(case))._replace(document=None, fault=None))
    return outcomes


def run_all(chosen, *, jobs, seconds):
    """Run cases in several processes, because most of the time they wait."""
    until = time.time() + seconds
    if jobs == 1:
        return run_some(chosen, until)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        parts = [pool.submit(run_some, chosen[number::jobs], until) for number in range(jobs)]
        return [outcome for part in parts for outcome in part.result()]
