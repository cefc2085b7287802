"""
The handshake: read the first frame of a connection, and answer with `session.welcome` or `session.error`.

Before authentication, a connection costs the runtime no more than one frame and one timer. The connections without a session
are bounded in total and per address, so that silent ones cannot lock others out: `Handshakes`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from amends._version import __version__
from amends.arcp.runtime.agents import inventory
from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.jobs.outcome import refusal
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.server.peers import identify
from amends.arcp.runtime.server.resume import replay, trace_and_owner
from amends.arcp.runtime.server.session import Session
from amends.arcp.runtime.server.sessions import Sessions
from amends.arcp.runtime.tasks import Tasks
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import (
    Envelope,
    Malformed,
    envelope,
    negotiate,
    new_id,
    now_text,
    read,
    read_payload,
    write,
)
from amends.arcp.wire.messages import Auth, Capabilities, Hello, Peer, Resume, Welcome
from amends.errors import FaultError
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError, UnauthenticatedError
from amends.logs import logger
from amends.stores import StoreError

__all__ = ["Handshake", "Handshakes", "Waiting", "address_of"]

_log = logger("amends.arcp")


@dataclass(eq=False)
class Handshake:
    """Opens or resumes the session that a connection asks for."""

    _name: str
    """The runtime's name for the welcome."""
    _limits: Limits
    _sessions: Sessions
    _membership: Membership
    """The agents of all nodes, for the welcome."""
    _authenticate: Callable[[str], Awaitable[str | None]]
    """Returns the principal of a token, or None."""
    _features: tuple[str, ...]
    """Those that the runtime offers."""
    _anonymous: bool = False
    """Whether clients without a token are accepted."""

    async def open_session(self, connection: Connection, spoke: Callable[[], None]) -> Session | None:
        """
        Open or resume a session. Returns None if that fails; the client gets the error.

        `spoke` is called when the first frame has arrived.
        """
        frame = None
        try:
            async with asyncio.timeout(self._limits.hello_timeout):
                frame = await connection.receive()
            if frame is None:
                return None
            spoke()
            async with asyncio.timeout(self._limits.authentication_timeout):
                return await self._handle_hello(connection, read(frame))
        except TimeoutError:
            # Retryable in both cases: a slow network is no fault of the client.
            what = "did not arrive" if frame is None else "could not be checked"
            await _send_refusal(connection, InternalError(f"The hello {what} in time"))
        except ARCPError as error:
            await _send_refusal(connection, error)
        except ConnectionLost:
            pass
        except StoreError:
            _log.exception("a session could not be opened: the store failed")
            await _send_refusal(connection, InternalError())
        return None

    async def _handle_hello(self, connection: Connection, message: Envelope | Malformed) -> Session:
        if isinstance(message, Malformed):
            raise InvalidRequestError(message.reason)
        if message.type not in {"session.hello", "session.resume"}:
            raise InvalidRequestError("The first message of a connection must be session.hello")
        hello = read_payload(message)
        if isinstance(hello, Malformed):
            raise InvalidRequestError(hello.reason)
        principal = await self._principal(
            hello.auth or (hello.resume.auth if isinstance(hello, Hello) and hello.resume else None)
        )
        capabilities = hello.capabilities
        named = None if capabilities is None else capabilities.features
        features = negotiate(self._features, named or ())
        wanted: Resume | None = hello if isinstance(hello, Resume) else hello.resume
        if wanted is None:
            session, token = await self._sessions.open(principal, features, connection)
            replayed: list[tuple[int, str, int]] = []
        else:
            # A resumed session keeps its features unless the hello names others.
            session, token, replayed = await self._sessions.resume(
                principal, wanted, None if named is None else features, connection
            )
        session.peer = identify(message.id, hello)
        await self._send_welcome(session, token, replayed)
        return session

    async def _principal(self, auth: Auth | None) -> str:
        scheme = (auth.scheme or "bearer").lower() if auth is not None else _ANONYMOUS
        if self._anonymous and (auth is None or not auth.token) and scheme in {"bearer", _ANONYMOUS}:
            return _ANONYMOUS
        if auth is None or not auth.token or scheme != "bearer":
            raise UnauthenticatedError
        try:
            principal = await self._authenticate(auth.token)
        except ARCPError:
            raise
        except Exception as error:
            _log.exception("the authenticate function failed")
            raise InternalError from error
        if principal is None:
            raise UnauthenticatedError
        return principal

    async def _send_welcome(self, session: Session, token: str, replayed: list[tuple[int, str, int]]) -> None:
        limits = self._limits
        welcome = Welcome(
            Peer(self._name, __version__),
            session.id,
            token,
            _whole_seconds(limits.resume_window),
            _whole_seconds(limits.heartbeat) if "heartbeat" in session.features else None,
            Capabilities(["json"], list(self._features), inventory(await self._membership.known_agents())),
            now_text(),
        )
        try:
            await session.send([write(envelope("session.welcome", welcome, session_id=session.id))])
            await replay(session, replayed)
        except BaseException:
            await session.drop()
            raise
        for feed in list(session.feeds.values()):
            feed.trace, principal = await trace_and_owner(session.jobs, feed.job_id)
            feed.hides_credentials = principal != session.principal
            feed.begin()
        session.writer = session.jobs.tasks.spawn(session.write())


def _whole_seconds(seconds: float) -> float:
    """Convert whole seconds to int, because the published client reads only integers."""
    return int(seconds) if seconds == int(seconds) else seconds


async def _send_refusal(connection: Connection, error: FaultError) -> None:
    """Send `session.error` to a connection that has no session."""
    try:
        async with asyncio.timeout(5):
            # The client of the TypeScript SDK discards messages without a session id.
            frame = write(envelope("session.error", refusal(error), session_id=new_id("sess")))
            await connection.send(frame)
    except (ConnectionLost, TimeoutError):
        pass


_ANONYMOUS = "anonymous"
"""The scheme of a client without a token, where it names one (the Java SDK), and the principal of all of them."""
_TRY_LATER = 1013


@dataclass(eq=False, slots=True)
class Waiting:
    """One connection without a session."""

    connection: Connection
    address: str | None
    silent: bool = True
    """Whether it was closed, to make room or after its time, before its first frame arrived."""


class Handshakes:
    """The connections of one node that have no session yet."""

    def __init__(self, limits: Limits, tasks: Tasks) -> None:
        self._limits = limits
        self._tasks = tasks
        self._silent: dict[Waiting, None] = {}
        """In the order of their arrival."""
        self._per_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._per_address.total()

    def enter(self, connection: Connection) -> Waiting | None:
        """Add a connection, and close a silent one if there are too many. Returns None if there is no room."""
        address = address_of(connection.peer)
        new = Waiting(connection, address)
        crowded = self._per_address[address] >= self._limits.handshakes_per_address
        if crowded or len(self) >= self._limits.handshakes:
            dropped = self._oldest_silent(address if crowded else None)
            if dropped is None:
                return None
            self.leave(dropped)
            # The new connection must not wait until a silent one confirms its close.
            self._tasks.spawn(dropped.connection.close(_TRY_LATER, ""))
        self._per_address[address] += 1
        self._silent[new] = None
        return new

    def spoke(self, one: Waiting) -> None:
        """Record that the first frame of a connection has arrived."""
        if one in self._silent:
            del self._silent[one]
            one.silent = False

    def leave(self, one: Waiting) -> None:
        """Remove a connection that has a session now, or has ended. A second call has no effect."""
        self._silent.pop(one, None)
        if one.address is not None:
            address, one.address = one.address, None
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address]

    def _oldest_silent(self, address: str | None) -> Waiting | None:
        silent = Counter(one.address for one in self._silent)
        if address is None and silent:
            address = silent.most_common(1)[0][0]
        return next((one for one in self._silent if one.address == address), None)


def address_of(peer: str) -> str:
    """
    Return the host of a peer's address; the port is left out.

    >>> address_of("192.0.2.1:5000"), address_of("2001:db8::1:5000"), address_of("memory")
    ('192.0.2.1', '2001:db8::1', 'memory')
    """
    host, colon, port = peer.rpartition(":")
    return host if colon and port.isdigit() else peer
