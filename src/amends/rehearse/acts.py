"""Which failures are sent in which run: the acts of a rehearsal, made from a run without failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from amends.rehearse.kinds import CONNECTION, STREAMING
from amends.rehearse.plan import Failure, Plan, kinds_of, planned
from amends.rehearse.services import Service
from amends.rehearse.stage import Record, acting_services, run_places

__all__ = ["Act", "make_acts"]


class Act(msgspec.Struct, frozen=True):
    """One run with its failures."""

    failures: tuple[Failure, ...]
    acting: dict[str, bool]

    @property
    def title(self) -> str:
        """The failures by name."""
        return ", ".join(each.id for each in self.failures)


def make_acts(
    plan: Plan, ordinary: Record, services: Mapping[str, Service], *, connections: bool
) -> tuple[list[Act], dict[str, str]]:
    """
    Return the acts, and the failures that cannot be sent with the reason.

    Args:
        plan: the plan. Without failures there is one of each kind that the services have examples of.
        ordinary: the record of the run without failures.
        services: the services of the stage.
        connections: whether failures of the connection can be produced.

    """
    unsent: dict[str, str] = {}
    wanted = list(plan.failure) or list(_default(ordinary))
    if plan.kinds:
        wanted = [each for each in wanted if each.kind in plan.kinds]
    places = run_places(ordinary, wanted, services)
    possible = []
    for failure in wanted:
        if failure.kind in CONNECTION and not connections:
            unsent[failure.id] = (
                "a server cannot refuse a connection before it sees the call: run a Python with amends"
            )
        elif places[failure.id] == 0 and failure.call is None:
            what = "asks for a stream" if failure.kind in STREAMING else "it could concern"
            unsent[failure.id] = f"the program makes no call that {what}"
        else:
            possible.append(failure)
    acting = acting_services(ordinary)
    placed = planned(possible, plan.seed, places)
    if plan.together:
        return ([Act(tuple(placed), acting)] if placed else []), unsent
    return [Act((each,), acting) for each in placed], unsent


def _default(ordinary: Record) -> Iterable[Failure]:
    used: dict[str, bool] = {}
    for call in ordinary.calls:
        used[call.service] = used.get(call.service, False) or call.streams
    for service in sorted(used):
        for kind in kinds_of(service, connections=True, streams=used[service]):
            yield Failure(service, kind)
