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
from tests.hops.failures import ATTEMPTS, COUNTS, FAILURES, SECRET, SPECIAL, TRUTHS
from tests.hops.formats import BEHIND, FORMATS, MORE, Cli, PlainError, command
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


class Case(NamedTuple):
    """One chain with one failure."""

    chain: str
    failure: str
    trust: str = "own"

    def __str__(self):
        return f"{self.chain} {self.failure} {self.trust}"

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


def cases(lengths, *, sides=("both",), trust=("own",), formats=FORMATS):
    """Return all cases of these lengths."""
    hops = [f"{name}:{side}" for name in formats for side in sides if side != "gateway" or name in BEHIND]
    return [
        Case(",".join(chain), failure, whose)
        for length in lengths
        for chain in itertools.product(hops, repeat=length)
        for failure in FAILURES
        for whose in trust
    ]


def handler_of(hops, failure, trust, called_by_amends=False):
    """Return the handler that calls the rest of a chain. `called_by_amends`: whether the program around it has amends."""
    if not hops:

        async def last():
            await (FAILURES.get(failure) or SPECIAL[failure])(called_by_amends)

        return last, contextlib.AsyncExitStack()
    (name, side), rest = hops[0], hops[1:]
    guarded = side in {"both", "server"}
    described = json.dumps({"hops": rest, "failure": failure, "trust": trust})
    make = BEHIND[name] if side == "gateway" else FORMATS.get(name) or MORE[name]
    if issubclass(make, Cli):
        hop = make(None, amends=guarded, own=trust == "own", rest=described)
        inner = contextlib.AsyncExitStack()
    else:
        handler, inner = handler_of(rest, failure, trust, guarded)
        hop = make(handler, amends=guarded, own=trust == "own")

    class Both(contextlib.AsyncExitStack):
        async def __aenter__(self):
            await super().__aenter__()
            await self.enter_async_context(inner)
            await self.enter_async_context(hop.serve())
            return self

    async def call():
        await hop.call(side in {"both", "client"})

    return call, Both()


async def _call(hops, failure, trust, amends):
    handler, servers = handler_of(hops, failure, trust, amends)
    async with servers:
        await handler()


def command_main(arguments):
    """Run in the process of a command."""
    sides, rest = arguments
    described = json.loads(rest)
    hops = [tuple(each) for each in described["hops"]]
    if described["trust"] == "system":
        amends.own(command=sys.executable)
    with FakeClock():
        command(
            lambda: _call(hops, described["failure"], described["trust"], sides == "amends"),
            sides == "amends",
        )


class _Ids(logging.Handler):
    def __init__(self):
        super().__init__()
        self.ids = set()

    def emit(self, record):
        self.ids.update(re.findall(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", record.getMessage()))


async def run(case):
    """Run a case and judge it."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        counts.touch()
        os.environ[COUNTS] = str(counts)
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
                    await _call(case.hops, case.failure, case.trust, True)
        except Exception as error:
            ended = error
        finally:
            os.environ.pop(SYSTEM, None)
            _COMMANDS[:] = before_own
            log.removeHandler(ids)
            log.setLevel(before)
            log.propagate = True
        calls = counts.stat().st_size
    return judge(case, ended, calls, frozenset(ids.ids))


def judge(case, ended, calls, ids):
    """Return the outcome of a chain that ended with an exception."""
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
    executed = truth.executed
    found = {
        "no-leak": SECRET not in shown or _tells_alone(case),
        "executed": not (executed == "maybe" and fault.executed is Executed.NO),
        "calls": calls <= ATTEMPTS or not _limited(case),
    }
    if isinstance(ended, PlainError) and case.failure == "lost" and _knows_the_loss(case):
        found["plain-safe"] = not repeats(case.hops[0][0], document)
    if case.keeps_all:
        found |= _meaning(case, truth, fault, ids)
    return Outcome(case, found, calls, fault, document or shown, tuple(sorted(ids)))


def _tells_alone(case):
    """Whether a server without amends is the one that answers: what it tells is not ours."""
    return case.hops[0][1] not in {"both", "server"} and case.hops[0][0] not in {"task", "arcp"}


def _knows_the_loss(case):
    """Whether the server that answers can know of the loss: nothing without amends is between."""
    (_, first), *rest = case.hops
    return first == "server" and all(side == "both" for _, side in rest)


def _limited(case):
    """Whether there is one limit: behind a client or a server without amends, each side has its own."""
    return case.full or len(case.hops) == 1


def _shown(error):
    fault = error.fault
    texts = [
        str(error),
        repr(fault.message),
        repr(fault.suggestions),
        repr(fault.errors),
        repr(fault.details),
    ]
    return " ".join([*texts, *getattr(error, "__notes__", ())])


def _meaning(case, truth, fault, ids):
    wanted = Recovery(truth.recovery)
    executed = truth.executed
    if len(case.hops) > 1 and wanted in {Recovery.TRANSIENT, Recovery.UNCERTAIN}:
        executed = "maybe"  # M3: a handler may have done something before the call that failed
    right = decide(Fault(code=truth.code, recovery=wanted, executed=Executed(executed)))
    decided = decide(Fault(code=truth.code, recovery=fault.recovery, executed=fault.executed))
    return {
        "code": fault.code == truth.code,
        "class": fault.recovery is wanted or (case.failure == "bug" and case.hops[-1][0] == "arcp"),
        "decision": decided.action is right.action,
        "wait": truth.wait is None or fault.retry_after == truth.wait,
        "field": fault.field == truth.field,
        "suggestions": not truth.suggestions or fault.suggestions == truth.suggestions,
        "errors": len(fault.errors) == truth.parts,
        "message": truth.message is None or fault.message == truth.message,
        "trace": fault.trace_id == TRACE,
        "one-id": ids <= {TRACE},
    }


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
