"""The probes of an HTTP API. By default only read-only and malformed requests are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from amends.audit.surfaces.evidence import Answer, Evidence, not_probed
from amends.audit.surfaces.exchange import Exchange
from amends.audit.surfaces.openapi import Operation, operations

__all__ = ["audit_http", "observe_http"]

_DESCRIPTIONS = ("/openapi.json", "/api/openapi.json", "/swagger.json")
_JSON = {"Content-Type": "application/json"}
_ACCEPTED = "a value of a wrong type was accepted"
_UNDESCRIBED = "no OpenAPI document was found; give it with --openapi FILE"
EACH = 3
"""Operations that a kind of probe is sent to."""
MAX_LIMIT_CALLS = 60
"""Requests that --rate-limit sends at most."""


async def observe_http(
    url: str,
    *,
    app: Any = None,
    openapi: Any = None,
    headers: Mapping[str, str] | None = None,
    writes: bool = False,
    rate_limit: bool = False,
) -> Evidence:
    """
    Send the probes and return what was answered.

    Args:
        url: the base URL. Only its origin is contacted, and redirects are not followed.
        app: an ASGI application to call in this process instead of the network.
        openapi: the API's OpenAPI document; looked for at the usual paths if it is None.
        headers: headers of every request, such as credentials.
        writes: also send malformed bodies to operations whose schema is unknown; a careless service may act on them.
        rate_limit: also send up to 60 GET requests at once, until the service limits them.

    """
    async with Exchange(url, headers, app) as exchange:
        described = operations(openapi if openapi is not None else await _description(exchange))
        probes = [
            *_general(described),
            *_invalid_values(described),
            *_bodies(described, writes=writes),
            *_credentials(described),
        ]
        answers = [await _send(exchange, probe) for probe in probes]
        answers += _left_out(described, probes)
        answers.append(
            await _limit(exchange, described)
            if rate_limit
            else not_probed("rate-limit", "needs --rate-limit: up to 60 GET requests at once")
        )
        return Evidence(surface="http", target=exchange.base, answers=answers)


def audit_http(url: str, **options: Any) -> Evidence:
    """Do the same as `observe_http`, in a program without an event loop."""
    return asyncio.run(observe_http(url, **options))


async def _description(exchange: Exchange) -> Any:
    for path in _DESCRIPTIONS:
        try:
            reply = await exchange.send("GET", path)
        except Exception:  # noqa: BLE001 - the other probes show that the service cannot be reached
            return None
        if reply.status == 200 and isinstance(reply.json, dict) and "paths" in reply.json:
            return reply.json
    return None


class Probe(NamedTuple):
    """One request."""

    name: str
    method: str
    path: str
    expected: str = ""
    """What a success means; empty if a service may as well succeed, which then says nothing."""
    options: Mapping[str, Any] = {}


def _general(described: Sequence[Operation]) -> Iterator[Probe]:
    known = next((one.path for one in described if one.method == "GET"), "/")
    missing = "a path that does not exist was answered as a success"
    yield Probe("unknown-path", "GET", "/amends-audit-unknown", missing)
    yield Probe("oversized-value", "GET", f"/amends-audit-{'x' * 4000}")
    yield Probe("unknown-method", "AMENDS-AUDIT", known)
    yield Probe("unacceptable-type", "GET", known, "", {"headers": {"Accept": "application/x-amends-audit"}})


def _invalid_values(described: Sequence[Operation]) -> Iterator[Probe]:
    """GET requests with values of a wrong type, and without required ones."""
    reads = [one for one in described if one.method == "GET"]
    for one in [each for each in reads if each.typed_path][:EACH]:
        yield Probe("wrong-type", "GET", one.typed_path or "", _ACCEPTED)
    for one in [each for each in reads if each.typed_query][:EACH]:
        yield Probe("wrong-type", "GET", one.path, _ACCEPTED, {"params": {one.typed_query: "amends-audit"}})
    for one in [each for each in reads if each.required_query][:EACH]:
        yield Probe("missing-value", "GET", one.path, "a required value was not needed")


def _bodies(described: Sequence[Operation], *, writes: bool) -> Iterator[Probe]:
    """Bodies that a service must refuse: broken JSON, members of a wrong type, none of the required members."""
    with_body = [one for one in described if one.json_body and one.method in {"POST", "PUT", "PATCH"}]
    broken = {"headers": _JSON, "content": b'{"amends-audit": '}
    other = {"headers": {"Content-Type": "application/x-amends-audit"}, "content": b"amends-audit"}
    for one in with_body[:EACH]:
        yield Probe("broken-json", one.method, one.path, "broken JSON was accepted", broken)
        yield Probe("wrong-media-type", one.method, one.path, "an unknown media type was accepted", other)
    for one in [each for each in with_body if each.wrong_body][:EACH]:
        body = {"headers": _JSON, "content": msgspec.json.encode(one.wrong_body)}
        yield Probe("wrong-type", one.method, one.path, _ACCEPTED, body)
    for one in [each for each in with_body if each.requires_members][:EACH]:
        empty = {"headers": _JSON, "content": b"{}"}
        yield Probe("missing-value", one.method, one.path, "a required member was not needed", empty)
    if writes and not with_body:
        yield Probe("broken-json", "POST", "/", "", broken)


def _credentials(described: Sequence[Operation]) -> Iterator[Probe]:
    admitted = "an operation that needs credentials was admitted without"
    expired = {"credentials": False, "headers": {"Authorization": "Bearer amends-audit-expired"}}
    for one in [each for each in described if each.secured and each.method == "GET"][:1]:
        yield Probe("no-credentials", "GET", one.path, admitted, {"credentials": False})
        yield Probe("expired-credentials", "GET", one.path, admitted, expired)


async def _send(exchange: Exchange, probe: Probe) -> Answer:
    answer = await exchange.probe(
        probe.name, probe.method, probe.path, expected=probe.expected, **probe.options
    )
    if answer.outcome == "success" and not probe.expected:
        return msgspec.structs.replace(answer, outcome="not-probed", because="the service did not object")
    return answer


def _left_out(described: Sequence[Operation], sent: Sequence[Probe]) -> Iterator[Answer]:
    """What could not be probed, with the reason."""
    names = {probe.name for probe in sent}
    if not names & {"wrong-type", "missing-value"}:
        because = "no operation has a typed or required value" if described else _UNDESCRIBED
        yield not_probed("wrong-type", because)
    if "no-credentials" not in names:
        yield not_probed("no-credentials", "no operation that needs credentials is known")


async def _limit(exchange: Exchange, described: Sequence[Operation]) -> Answer:
    """Send GET requests until the service limits them."""
    path = next((one.path for one in described if one.method == "GET"), "/")
    for _ in range(MAX_LIMIT_CALLS):
        answer = await exchange.probe("rate-limit", "GET", path)
        if answer.outcome not in {"success", "failure"}:
            return answer
        if isinstance(answer.response, dict) and answer.response.get("status") in {429, 503}:
            return answer
    return not_probed("rate-limit", f"{MAX_LIMIT_CALLS} requests were not limited")
