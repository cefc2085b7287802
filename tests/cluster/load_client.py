"""
A client under load that checks what it receives: missing or repeated event numbers, a second end, a key with two jobs.

It sends raw frames to any node that answers, resumes its session on any node, and repeats submissions that were not
answered with the same key.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict

import msgspec

from amends.arcp.transports import ConnectionLost
from amends.arcp.wire import FEATURES
from tests.arcp.raw import Raw

_QUIET = tuple(feature for feature in FEATURES if feature != "heartbeat")
_RETRY_PAUSE = 0.2


class LoadClient:
    """One session and its jobs."""

    def __init__(self, connect, name, *, at_once=4, steps=3, pause=0.05):
        self._connect = connect
        self._name = name
        self._at_once = at_once
        self._work = {"steps": steps, "pause": pause}
        self._numbers = itertools.count()
        self._resume = None
        self._raw = None
        self._requests = {}
        self.last = 0
        self.waiting = set()
        """Keys that were submitted and not answered yet."""
        self.jobs = {}
        """Job ids of accepted submissions, by key."""
        self.received = defaultdict(list)
        """Payloads of the received events, by job id."""
        self.ends = {}
        self.resumed = 0
        self.restarted = 0
        """How often a job was restarted after its node was gone."""
        self.wrong = []
        self.more = True

    @property
    def open(self):
        return [job for job in self.jobs.values() if job not in self.ends]

    async def go(self):
        """Run until `more` is False and all jobs have ended."""
        while self.more or self.waiting or self.open:
            try:
                async with asyncio.timeout(15):
                    await self._connected()
                await self._serve()
            except (ConnectionLost, TimeoutError, AssertionError):
                await asyncio.sleep(0.05)
            finally:
                if self._raw is not None:
                    await self._raw.connection.close()
                    self._raw = None

    async def _connected(self):
        raw = Raw(await self._connect())
        self._raw = raw
        resume = None if self._resume is None else {**self._resume, "last_event_seq": self.last}
        answer = await raw.hello(features=_QUIET, resume=resume)
        if answer["type"] != "session.welcome":
            code = answer["payload"].get("code")
            if code != "INTERNAL_ERROR":
                self.wrong.append(f"{self._name} was refused: {answer['payload']}")
            raise ConnectionLost
        self.resumed += resume is not None
        self._resume = {"session_id": raw.session_id, "resume_token": raw.welcome["resume_token"]}
        self._requests = {}
        raw.seen.clear()
        for key in list(self.waiting):
            await self._submit(key)

    async def _serve(self):
        while self.more or self.waiting or self.open:
            while self.more and len(self.waiting) + len(self.open) < self._at_once:
                key = f"{self._name}-{next(self._numbers)}"
                self.waiting.add(key)
                await self._submit(key)
            message = await self._raw.receive(20)
            if message is None:
                raise ConnectionLost
            self._raw.seen.clear()
            await self._take(message)

    async def _submit(self, key):
        payload = {"agent": "steps", "input": {"key": key, **self._work}, "idempotency_key": key}
        self._requests[await self._raw.send("job.submit", payload)] = key

    async def _take(self, message):
        payload, number = message["payload"], message.get("event_seq")
        if number is not None:
            if number != self.last + 1:
                self.wrong.append(
                    f"{self._name} had event {self.last} and was sent {number}: {message['type']}"
                )
            self.last = number
            if number % 50 == 0:
                await self._raw.send("session.ack", {"last_processed_seq": number})
        key = self._requests.get(payload.get("request_id"))
        if message["type"] == "job.accepted" and key is not None:
            self.waiting.discard(key)
            if self.jobs.setdefault(key, payload["job_id"]) != payload["job_id"]:
                self.wrong.append(f"{key} was {self.jobs[key]} and is {payload['job_id']}")
        elif number is None and key is not None and key in self.waiting:
            # The submission was not accepted, and may be repeated.
            if payload.get("retryable") is not True and payload.get("code") != "INTERNAL_ERROR":
                self.wrong.append(f"{key} was refused: {payload}")
            await asyncio.sleep(_RETRY_PAUSE)
            await self._submit(key)
        elif number is not None:
            job = message["job_id"]
            self.received[job].append(payload)
            self.restarted += (payload.get("body") or {}).get("phase") == "restarted"
            if message["type"] in {"job.result", "job.error"}:
                if job in self.ends:
                    self.wrong.append(f"{job} ended twice")
                self.ends[job] = message

    async def compare(self, ledger):
        """Compare the received events with the jobs' logs: no gap, nothing else, and one end."""
        for key, job in self.jobs.items():
            entries = [entry async for _, entry in ledger.history(job)]
            written = [
                msgspec.json.decode(entry.payload)
                for entry in entries
                if entry.kind in {"event", "result", "error"}
            ]
            ends = [entry for entry in entries if entry.ended]
            turns = [turn for turn, _ in itertools.groupby((entry.epoch, entry.node) for entry in entries)]
            if [epoch for epoch, _ in turns] != sorted({epoch for epoch, _ in turns}):
                self.wrong.append(f"{key} ({job}) was written by a node that no longer had it: {turns}")
            runs = [entry.run for entry in ends]
            if len(runs) != len(set(runs)) or len(runs) != 1:
                self.wrong.append(f"{key} ({job}) has ends of runs {runs}")
            elif ends[0].kind != "result":
                self.wrong.append(f"{key} ({job}) failed: {written[-1]}")
            received = self.received[job]
            if not received or written[-len(received) :] != received:
                self.wrong.append(
                    f"{key} ({job}): the {len(received)} received events are not the last of {len(written)}"
                )
