"""
The callers of a run, each a process of its own that may be killed and started again.

The caller is an agent that wants exactly one order and obeys only what it sees: the decision, the wait and the notes of an
exception, or, without amends, the standard fields and the text of the answer. It writes the last answer that it got.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import msgspec

from tests.crash.instants import enter, reach
from tests.crash.processes import LOOKS
from tests.crash.servers import TOKEN, begin, lease_of, orchestrator
from tests.crash.shop import placed

BOUND = 55.0
"""Seconds within which every reader has its answer."""
OWN_KEY = "order-17"
"""The key that the program of the caller made, and has again after a restart."""
LIMIT = 2.0
"""Seconds after which a caller of a service counts a call as lost."""
ATTEMPTS = 5


def caller(folder, name, cell, port, store):
    """Order, and write the last answer."""
    begin(folder, name)
    folder = Path(folder)
    began = float((folder / "began").read_text())
    run = Run(folder, cell, port, store)
    if cell["side"] in {"both", "client"}:
        told = run.read_errors(getattr(run, f"{cell['family']}_typed"))
    else:
        told = run.read_answers(getattr(run, f"{cell['family']}_plain"))
    seconds = time.time() - began
    (folder / ".told").write_text(json.dumps([told, seconds, run.longest]))
    (folder / ".told").replace(folder / "told")


class Run:
    """One cell, at the side of its caller."""

    def __init__(self, folder, cell, port, store):
        self.folder, self.cell, self.port, self.store = folder, cell, port, store
        self.url = f"http://127.0.0.1:{port}"
        self.keeps_key = cell["keeps_key"]
        """Whether the program has the same key again after a restart."""
        self.safe = cell["safe"]
        """Whether a repeat is documented to be safe: the service honours keys, or there is a ledger."""
        self.longest = 0.0
        self.looked = False
        self.key = OWN_KEY if self.keeps_key else None
        self.name = cell["binding"]

    def timed(self, send):
        began = time.time()
        try:
            return send()
        finally:
            self.longest = max(self.longest, time.time() - began)

    # ------------------------------------------------------------------------------------------------ readers

    def read_errors(self, send):
        """Order with a client that uses amends: read its exceptions."""
        from amends import FaultError
        from amends.stores import StoreError
        from amends.tasks.wait import WaitTimeoutError

        told = "nothing"
        for _ in range(ATTEMPTS):
            try:
                self.timed(send)
            except FaultError as error:
                fault, decision = error.fault, error.decision
                action = "raised" if decision is None else str(decision.action)
                told = f"{fault.code} {action}"
                self.note(error)
                if fault.executed == "maybe" and error.key is not None:
                    self.key = error.key
                wait = fault.retry_after if decision is None else decision.resume_in
                may_repeat = fault.executed == "no" or self.invited(error)
                if wait is None or not may_repeat:
                    if not self.finds_nothing(told):
                        return told
                    continue
                time.sleep(min(wait, BOUND))
            except WaitTimeoutError:
                return "the task goes on"
            except StoreError as error:
                # What waits for a store that is down says so, and the same task is submitted again.
                told = type(error).__name__
                time.sleep(1)
            else:
                return "done"
        return told

    def finds_nothing(self, told):
        """
        Look whether the order was placed, as the advice is; return whether it was not, so that it is sent once more.

        A lost call may still act, so the agent looks after a while, and does not trust what it sees of a process that is stopped for
        longer. With EFFECT_UNKNOWN the answer of the service is to use another key.
        """
        time.sleep(LOOKS)
        if self.looked or self.cell["ledger"] or self.cell["how"] == "long stop" or placed(self.folder):
            return False
        self.looked = True
        if "EFFECT_UNKNOWN" in told:
            self.key = f"{OWN_KEY}-2" if self.keeps_key else None
        return True

    def invited(self, error):
        """Return whether the advice is to send the same call again, with its key."""
        decision = error.decision
        return decision is not None and decision.action in {"retry", "escalate"} and error.key is not None

    def note(self, error):
        with (self.folder / "notes").open("a") as file:
            file.write(f"{error.fault} {error.decision} {getattr(error, '__notes__', '')}\n")

    def read_answers(self, send):
        """Order with a client without amends: read the standard fields and the text of its answer."""
        told, until = "nothing", time.time() + BOUND - 5
        while time.time() < until:
            try:
                answer = self.timed(send)
            except Exception as error:
                while isinstance(error, BaseExceptionGroup):
                    error = error.exceptions[0]
                told = type(error).__name__
                if not self.safe:
                    return told  # nothing can be known
                time.sleep(0.5)
                continue
            if answer is None:
                return "done"
            told, again = answer
            with (self.folder / "notes").open("a") as file:
                file.write(f"{answer}\n")
            if again is not None:
                time.sleep(again)
            elif not self.finds_nothing(told):
                return told
        return told

    # --------------------------------------------------------------------------------------------------- HTTP

    def http_typed(self):
        from amends import Operation, recover
        from tests.bindings import clients

        client = next(each for each in clients.CLIENTS if each.name == self.cell["client"])
        options = {"keyed": True} if self.safe and self.cell["keyed"] else {}

        def call():
            reply = client.call(
                "POST", f"{self.url}/orders", json={"item": "book"}, timeout=LIMIT, options=dict(options)
            )
            if reply.status != 201:
                raise AssertionError(reply)

        if self.key is None:
            call()
        else:
            recover(call, operation=Operation(key=self.key))

    gateway_typed = http_typed

    def http_plain(self):
        import httpx2

        if self.safe and self.key is None:
            self.key = uuid4().hex
        key = self.key
        with httpx2.Client(timeout=3 * LIMIT if self.cell["family"] == "gateway" else LIMIT) as client:
            answer = client.post(
                f"{self.url}/orders",
                json={"item": "book"},
                headers={} if key is None else {"Idempotency-Key": key},
            )
        if answer.status_code == 201:
            return None
        try:
            problem = msgspec.json.decode(answer.content)
        except msgspec.DecodeError:
            problem = {}
        again = float(answer.headers.get("retry-after", 1)) if problem.get("is_retriable") else None
        return f"{answer.status_code} {problem.get('code')}", again

    gateway_plain = http_plain

    # ---------------------------------------------------------------------------------------------------- MCP

    def mcp_typed(self):
        from amends.bindings.mcp import Client
        from amends.effects import Effects

        options = {}
        if self.cell["ledger"]:
            options["effects"] = Effects(f"sqlite:///{self.folder}/ours.db", **lease_of(self.cell["how"]))

        async def call():
            async with Client(f"{self.url}/mcp", limit=3 * LIMIT, **options) as client:
                key = {"key": OWN_KEY} if self.cell["ledger"] else {}
                await client.call_tool("order", {"item": "book"}, **key)

        asyncio.run(call())

    def mcp_plain(self):
        import mcp

        async def call():
            async with (
                asyncio.timeout(6 * LIMIT),
                mcp.Client(f"{self.url}/mcp", read_timeout_seconds=5 * LIMIT) as client,
            ):
                return await client.call_tool("order", {"item": "book"})

        result = asyncio.run(call())
        if not result.is_error:
            return None
        text = " ".join(each.text for each in result.content if hasattr(each, "text"))
        error = (result.structured_content or {}).get("adcp_error") or {}
        return read_adcp(error, text)

    # ---------------------------------------------------------------------------------------------------- A2A

    def a2a_request(self):
        from tests.bindings import agents

        metadata = {"amends/key": OWN_KEY} if self.cell["ledger"] else {}
        return agents.request("book", metadata=metadata)

    def a2a_typed(self):
        from amends.bindings.a2a import Client
        from tests.bindings import agents

        async def call():
            async with agents.http_client(3 * LIMIT) as http:
                config = agents.config(agents.PATHS[0], httpx_client=http)
                async with Client(agents.card(self.url, agents.PATHS[0]), config=config) as client:
                    async for _ in client.send_message(self.a2a_request()):
                        pass

        asyncio.run(call())

    def a2a_plain(self):
        from a2a.client import ClientFactory
        from google.protobuf.json_format import MessageToDict

        from tests.bindings import agents

        async def call():
            async with agents.http_client(5 * LIMIT) as http:
                config = agents.config(agents.PATHS[0], httpx_client=http)
                client, last = ClientFactory(config).create(agents.card(self.url, agents.PATHS[0])), {}
                async for event in client.send_message(self.a2a_request()):
                    last = MessageToDict(event)
                return last

        last = asyncio.run(call())
        text = json.dumps(last)
        if "FAILED" not in text:
            return None
        parts = [
            part
            for artifact in last.get("task", {}).get("artifacts", [])
            for part in artifact.get("parts", [])
        ]
        error = next(
            (part["data"]["adcp_error"] for part in parts if "adcp_error" in part.get("data", {})), {}
        )
        return read_adcp(error, " ".join(part.get("text", "") for part in parts))

    # --------------------------------------------------------------------------------------------------- ARCP

    def arm(self):
        (self.folder / "armed").touch()

    def arcp_typed(self):
        from amends import Policy
        from amends.arcp import connect

        async def call():
            async with connect(f"ws://127.0.0.1:{self.port}/arcp", token=TOKEN) as client:
                self.arm()
                key = {"idempotency_key": self.key} if self.key else {}
                policy = Policy(deadline=BOUND - 10)
                await client.submit_with_recovery("order", {"item": "book"}, policy=policy, **key)

        asyncio.run(call())

    def arcp_plain(self):
        from arcp._errors import ARCPError

        from tests.arcp.published import published_client

        async def call():
            async with (
                asyncio.timeout(20),
                published_client(f"ws://127.0.0.1:{self.port}/arcp", token=TOKEN) as client,
            ):
                self.arm()
                job = await client.submit(agent="order", input={"item": "book"}, idempotency_key=OWN_KEY)
                await job.done

        try:
            return asyncio.run(call())
        except ARCPError as error:
            return f"{error.code}", 1.0 if error.retryable else None

    # -------------------------------------------------------------------------------------------------- tasks

    def tasks_typed(self):
        async def call():
            async with orchestrator(self.folder, self.store, self.cell["how"], False) as submitter:
                handle = await submitter.submit("order", {"item": "book"}, id=OWN_KEY)
                await handle.result(timeout=BOUND)

        asyncio.run(call())

    # ------------------------------------------------------------------------------------------------ effects

    def effects_typed(self):
        from amends.effects import Effects
        from tests.crash.shop import Shop

        own = Shop(self.folder)
        with Effects(self.store, wait=BOUND - 10, **lease_of(self.cell["how"])) as effects:

            @effects.once(key="number")
            def order(number):
                if self.cell["api"]:
                    self.http_typed()
                else:
                    own.order()
                    reach(self.folder, "after the record")
                return "ordered"

            order(OWN_KEY)

    # ----------------------------------------------------------------------------------------------- commands

    def command(self, ours):
        """Return the command line of the command that orders."""
        kind = "amends" if ours else "plain"
        return [sys.executable, "-m", "tests.crash.command", kind, str(self.folder)]

    def commands_typed(self):
        """`amends run` around the command; its exit code and its document are what the reader sees."""
        from amends import FaultError

        once = ["--once", OWN_KEY, "--store", f"sqlite:///{self.folder}/ours.db"]
        argv = [sys.executable, "-m", "amends", "run", "--output", "json"]
        argv += [*(once if self.cell["ledger"] else []), "--timeout", "10", "--"]
        argv += self.command(self.cell["side"] == "both")
        document, code = self.execute(argv, "client")
        if code == 0:
            return
        error = FaultError.from_fault(_fault_of(document, code))
        raise error

    def commands_plain(self):
        """A shell's loop around the command: its exit code and its envelope are what the reader sees."""
        document, code = self.execute(self.command(self.cell["side"] == "server"), "run")
        if code == 0:
            return None
        error = document.get("error") or {}
        if code < 0:
            raise ProcessLookupError
        again = 1.0 if error.get("retryable") is True or code == 7 else None
        return f"exit {code} {error.get('code')}", again

    def execute(self, argv, name):
        started = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "CRASH_RUN": name},
        )
        (self.folder / "pids" / "run").write_text(str(started.pid))
        out, _ = started.communicate()
        try:
            return json.loads(out), started.returncode
        except ValueError:
            return {}, started.returncode


def _fault_of(document, code):
    from amends import Fault
    from amends.dialects.envelope import decode

    fault = decode(document) if document else None
    if fault is not None:
        return fault
    # The run itself was killed: nothing is known.
    return Fault(code=f"EXIT {code}" if code >= 0 else signal.Signals(-code).name, executed="maybe")


def read_adcp(error, text):
    """Return what a host reads: the recovery and the wait of an AdCP error, and its text."""
    invites = error.get("recovery") == "transient" or "retry in" in text.lower()
    again = float(error.get("retry_after") or 1) if invites else None
    return f"{error.get('code')} {error.get('recovery')}", again


__all__ = ["BOUND", "caller", "enter", "placed"]
