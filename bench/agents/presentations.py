"""What an agent reads when a tool fails: the raw text, a problem document, or ours with recovery and the ledger below it."""

from __future__ import annotations

import json

from amends import Policy, Upstream, recover
from amends.effects import AlreadyDoneError, Effects
from amends.errors.base import FaultError
from amends.tools import failure_text


class Raw:
    """The text of the exception, as most frameworks hand it to the model."""

    name = "raw text"

    def __init__(self, service, clock):
        self.service, self.clock = service, clock

    def act(self, arguments):
        try:
            return self.service.call(arguments, self.clock.now())
        except FaultError as error:
            return f"Error: HTTP {error.fault.status}: {error.fault.message}"
        except TimeoutError as error:
            return f"Error: TimeoutError: {error}"

    def check(self):
        return "it is done" if self.service.commits else "it is not done"


class Problem(Raw):
    """The five members of RFC 9457."""

    name = "problem document"

    def act(self, arguments):
        try:
            return self.service.call(arguments, self.clock.now())
        except FaultError as error:
            fault = error.fault
            return json.dumps(
                {
                    "type": "about:blank",
                    "title": fault.code.replace("_", " ").title(),
                    "status": fault.status,
                    "detail": fault.message,
                }
            )
        except TimeoutError:
            return json.dumps(
                {
                    "type": "about:blank",
                    "title": "Gateway Timeout",
                    "status": 504,
                    "detail": "The upstream timed out",
                }
            )


class Ours(Raw):
    """`recover` for what only reads, the ledger for what changes something, and `failure_text` for the model."""

    name = "amends"

    def __init__(self, service, clock):
        super().__init__(service, clock)
        self.effects = Effects("memory:")
        self.upstream = Upstream("bench")
        self.failures = 0

        @self.effects.once(key=lambda **arguments: "the operation", ignore=("time",))
        def change(**arguments):
            return service.call(arguments, clock.now())

        self.change = change

    def act(self, arguments):
        try:
            if self.service.effect:
                return self.change(**arguments)
            return recover(
                self._read, arguments, read_only=True, policy=Policy(max_wait=60.0), upstream=self.upstream
            )
        except AlreadyDoneError as done:
            return str(done)
        except Exception as error:
            self.failures += 1
            return failure_text(error, repeats=self.failures, arguments=tuple(arguments))

    def _read(self, arguments):
        return self.service.call(arguments, self.clock.now())

    def check(self):
        for effect in self.effects.pending():
            self.effects.verify(effect.key, happened=bool(self.service.commits), outcome="ok: done")
        return super().check()


PRESENTATIONS = (Raw, Problem, Ours)
