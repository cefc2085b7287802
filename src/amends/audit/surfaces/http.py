"""The probes of an HTTP API. By default only read-only and malformed requests are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypedDict, Unpack
from uuid import uuid4

import msgspec

from amends.audit.surfaces.error_pages import error_page, wrong_code
from amends.audit.surfaces.evidence import ABOUT_INPUT, NO_INPUT, UNKNOWN_CODE, Answer, Evidence, not_probed
from amends.audit.surfaces.examples import described_at, links, own_description, routes, wrong_values
from amends.audit.surfaces.exchange import (
    MAX_PROBES,
    Budget,
    Exchange,
    OutOfProbesError,
    ProbeOptions,
    Reply,
    document,
    httpx,
)
from amends.audit.surfaces.openapi import Operation, operations
from amends.audit.surfaces.proxy import DISTURBANCES, MISSING, Proxy, between, repeated
from amends.audit.surfaces.wsgi import AnyApp
from amends.core.redaction import redact
from amends.http.key_support import REPLAYED
from amends.recovery.events import plain_url

__all__ = ["audit_http", "observe_http"]

_DESCRIPTIONS = (
    *("/openapi.json", "/api/openapi.json", "/api/v1/openapi.json", "/swagger.json"),
    *("/schema/openapi.json", "/v3/api-docs", "/spec.json"),  # Litestar, Spring, Flask-RESTful
    *("/apispec_1.json", "/swagger/v1/swagger.json", "/api/schema/?format=json"),  # Flasgger, ASP.NET, DRF
)
_CATALOG = "/.well-known/api-catalog"
"""RFC 9727: it links to the descriptions of the APIs of a host."""
_JSON = {"Content-Type": "application/json"}
_ACCEPTED = "a value of a wrong type was accepted"
_UNDESCRIBED = (
    "no OpenAPI document was found: give it with --openapi FILE, or a read with --path '/items/7?limit=3'"
)
EACH = 3
"""Operations that a kind of probe is sent to."""
_LIMITED = 429
"""A service that limits the repeat has answered it."""
MAX_LIMIT_CALLS = 60
"""Requests that --rate-limit sends at most."""


class HttpOptions(TypedDict, total=False):
    """The options of `observe_http`."""

    app: AnyApp | None
    openapi: object
    paths: Sequence[str]
    headers: Mapping[str, str] | None
    writes: bool
    rate_limit: bool


async def observe_http(
    url: str,
    *,
    app: AnyApp | None = None,
    openapi: object = None,
    paths: Sequence[str] = (),
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
        paths: examples of reads, for an API without a document: "/items/7?limit=3". Their numbers and UUIDs are replaced by a text.
        headers: headers of every request, such as credentials.
        writes: also send bodies without their required members, a malformed body to `/` if no schema is known, and one
            valid body twice with one key; a service may act on them.
        rate_limit: also send up to 60 GET requests, one after the other, until the service limits them.

    """
    budget = Budget(MAX_PROBES + (MAX_LIMIT_CALLS if rate_limit else 0))
    async with Exchange(url, headers, app, budget=budget) as exchange:
        root = None
        if openapi is None:
            openapi = own_description(app)
        if openapi is None:
            root = await _look(exchange, "/")
            openapi = None if root is None else await _description(exchange, root)
        described = operations(openapi)
        linked = [] if root is None else links(root, exchange.base)
        examples = paths or ([] if described else routes(app) or linked)
        reads = [*_general(described), *_invalid_values(described), *_credentials(described, headers)]
        reads += _wrong_examples(examples)
        bodies = list(_bodies(described, writes=writes))
        answers = [await _send(exchange, probe) for probe in reads]
        if not described and not any(
            one.probe in ABOUT_INPUT and one.outcome == "failure" for one in answers
        ):
            answers += await _unknown_code(exchange, answers)
        answers += await _send_bodies(exchange, bodies)
        answers += _left_out(described, [*reads, *bodies])
        if any(one.outcome in {"failure", "success"} for one in answers):
            answers += await _through_proxy(exchange, described, writes=writes)
        answers.append(
            await _limit(exchange, described)
            if rate_limit
            else not_probed("rate-limit", "needs --rate-limit: up to 60 GET requests")
        )
        return Evidence(surface="http", target=plain_url(exchange.base), answers=answers)


def audit_http(url: str, **options: Unpack[HttpOptions]) -> Evidence:
    """Do the same as `observe_http`, in a program without an event loop."""
    return asyncio.run(observe_http(url, **options))


async def _look(exchange: Exchange, path: str) -> Reply | None:
    """Return the answer to a read. If there is none, the other probes show that the service cannot be reached."""
    try:
        return await exchange.send("GET", path)
    except Exception:  # noqa: BLE001 - any failure of the client is an answer that did not come
        return None


async def _description(exchange: Exchange, root: Reply) -> object:
    """Return the OpenAPI document of a service: one that it links to, else one at a usual path."""
    catalogue = await _look(exchange, _CATALOG)
    named = described_at(root, exchange.base)
    named += [] if catalogue is None else described_at(catalogue, exchange.base)
    for path in dict.fromkeys([*named[:EACH], *_DESCRIPTIONS]):
        reply = await _look(exchange, path)
        if reply is None:
            return None
        if reply.described is not None:
            return reply.described
    return None


class Probe(NamedTuple):
    """One request."""

    name: str
    method: str
    path: str
    expected: str = ""
    """What a success means; empty if a service may as well succeed, which then says nothing."""
    options: ProbeOptions = ProbeOptions()


def _general(described: Sequence[Operation]) -> Iterator[Probe]:
    known = next((one.path for one in described if one.method == "GET"), "/")
    missing = "a path that does not exist was answered as a success"
    yield Probe("unknown-path", "GET", "/amends-audit-unknown", missing)
    yield Probe("oversized-value", "GET", f"/amends-audit-{'x' * 4000}")
    # Some servers refuse a method that is not registered before the application sees it. SEARCH only reads.
    yield Probe("unknown-method", "SEARCH", known)
    yield Probe("unacceptable-type", "GET", known, "", {"headers": {"Accept": "application/x-amends-audit"}})


def _invalid_values(described: Sequence[Operation]) -> Iterator[Probe]:
    """GET requests with values of a wrong type, and without required ones."""
    reads = [one for one in described if one.method == "GET"]
    for one in [each for each in reads if each.typed_path][:EACH]:
        yield Probe("wrong-type", "GET", one.typed_path or "", _ACCEPTED, {"fields": [one.typed_parameter]})
    for path, query in [(each.path, each.typed_query) for each in reads if each.typed_query][:EACH]:
        wrong: ProbeOptions = {"params": {query: "amends-audit"}, "fields": [query]}
        yield Probe("wrong-type", "GET", path, _ACCEPTED, wrong)
    for one in [each for each in reads if each.required_query][:EACH]:
        missing: ProbeOptions = {"fields": list(one.required_query)}
        yield Probe("missing-value", "GET", one.path, "a required value was not needed", missing)


def _wrong_examples(examples: Sequence[str]) -> Iterator[Probe]:
    """Reads that were named or linked, each with one wrong value. That a number is needed is a guess, so a success says nothing."""
    wrong = [one for example in examples for one in wrong_values(example)]
    for path, field in list(dict.fromkeys(wrong))[: 2 * EACH]:
        yield Probe("wrong-type", "GET", path, "", {"fields": [field] if field else []})


async def _unknown_code(exchange: Exchange, answers: Sequence[Answer]) -> list[Answer]:
    """Ask for the page of an error that does not exist, if failures link to a page that does."""
    known = error_page(answers, exchange.base)
    if known is None:
        return []
    page = await _look(exchange, known)
    if page is None or page.status != 200:
        return []
    return [await _send(exchange, Probe(UNKNOWN_CODE, "GET", wrong_code(known)))]


def _bodies(described: Sequence[Operation], *, writes: bool) -> Iterator[Probe]:
    """
    Yield bodies that a service must refuse: broken JSON, another media type, members of a wrong type.

    The most harmless come first. A body without any member is valid JSON that a careless service may store, so it needs --writes.
    """
    with_body = [one for one in described if one.json_body and one.method in {"POST", "PUT", "PATCH"}]
    broken: ProbeOptions = {"headers": _JSON, "content": b'{"amends-audit": '}
    other: ProbeOptions = {
        "headers": {"Content-Type": "application/x-amends-audit"},
        "content": b"amends-audit",
    }
    for one in with_body[:EACH]:
        yield Probe("broken-json", one.method, one.path, "broken JSON was accepted", broken)
    for one in with_body[:EACH]:
        yield Probe("wrong-media-type", one.method, one.path, "an unknown media type was accepted", other)
    for one in [each for each in with_body if each.wrong_body][:EACH]:
        wrong = one.wrong_body or {}
        body: ProbeOptions = {"headers": _JSON, "content": msgspec.json.encode(wrong), "fields": list(wrong)}
        yield Probe("wrong-type", one.method, one.path, _ACCEPTED, body)
    for one in [each for each in with_body if each.required_members and writes][:EACH]:
        empty: ProbeOptions = {"headers": _JSON, "content": b"{}", "fields": list(one.required_members)}
        yield Probe("missing-value", one.method, one.path, "a required member was not needed", empty)
    if writes and not with_body:
        yield Probe("broken-json", "POST", "/", "", broken)


async def _send_bodies(exchange: Exchange, probes: Sequence[Probe]) -> list[Answer]:
    """Send bodies until one is accepted: a service that accepts what it must refuse may act on the next one."""
    answers: list[Answer] = []
    for probe in probes:
        if any(one.outcome == "success" for one in answers):
            answers.append(not_probed(probe.name, f"{answers[0].sent} was accepted, so no more was sent"))
            break
        answers.append(await _send(exchange, probe))
    return answers


def _credentials(described: Sequence[Operation], given: Mapping[str, str] | None) -> Iterator[Probe]:
    """Yield a read without credentials and with expired ones: of an operation that needs them, or of any if some were given."""
    secured = [each for each in described if each.secured and each.method == "GET"]
    if secured:
        one, admitted = secured[0], "an operation that needs credentials was admitted without"
    elif given:
        reads = [each for each in described if each.method == "GET"]
        one, admitted = reads[0] if reads else Operation(method="GET", path="/"), ""
    else:
        return
    scheme = "Bearer " if one.credentials == "Authorization" else ""
    expired = dict.fromkeys(given or {}, "amends-audit-expired") or {
        one.credentials: f"{scheme}amends-audit-expired"
    }
    without: ProbeOptions = {"credentials": False}
    yield Probe("no-credentials", "GET", one.path, admitted, without)
    yield Probe("expired-credentials", "GET", one.path, admitted, {**without, "headers": expired})


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
        because = NO_INPUT if described else _UNDESCRIBED
        yield not_probed("wrong-type", because)
    if "no-credentials" not in names:
        yield not_probed(
            "no-credentials", "no operation that needs credentials is known, and none were given"
        )


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


async def _through_proxy(exchange: Exchange, described: Sequence[Operation], *, writes: bool) -> list[Answer]:
    """Send a read whose answer is lost, slow or cut, and then send it again."""
    path = next((one.path for one in described if one.method == "GET"), "/")
    keyed = next((one for one in described if one.takes_key and one.valid_body is not None), None)
    async with between(exchange) as found:
        if found is None:
            return [not_probed(name, MISSING) for name in DISTURBANCES]
        through, proxy = found
        answers = [await _again(exchange, through, proxy, name, path) for name in DISTURBANCES]
        if keyed is not None:
            answers.append(
                await _once(through, proxy, keyed)
                if writes
                else not_probed("repeated-write", f"needs --writes: {keyed.method} {keyed.path} twice")
            )
        return answers


async def _again(exchange: Exchange, through: Exchange, proxy: Proxy, name: str, path: str) -> Answer:
    """Send a read, the same with a disturbance, and the same again."""
    sent = f"GET {path}, {DISTURBANCES[name]}, again"
    try:
        before = (await exchange.send("GET", path)).status
    except OutOfProbesError:
        return not_probed(name, "the audit's limit was reached")
    except Exception as error:  # noqa: BLE001 - the service does not answer this read at all
        return not_probed(name, f"GET {path} was not answered: {type(error).__name__}")
    after: int | str
    try:
        proxy.mode = name
        with suppress(httpx.TransportError):
            await through.send("GET", path)
        proxy.mode = ""
        after = (await through.send("GET", path)).status
    except OutOfProbesError:
        return not_probed(name, "the audit's limit was reached")
    except Exception as error:  # noqa: BLE001 - the service does not answer any more
        after = type(error).__name__
    return repeated(name, sent, before, before if after == _LIMITED else after)


async def _once(through: Exchange, proxy: Proxy, operation: Operation) -> Answer:
    """Send a valid write with a key, lose its answer, and send it again."""
    sent = f"{operation.method} {operation.path} twice with one Idempotency-Key"
    write = partial(
        through.send,
        operation.method,
        operation.path,
        headers=_JSON | {"Idempotency-Key": f"amends-audit-{uuid4()}"},
        content=msgspec.json.encode(operation.valid_body),
    )
    try:
        proxy.mode = "lost-answer"
        with suppress(httpx.TransportError):
            await write()
        proxy.mode = ""
        first = proxy.last
        if first is None or not first.is_success:
            status = "no answer" if first is None else first.status_code
            return not_probed("repeated-write", f"{operation.method} {operation.path} answered {status}")
        again = await write()
    except Exception as error:  # noqa: BLE001 - no answer says nothing about the effect
        return not_probed("repeated-write", f"{sent}: {type(error).__name__}")
    if again.status == 409 or any(again.headers.get(name.lower()) == "true" for name in REPLAYED):
        return Answer(probe="repeated-write", sent=sent, outcome="recovered")
    before, after = (
        _created(first.headers.get("location"), first.content),
        _created(again.headers.get("location"), again.body),
    )
    if not before or not after:
        return not_probed("repeated-write", "its answers do not show what was created")
    if before == after:
        return Answer(probe="repeated-write", sent=sent, outcome="recovered")
    because = "the two answers name different things, so it was executed twice"
    text = f"{because}: {redact(first.text)[:150]} {redact(again.text)[:150]}"
    return Answer(probe="repeated-write", sent=sent, outcome="stuck", because=because, text=text)


def _created(location: str | None, body: bytes) -> tuple[str, ...]:
    """Return what an answer says about the thing that was created: where it is, and its ids."""
    found = document(body)
    ids = [
        f"{name}={value}"
        for name, value in (found.items() if isinstance(found, dict) else ())
        if name == "id" or (name.endswith("_id") and name not in _IDS_OF_REQUESTS)
    ]
    return tuple(filter(None, [location, *sorted(ids)]))


_IDS_OF_REQUESTS = frozenset({"request_id", "trace_id", "correlation_id"})
