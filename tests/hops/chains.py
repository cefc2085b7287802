"""
Builds a chain from its name, runs one failure through it, and says what arrived.

A name lists the hops from the caller to the service: "mcp:both,http:client". A side is "both", "server" (the client has no
amends), "client" (the server has none) or "bare" (neither).
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from amends import Fault, FaultError, extract
from amends.core.decision import decide
from amends.core.enums import Executed, Recovery
from amends.serving.tracing import handling
from amends.testing import FakeClock
from tests.hops.failures import ATTEMPTS, COUNTS, FAILURES, SECRET, TRUTHS
from tests.hops.formats import FORMATS, PlainError, command

SIDES = ("both", "server", "client", "bare")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
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
    own: bool = True

    def __str__(self):
        return f"{self.chain} {self.failure} {'own' if self.own else 'stranger'}"

    @property
    def hops(self):
        return [tuple(each.split(":")) for each in self.chain.split(",")]

    @property
    def full(self):
        """Whether all hops have amends on both sides."""
        return all(side == "both" for _, side in self.hops)


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


def cases(lengths, *, sides=("both",), own=(True,)):
    """Return all cases of these lengths."""
    hops = [f"{name}:{side}" for name in FORMATS for side in sides]
    return [
        Case(",".join(chain), failure, mine)
        for length in lengths
        for chain in itertools.product(hops, repeat=length)
        for failure in FAILURES
        for mine in own
    ]


def handler_of(hops, failure, own, called_by_amends=False):
    """Return the handler that calls the rest of a chain. `called_by_amends`: whether the program around it has amends."""
    if not hops:

        async def last():
            await FAILURES[failure](called_by_amends)

        return last, contextlib.AsyncExitStack()
    (name, side), rest = hops[0], hops[1:]
    stack = contextlib.AsyncExitStack()
    guarded = side in {"both", "server"}
    described = json.dumps({"hops": rest, "failure": failure})
    if name == "cli":
        hop = FORMATS[name](None, amends=guarded, own=own, rest=described)
        inner = contextlib.AsyncExitStack()
    else:
        handler, inner = handler_of(rest, failure, own, guarded)
        hop = FORMATS[name](handler, amends=guarded, own=own)

    class Both(contextlib.AsyncExitStack):
        async def __aenter__(self):
            await super().__aenter__()
            await self.enter_async_context(inner)
            await self.enter_async_context(hop.serve())
            return self

    async def call():
        await hop.call(side in {"both", "client"})

    del stack
    return call, Both()


async def _call(hops, failure, own, amends):
    handler, servers = handler_of(hops, failure, own, amends)
    async with servers:
        await handler()


def command_main(arguments):
    """Run in the process of a command."""
    sides, own, rest = arguments
    described = json.loads(rest)
    hops = [tuple(each) for each in described["hops"]]
    with FakeClock():
        command(lambda: _call(hops, described["failure"], own == "own", sides == "amends"), sides == "amends")


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
                    await _call(case.hops, case.failure, case.own, True)
        except Exception as error:
            ended = error
        finally:
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
    if case.full and case.own:
        found |= _meaning(case, truth, fault, ids)
    return Outcome(case, found, calls, fault, document or shown, tuple(sorted(ids)))


def _tells_alone(case):
    """Whether a server without amends is the one that answers: what it tells is not ours."""
    return case.hops[0][1] in {"client", "bare"} and case.hops[0][0] not in {"task", "arcp"}


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
