"""Agents for several test files: a calendar agent, and a booking agent whose steps can be undone."""

import msgspec

from amends.errors import task as errors
from amends.tasks import (
    Agent,
)


class Event(msgspec.Struct):
    title: str
    minutes: int = 60


def calendar():
    agent = Agent("calendar-agent")

    @agent.capability(idempotent=True)
    async def create_event(event: Event, ctx):
        return {"title": event.title, "key": ctx.key, "attempt": ctx.attempt}

    return agent


def booking(undone, broken=()):
    """An agent whose steps can be undone. Booking "moon" fails; undoing a step in `broken` fails once."""
    agent = Agent("booking-agent")

    async def unbook(what, result, ctx):
        undone.append((what, result, ctx.key))
        if what in broken and ctx.attempt < 2:
            raise errors.AgentUnavailableError

    @agent.capability(keyed=True, undo=unbook)
    async def book(what):
        if what == "moon":
            raise errors.InvalidFieldValueError(field="/what")
        return f"{what} booked"

    return agent
