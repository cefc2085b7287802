"""The probes of an ARCP runtime: wrong tokens and versions, broken frames, and jobs and agents that do not exist."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from amends.audit.surfaces.evidence import Answer, Evidence, answered, as_text, not_probed
from amends.audit.surfaces.exchange import TIMEOUT, USER_AGENT, Budget, OutOfProbesError, document
from amends.audit.surfaces.proxy import MISSING, ProxySocket, gateway_to, repeated
from amends.recovery.events import plain_url

try:
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed, InvalidStatus
except ImportError as missing:
    raise ImportError("amends audit arcp needs an extra: pip install 'amends[arcp]'") from missing

__all__ = ["observe_arcp"]

VERSION = "1.1"
_ERRORS = frozenset({"session.error", "job.error", "session.bye", "error"})


async def observe_arcp(url: str, *, token: str | None = None) -> Evidence:
    """
    Send the probes and return what was answered.

    Args:
        url: ws: or wss: address of the runtime.
        token: a bearer token; without it only what happens before a session is open is probed.

    """
    budget = Budget()
    openings = (
        ("expired-credentials", "session.hello with an unknown token", _hello("amends-audit")),
        ("no-credentials", "session.hello without a token", _hello(None)),
        ("broken-json", "a broken frame", b'{"arcp": '),
        ("unsupported-version", "session.hello of arcp 99", _frame("session.hello", {}, version="99")),
    )
    answers = [await _opening(url, *each, budget) for each in openings]
    if token is None:
        needs = "needs --token: a session"
        answers += [not_probed(name, needs) for name in ("unknown-agent", "lost-session", *_DISTURBED)]
        return Evidence(surface="arcp", target=plain_url(url), answers=answers)
    version = ""
    try:
        async with _open(url) as socket:
            session = _Session(socket, url, budget)
            await session.greet(_hello(token))
            answers += [await session.probe(name, kind, payload) for name, kind, payload in _CALLS]
            version = session.version
    except Exception as error:  # noqa: BLE001 - the token is not accepted, or the runtime does not answer any more
        answers.append(_unopened("session", "session.hello", error))
        return Evidence(surface="arcp", target=plain_url(url), answers=answers)
    resumed = {"session_id": "sess_amends_audit", "resume_token": "amends-audit", "last_event_seq": 0}
    lost = _hello(token, resumed)
    answers.append(
        await _opening(url, "lost-session", "session.hello that resumes an unknown session", lost, budget)
    )
    if answers[-1].outcome == "success":
        answers[-1] = not_probed("lost-session", "the runtime opened a new session instead")
    answers += await _through_proxy(url, token, budget)
    return Evidence(surface="arcp", target=plain_url(url), answers=answers, version=version)


_JOB = "job_amends_audit"
_CALLS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("unknown-agent", "job.submit", {"agent": "amends-audit-unknown", "input": {}}),
    ("unknown-job", "job.cancel", {"job_id": _JOB, "reason": "amends-audit"}),
    ("unknown-job", "job.subscribe", {"job_id": _JOB}),
    ("malformed-call", "job.submit", {"agent": 7}),
)
_DISTURBED = {"lost-answer": "whose answer was lost", "restart": "before a restart"}


async def _through_proxy(url: str, token: str, budget: Budget) -> list[Answer]:
    """
    Cut the connection through the gateway while an answer is under way, resume the session, and ask again.

    After a restart the runtime does not know the session: the client opens a new one.
    """
    parts = urlsplit(url)
    origin = f"{'https' if parts.scheme == 'wss' else 'http'}://{parts.netloc}"
    _, kind, payload = _CALLS[1]
    async with gateway_to(origin) as gateway:
        if gateway is None:
            return [not_probed(name, MISSING) for name in _DISTURBED]

        async def ask(hello: bytes, *, answer: bool = True) -> tuple[_Session, str]:
            through = ProxySocket(gateway, parts.path or "/", {"User-Agent": USER_AGENT})
            async with budget.within(TIMEOUT * 2), through as socket:
                session = _Session(socket, url, budget)
                await session.greet(hello)
                said = await session.ask(kind, payload) if answer else await session.order(kind, payload)
                return session, said

        answers = []
        for name, words in _DISTURBED.items():
            sent = f"{kind} of an unknown job, {words}, again"
            try:
                _, before = await ask(_hello(token))
                session, _ = await ask(_hello(token), answer=False)
                resume = session.resume if name == "lost-answer" else None
                try:
                    _, after = await ask(_hello(token, resume))
                except ConnectionRefusedError:  # the session cannot be resumed, and the runtime says so
                    _, after = await ask(_hello(token))
            except OutOfProbesError:
                answers.append(not_probed(name, "the audit's limit was reached"))
                continue
            except Exception as error:  # noqa: BLE001 - a runtime that does not answer any more
                before, after = "an answer", _said(error)
            answers.append(repeated(name, sent, before, after))
        return answers


def _said(error: Exception) -> str:
    """Return what ended a connection, for people."""
    return str(error) if isinstance(error, ConnectionRefusedError) else type(error).__name__


def _frame(kind: str, payload: object, *, version: str = VERSION, session_id: str | None = None) -> bytes:
    frame = {"arcp": version, "id": _ulid(), "type": kind, "payload": payload}
    if session_id:
        frame["session_id"] = session_id
    if isinstance(payload, Mapping) and "job_id" in payload:
        frame["job_id"] = payload["job_id"]  # where the specification has it; some runtimes read the payload
    return msgspec.json.encode(frame)


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _ulid() -> str:
    """Return a ULID: some runtimes accept no other ids."""
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -5, -5))


_CAPABILITIES = {"encodings": ["json"], "features": ["subscribe"]}


def _hello(token: str | None, resume: Mapping[str, object] | None = None) -> bytes:
    payload: dict[str, object] = {
        "client": {"name": "amends-audit", "version": "1"},
        "capabilities": _CAPABILITIES,
    }
    if token is not None:
        payload["auth"] = {"scheme": "bearer", "token": token}
    if resume is not None:
        payload["resume"] = resume
    return _frame("session.hello", payload)


class _Connect(connect):
    """Connects to the named address only: the token must not get to the target of a redirect."""

    def process_redirect(self, exc: Exception) -> Exception:
        """Return the redirect as what it is, a failure."""
        return exc


def _open(url: str) -> connect:
    return _Connect(
        url,
        open_timeout=TIMEOUT,
        close_timeout=1,
        user_agent_header=USER_AGENT,
        max_size=1 << 20,
        proxy=None,
    )


def _unopened(name: str, sent: str, error: Exception) -> Answer:
    """Return the entry of a connection that could not be opened, or that nothing was answered on."""
    status = error.response.status_code if isinstance(error, InvalidStatus) else 0
    if 300 <= status < 400:
        return not_probed(name, f"redirected with {status}, which is not followed")
    return Answer(probe=name, sent=sent, outcome="no-answer", because=_said(error))


async def _opening(url: str, name: str, sent: str, frame: bytes, budget: Budget) -> Answer:
    """Send a first frame that must be refused, and return what is answered before the connection is closed."""
    try:
        await budget.spend_slowly()
        async with budget.within(TIMEOUT), _open(url) as socket:
            await socket.send(frame.decode())
            received = document(await socket.recv())
    except ConnectionClosed as closed:
        return _closed(name, sent, closed, url)
    except OutOfProbesError:
        return not_probed(name, "the audit's limit was reached")
    except Exception as error:  # noqa: BLE001 - no connection, or no answer in time
        return _unopened(name, sent, error)
    return _answer(name, sent, received, url)


def _closed(name: str, sent: str, closed: ConnectionClosed, url: str) -> Answer:
    """Return the entry of a connection that was closed instead of an answer. Its code and reason are all that is said."""
    code = closed.rcvd.code if closed.rcvd is not None else 1006
    reason = closed.rcvd.reason if closed.rcvd is not None else ""
    response = {"close": code, "reason": reason}
    body = f"closed with {code} {reason}".strip()
    return answered(name, sent, response, failed=True, body=body, target=url)


def _answer(name: str, sent: str, received: object, url: str) -> Answer:
    kind = received.get("type") if isinstance(received, Mapping) else None
    payload = received.get("payload") if isinstance(received, Mapping) else None
    failed = kind in _ERRORS or (isinstance(payload, Mapping) and "code" in payload)
    return answered(
        name,
        sent,
        received,
        failed=failed,
        body=as_text(payload),
        target=url,
        because="" if failed else f"answered with {kind}",
    )


class _Socket(Protocol):
    """A WebSocket, direct or through the proxy."""

    async def send(self, message: str, /) -> None: ...

    async def recv(self) -> str | bytes: ...


class _Session:
    """An open session."""

    def __init__(self, socket: _Socket, url: str, budget: Budget) -> None:
        self._socket, self._url, self._budget = socket, url, budget
        self._id: str | None = None
        self.version = ""
        self.resume: dict[str, object] | None = None
        """What resumes it on another connection; None if the runtime does not offer that."""

    async def greet(self, hello: bytes) -> None:
        """
        Open the session.

        Raises:
            ConnectionRefusedError: the runtime refused it.

        """
        await self._budget.spend_slowly()
        async with self._budget.within(TIMEOUT):
            await self._socket.send(hello.decode())
            welcome = document(await self._socket.recv())
        if not isinstance(welcome, Mapping) or welcome.get("type") != "session.welcome":
            raise ConnectionRefusedError("session.hello was refused")
        payload = welcome.get("payload")
        known: Mapping[str, object] = payload if isinstance(payload, Mapping) else {}
        runtime = known.get("runtime")
        self.version = " ".join(map(str, runtime.values())) if isinstance(runtime, Mapping) else ""
        self._id = str(welcome.get("session_id") or known.get("session_id") or "") or None
        if self._id and known.get("resume_token"):
            token = known["resume_token"]
            self.resume = {"session_id": self._id, "resume_token": token, "last_event_seq": 0}

    async def probe(self, name: str, kind: str, payload: dict[str, object]) -> Answer:
        """Send a request that must fail, and return the first answer that is not a heartbeat."""
        try:
            return _answer(name, kind, await self._call(kind, payload), self._url)
        except ConnectionClosed as closed:
            return _closed(name, kind, closed, self._url)
        except OutOfProbesError:
            return not_probed(name, "the audit's limit was reached")
        except Exception as error:  # noqa: BLE001 - no answer in time
            return Answer(probe=name, sent=kind, outcome="no-answer", because=type(error).__name__)

    async def ask(self, kind: str, payload: dict[str, object]) -> str:
        """Send a request, and return its answer's type and code."""
        received = await self._call(kind, payload)
        said = received.get("payload")
        code = said.get("code") if isinstance(said, Mapping) else None
        return f"{received.get('type')} {code or ''}".strip()

    async def order(self, kind: str, payload: dict[str, object]) -> str:
        """Send a request, and do not read its answer."""
        await self._budget.spend_slowly()
        await self._socket.send(_frame(kind, payload, session_id=self._id).decode())
        return ""

    async def _call(self, kind: str, payload: dict[str, object]) -> Mapping[str, object]:
        await self._budget.spend_slowly()
        async with self._budget.within(TIMEOUT):
            await self._socket.send(_frame(kind, payload, session_id=self._id).decode())
            while True:
                received = document(await self._socket.recv())
                if isinstance(received, Mapping) and not str(received.get("type")).startswith("session.p"):
                    return received
