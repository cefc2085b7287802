"""Responses of synchronous frameworks, said better where they say little: the same rules as for ASGI, in one step."""

from __future__ import annotations

from collections.abc import Iterable

from amends.http.application_errors import waiting
from amends.http.bodies import LIMIT, improved, rewritable
from amends.http.negotiation import wanted
from amends.http.responses import Answer, Asked, Settings, answer

__all__ = ["better"]


def better(
    status: int, headers: Iterable[tuple[str, str]], body: bytes, asked: Asked, settings: Settings
) -> Answer | None:
    """The answer to send instead of an error response that says little; None where it may stay as it is."""
    given = list(headers)
    fields = {name.lower(): value for name, value in given}
    kind = fields.get("content-type", "")
    if len(body) > LIMIT and not kind.startswith("text/html"):
        return None
    if not rewritable(status, kind, wanted(asked.accept), fields.get("content-encoding")):
        return None
    fault = improved(status, kind, body)
    if fault is None:
        return None
    return answer(waiting(fault, fields), asked, settings, headers=given)
