"""Rehearsals in the process: a block of code whose calls go to a stage, for tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from amends.core.wrong_calls import explains_wrong_calls
from amends.rehearse.acts import make_acts
from amends.rehearse.interception.process import Interception
from amends.rehearse.judge import End, Row, judge
from amends.rehearse.kinds import KINDS, STREAMING
from amends.rehearse.plan import Failure, Plan, ServiceOptions, kinds_of, planned, read_plan
from amends.rehearse.report import Report
from amends.rehearse.score import Finding
from amends.rehearse.server import StageServer
from amends.rehearse.services import environment_of, reachable, service_of_text
from amends.rehearse.stage import Incident, Record, Stage, effects_of

__all__ = ["Rehearsal"]


class Rehearsal:
    """
    A block of code whose calls to services go to a stage, where they meet failures that these services really send.

        with Rehearsal("openai", "orders", kinds=["rate", "lost"], seed=7, check=lambda: order_is_there()) as stage:
            run_my_agent()
        assert stage.duplicates == 0
        assert stage.score("openai", "rate") == 3

    The calls of httpx, httpx2, requests, urllib3 and aiohttp are intercepted, and so those of the SDKs that use them. Connections
    beyond this machine are refused. At the end everything is as it was.

    Without `kinds` or a plan there are all kinds that the services have examples of, one after the other; what no repeat cures
    comes last, because a program stops at it. `acts` gives each a run of its own.

    >>> import urllib3
    >>> with Rehearsal("stripe", kinds=["rate"], seed=7, wait=1) as stage:
    ...     answer = urllib3.request("GET", "https://api.stripe.com/v1/charges", retries=False)
    >>> answer.status, stage.score("stripe", "rate"), [each.rule for each in stage.findings("stripe", "rate")]
    (429, 1, ['gave-up', 'not-judged'])
    """

    @explains_wrong_calls
    def __init__(
        self,
        *services: str | ServiceOptions,
        seed: int = 0,
        kinds: Sequence[str] = (),
        plan: Plan | str | None = None,
        check: Callable[[], object] | None = None,
        wait: float | None = None,
        patience: float | None = None,
    ) -> None:
        """
        Take the services and the plan.

        Args:
            services: names of the service registry, of fakes (`orders`, `mcp`, `a2a`), or NAME=ADDRESS of your own test service.
            seed: the seed of the plan.
            kinds: only these kinds of failure, in the order of reports.
            plan: a plan or the path of one, instead of `seed` and `kinds`.
            check: tests the result after the block: a false value or an AssertionError is a failure. Without it no row has more
                than 2.
            wait: the longest wait that a service announces.
            patience: seconds after which a call that waits for a silent connection counts as stuck.

        """
        made = (
            plan
            if isinstance(plan, Plan)
            else read_plan(plan)
            if plan is not None
            else Plan(seed=seed, kinds=list(kinds))
        )
        changed = {
            name: value for name, value in (("wait", wait), ("patience", patience)) if value is not None
        }
        unknown = [each for each in made.kinds if each not in KINDS]
        if unknown:
            raise ValueError(f"there is no kind of failure {unknown[0]!r}; there are {', '.join(KINDS)}")
        import msgspec

        self.plan = msgspec.structs.replace(made, **changed)
        given = [service_of_text(each) if isinstance(each, str) else each for each in services]
        self._stage = Stage(self.plan, given, discover=not given and not self.plan.service)
        self._check = check
        self._server: StageServer | None = None
        self._interception: Interception | None = None
        self._failures: list[Failure] = []
        self._environment: dict[str, str | None] = {}
        self._output: list[str] = []
        self._ordinary: Record | None = None
        self._act: Sequence[Failure] | None = None
        self._status = 0
        self.rows: list[Row] = []
        """The judgements, after the block."""
        self.record = Record()
        """What the stage recorded."""

    # --- the block

    def __enter__(self) -> Self:
        self._begin(self._act if self._act is not None else self._one_run())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._end(error)

    def acts(self) -> Iterator[Rehearsal]:
        """
        Yield a rehearsal for each failure. The first has none: it learns which calls the program makes.

            for act in Rehearsal("openai", "orders", check=order_is_there).acts():
                with act:
                    run_my_agent()
            report = act.report()

        """
        self._act = ()
        yield self
        self._ordinary = self.record
        rows: list[Row] = []
        acts, unsent = make_acts(self.plan, self._ordinary, self._stage.services, connections=True)
        for act in acts:
            self._act = act.failures
            yield self
            rows += self.rows
            self.rows = list(rows)
        for failure, why in unsent.items():
            service, _, kind = failure.rpartition("/")
            rows.append(Row(service=service, kind=kind, note=f"not sent: {why}"))
        self.rows = rows
        self._act = None

    def _one_run(self) -> list[Failure]:
        """Return all failures, each at a call of its own; what no repeat cures comes last."""
        wanted = list(self.plan.failure)
        if not wanted:
            wanted = [
                Failure(name, kind)
                for name in self._stage.services
                for kind in kinds_of(name, connections=True, streams=True)
                if not self.plan.kinds or kind in self.plan.kinds
            ]
        single = len({each.kind for each in wanted}) == 1
        placed = [each for each in wanted if each.call is not None or each.rate is not None]
        for name in dict.fromkeys(each.service for each in wanted):
            open_ones = [each for each in wanted if each.service == name and each not in placed]
            ordered = sorted(open_ones, key=lambda each: each.kind in _LAST)
            for place, each in enumerate(ordered, 1):
                streams = each.kind in STREAMING
                places = {each.id: 1 if single or streams else place}
                placed += (
                    planned([each], self.plan.seed, places)
                    if single
                    else [_at(each, 1 if streams else place)]
                )
        return placed

    def _begin(self, failures: Sequence[Failure]) -> None:
        self._failures, self._output, self._status = list(failures), [], 0
        acting = None
        if self._ordinary is not None:
            from amends.rehearse.stage import acting_services

            acting = acting_services(self._ordinary)
        self._stage.begin(self._failures, acting=acting)
        self._server = StageServer(self._stage)
        addresses = {name: self._server.address(name) for name in self._stage.services}
        variables = environment_of(self._stage.services, addresses)
        own = {
            name: value
            for each in self._stage.services.values()
            for name, value in each.environment(addresses[each.name]).items()
            if not reachable(each) or (name.endswith("_API_KEY") and name not in os.environ)
        }
        self._interception = Interception(self._server.address(), variables)
        try:
            self._interception.install()
        except BaseException:
            self._server.close()
            raise
        own["grpc_proxy"] = self._server.address()  # gRPC does not use Python's sockets
        self._environment = {name: os.environ.get(name) for name in own}
        os.environ.update(own)

    def _end(self, error: BaseException | None) -> None:
        assert self._server is not None
        assert self._interception is not None
        seconds = self._stage.seconds()
        self.record = self._stage.end()
        self._stage.paused = True
        output = "\n".join(
            [*self._output, *([f"{type(error).__name__}: {error}"] if error is not None else [])]
        )
        try:
            passed = self._checked(error)
        finally:
            for name, value in self._environment.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            self._interception.remove()
            self._server.close()
        end = End(status=self._status if error is None else 1, output=output, seconds=seconds, check=passed)
        ordinary = effects_of(self._ordinary) if self._ordinary is not None else None
        self.rows = judge(self.record, self._failures, end, self.plan, ordinary)

    def _checked(self, error: BaseException | None) -> bool | None:
        if self._check is None:
            return None
        try:
            return self._check() is not False
        except AssertionError:
            return False

    # --- what the block may say and ask

    def output(self, text: str) -> None:
        """Add what the user reads at the end: it counts as a report, and is searched for text from inside services."""
        self._output.append(text)

    def ended(self, status: int) -> None:
        """Set the exit code with which the program under test ended: it failed if that is not 0, as it did if the block raises."""
        self._status = status

    def address(self, service: str) -> str:
        """Return the address of a service, for clients that are given one."""
        if self._server is None:
            raise RuntimeError("the addresses are known inside the block")
        found = self._stage.services[service]
        return self._server.address(service) + found.base_path

    @contextmanager
    def look(self) -> Iterator[None]:
        """Look at the services inside this block without being recorded."""
        self._stage.paused = True
        try:
            yield
        finally:
            self._stage.paused = False

    # --- what happened

    @property
    def duplicates(self) -> int:
        """Effects that happened more than once."""
        ordinary = effects_of(self._ordinary) if self._ordinary is not None else {}
        found = effects_of(self.record)
        return sum(max(0, count - max(1, ordinary.get(digest, 1))) for digest, count in found.items())

    @property
    def effects(self) -> int:
        """Effects that happened."""
        return sum(call.effect for call in self.record.calls)

    @property
    def incidents(self) -> list[Incident]:
        """The failures that were sent."""
        return self.record.incidents

    @property
    def violations(self) -> list[str]:
        """Addresses beyond this machine that were refused."""
        return [each.address for each in self.record.violations]

    def score(self, service: str | None = None, kind: str | None = None) -> int | None:
        """Return the score of a failure, or the lowest of a service or of all; None if it was not sent, or the run is void."""
        scores = [row.score for row in self._rows(service, kind) if row.score is not None]
        return min(scores, default=None)

    def findings(self, service: str | None = None, kind: str | None = None) -> list[Finding]:
        """Return what the program did wrong."""
        return [each for row in self._rows(service, kind) for each in row.findings]

    def _rows(self, service: str | None, kind: str | None) -> list[Row]:
        if kind is not None and kind not in KINDS:
            raise ValueError(f"there is no kind of failure {kind!r}; there are {', '.join(KINDS)}")
        if service is not None and service not in self._stage.services:
            raise ValueError(
                f"{service!r} is no service of this rehearsal: {', '.join(self._stage.services)}"
            )
        return [row for row in self.rows if service in (None, row.service) and kind in (None, row.kind)]

    def report(self, command: str = "a block of Python") -> Report:
        """Return the report, for `amends.rehearse.views`."""
        return Report(
            command=command,
            seed=self.plan.seed,
            rows=self.rows,
            violations=self.record.violations,
            checked=self._check is not None,
            mode="in the process",
        )


def _at(failure: Failure, place: int) -> Failure:
    import msgspec

    return (
        failure
        if failure.call is not None or failure.rate is not None
        else msgspec.structs.replace(failure, call=place)
    )


_LAST = frozenset(
    {
        "quota",
        "permission",
        "payment",
        "expired",
        "not-found",
        "content-refused",
        "context-too-long",
        "silent",
    }
)
"""Kinds at which a program stops."""
