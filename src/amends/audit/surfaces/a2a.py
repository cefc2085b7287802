"""The probes of an A2A agent over JSON-RPC, of protocol 1.0 or 0.3 as its card says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from amends.audit.surfaces.evidence import Answer, Evidence, answered, as_text, not_probed
from amends.audit.surfaces.exchange import Exchange
from amends.audit.surfaces.jsonrpc import HttpPeer, again, as_mapping, probe, without_credentials
from amends.audit.surfaces.proxy import DISTURBANCES, MISSING, between
from amends.audit.surfaces.wsgi import AnyApp
from amends.recovery.events import plain_url

__all__ = ["observe_a2a"]

_CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")


class _Names(NamedTuple):
    """The method names of a protocol version."""

    send: str
    get: str
    cancel: str
    subscribe: str


_METHODS = {
    "1": _Names("SendMessage", "GetTask", "CancelTask", "SubscribeToTask"),
    "0": _Names("message/send", "tasks/get", "tasks/cancel", "tasks/resubscribe"),
}


async def observe_a2a(
    url: str, *, app: AnyApp | None = None, headers: Mapping[str, str] | None = None, writes: bool = False
) -> Evidence:
    """
    Send the probes and return what was answered.

    Args:
        url: the base URL of the agent, where its card is.
        app: an ASGI application to call in this process instead of the network.
        headers: headers of every request, such as credentials.
        writes: also send the agent one message, "amends-audit".

    """
    parts = urlsplit(url)
    async with Exchange(f"{parts.scheme}://{parts.netloc}", headers, app) as exchange:
        card = await _card(exchange, parts.path.rstrip("/"))
        path, version, named = _endpoint(card, exchange, parts.path or "/")
        names = _METHODS["0" if version.startswith("0") else "1"]
        peer = HttpPeer(exchange, path, {} if version.startswith("0") else {"A2A-Version": version})
        name = " ".join(str(card.get(key, "")) for key in ("name", "version")).strip()
        answers = []
        for called, method, params, about in _calls(names):
            answers.append(
                await probe(peer, called, method, params, about=about, expected="it was answered", target=url)
            )
            if peer.status in _NO_ENDPOINT and not _is_rpc(answers[0]):
                missing = not_probed(called, f"POST {path} answered {peer.status}{named}")
                return Evidence(surface="a2a", target=plain_url(url), answers=[missing], version=name)
        answers.append(await _broken(peer, url))
        if not version.startswith("0"):
            peer.headers["A2A-Version"] = "99.0"
            answers.append(
                await probe(
                    peer, "unsupported-version", names.get, {"id": "amends-audit-unknown"}, target=url
                )
            )
            peer.headers["A2A-Version"] = version
        answers.append(
            await _message(peer, names, url)
            if writes
            else not_probed("failed-task", "needs --writes: one message to the agent")
        )
        answers += await without_credentials(exchange, path, names.get, {"id": "amends-audit-unknown"})
        if any(one.outcome in {"failure", "success"} for one in answers):
            answers += await _through_proxy(exchange, peer, path, names)
        return Evidence(surface="a2a", target=plain_url(url), answers=answers, version=name)


_NO_ENDPOINT = frozenset({404, 405})


def _is_rpc(answer: Answer) -> bool:
    return isinstance(answer.response, Mapping) and "jsonrpc" in answer.response


async def _through_proxy(exchange: Exchange, peer: HttpPeer, path: str, names: _Names) -> list[Answer]:
    """Disturb the answers about a task that does not exist; the stream is that of a subscription."""
    async with between(exchange) as found:
        if found is None:
            return [not_probed(name, MISSING) for name in DISTURBANCES]
        through, proxy = found
        disturbed = HttpPeer(through, path, peer.headers)
        methods = {name: names.subscribe if name == "cut-stream" else names.get for name in DISTURBANCES}
        unknown = {"id": "amends-audit-unknown"}
        return [await again(disturbed, proxy, name, method, unknown) for name, method in methods.items()]


async def _card(exchange: Exchange, below: str) -> Mapping[str, object]:
    for path in _CARDS:
        try:
            reply = await exchange.send("GET", f"{below}{path}")
        except Exception:  # noqa: BLE001 - the other probes show that the agent cannot be reached
            return {}
        if reply.status == 200 and isinstance(reply.json, Mapping):
            return reply.json
    return {}


def _endpoint(card: Mapping[str, object], exchange: Exchange, default: str) -> tuple[str, str, str]:
    """
    Return the path and version of the JSON-RPC interface, and what the card says if it is on another address.

    A card often names the public address of an agent that is audited at another one. Its path is then tried at the named address.
    """
    interfaces = card.get("supportedInterfaces")
    found = [
        (str(each.get("url", "")), str(each.get("protocolVersion", "1.0")))
        for each in (interfaces if isinstance(interfaces, list) else [])
        if isinstance(each, Mapping) and str(each.get("protocolBinding", "JSONRPC")).upper() == "JSONRPC"
    ]
    if isinstance(card.get("url"), str):
        found.append((str(card["url"]), str(card.get("protocolVersion", "0.3"))))
    parts = [(_split(url), version) for url, version in found]
    for (origin, path), version in parts:
        if origin == tuple(urlsplit(exchange.base)[:2]):
            return path, version, ""
    if not parts:
        return default, "1.0", ""
    (_, path), version = parts[0]
    return path, version, f"; the card names {plain_url(found[0][0])}"


def _split(url: str) -> tuple[tuple[str, str], str]:
    """Return the origin and the path of a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:  # no URL
        return ("", ""), "/"
    return (parts.scheme, parts.netloc), parts.path if parts.path.startswith("/") else "/"


def _calls(names: _Names) -> Iterator[tuple[str, str, Mapping[str, object], str]]:
    unknown = {"id": "amends-audit-unknown"}
    yield "unknown-method", "amends-audit/unknown", {}, ""
    yield "unknown-task", names.get, unknown, "of an unknown task"
    yield "unknown-task", names.cancel, unknown, "of an unknown task"
    yield "malformed-call", names.send, {"message": "amends-audit"}, "with a text instead of a message"
    yield "malformed-call", names.get, {}, "without an id"


async def _broken(peer: HttpPeer, target: str) -> Answer:
    try:
        response = as_mapping(await peer.post(b'{"jsonrpc": "2.0", "id": '))
    except Exception as error:  # noqa: BLE001
        return Answer(probe="broken-json", sent="POST", outcome="no-answer", because=type(error).__name__)
    status = response.get("status")
    failed = "error" in response or (isinstance(status, int) and status >= 400)
    body = as_text(response.get("error") or response.get("body") or response)
    return answered(
        "broken-json",
        "POST {broken",
        response,
        failed=failed,
        body=body,
        target=target,
        because="" if failed else "it was accepted",
    )


async def _message(peer: HttpPeer, names: _Names, target: str) -> Answer:
    part = (
        {"text": "amends-audit"} if names.send == "SendMessage" else {"kind": "text", "text": "amends-audit"}
    )
    role = "ROLE_USER" if names.send == "SendMessage" else "user"
    message = {"messageId": "amends-audit", "role": role, "parts": [part]}
    answer = await probe(peer, "failed-task", names.send, {"message": message}, target=target)
    if answer.outcome == "success":
        return not_probed("failed-task", "the agent did not fail")
    if answer.outcome == "no-answer":  # agents may take minutes
        return not_probed("failed-task", f"the agent did not fail in time: {answer.because}")
    return answer
