"""
Who may view the page and act on it: who has the token, or opened the one-time address that is printed on this program's terminal.

That a request comes from this machine is no proof: a proxy on this machine forwards the requests of others, and a plain one
adds no header that would say so.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import math
import secrets
import sys
import time
from typing import TextIO
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from amends.proof import Claim, Proof, rests_on

__all__ = ["COOKIE", "SHORTEST", "Access", "is_local", "same_origin", "terminal", "wrong_token"]

COOKIE = "amends_page"
_LASTS = 12 * 3600
"""Seconds that a sign-in lasts."""
_TRIES, _PERIOD = 5, 60.0
"""Wrong tokens of one address, and the seconds in which they are counted."""
_ADDRESSES = 10_000
_SLOWED, _DELAY = 20, 0.5
"""Wrong tokens that are answered at the same time, from all addresses, and the seconds that each answer takes: 40 in a second."""
SHORTEST = 20
"""Characters of a token. A shorter one can be found by trying."""
_CHECKED = "amends.page.bearer"
_PROXY = frozenset(
    {
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-original-forwarded-for",
        "true-client-ip",
    }
    | {"cf-connecting-ip", "cf-connecting-ipv6", "cf-ray", "cdn-loop", "fastly-client-ip", "fly-client-ip"}
)
"""Headers that proxies add, beside those that begin with X-Forwarded. One of them means another machine."""
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OPEN = 600.0
"""Seconds in which a one-time address can be opened."""


@rests_on(Claim.LOCAL, Proof.SOCKET)
def is_local(connection: HTTPConnection) -> bool:
    """
    Return whether a request comes from this machine and was meant for it, as far as can be seen.

    A proxy on this machine forwards requests of others, and a page elsewhere can let its name resolve to 127.0.0.1.
    So the `Host` must be a local name, and no header may say that the request was forwarded. A proxy that adds none is not
    seen: this is a condition beside a secret, and never enough.
    """
    client = connection.client
    if client is None or any(name in _PROXY or name.startswith("x-forwarded") for name in connection.headers):
        return False
    try:
        if not ipaddress.ip_address(client.host).is_loopback:
            return False
        return urlsplit(f"//{connection.headers.get('host', '')}").hostname in _LOCAL_NAMES
    except ValueError:
        return False


class Attempts:
    """
    Slows down wrong tokens: those of one address, and all together.

    Behind a proxy all people have one address, so the right token is accepted whatever wrong ones came from there.
    """

    def __init__(self) -> None:
        self._wrong: dict[str, tuple[int, float]] = {}
        self.slowed = 0
        """Answers that are held back now."""

    def wait(self, address: str) -> int:
        """Return the seconds that an address is asked to wait after too many wrong tokens; 0 after few."""
        count, since = self._wrong.get(address, (0, 0.0))
        left = _PERIOD - (time.monotonic() - since)
        return max(0, math.ceil(left)) if count >= _TRIES else 0

    async def slow_down(self) -> bool:
        """Hold back the answer to a wrong token. Return False at once if too many are held back already."""
        if self.slowed >= _SLOWED:
            return False
        self.slowed += 1
        try:
            await asyncio.sleep(_DELAY)
        finally:
            self.slowed -= 1
        return True

    def wrong(self, address: str) -> None:
        """Count a wrong token."""
        now = time.monotonic()
        count, since = self._wrong.pop(address, (0, now))
        self._wrong[address] = (count + 1, since) if now - since < _PERIOD else (1, now)
        while len(self._wrong) > _ADDRESSES:
            del self._wrong[next(iter(self._wrong))]


def terminal() -> TextIO | None:
    """Return the terminal that this program writes its errors to; None if they go to a file, a pipe or nowhere."""
    try:
        return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
    except ValueError:
        return None


def wrong_token(token: str) -> str:
    """
    Return what is wrong with a token, or an empty string.

    >>> wrong_token("secret")
    'has fewer than 20 characters: python -c "import secrets; print(secrets.token_urlsafe())" makes one'
    """
    if len(token) >= SHORTEST:
        return ""
    return f'has fewer than {SHORTEST} characters: python -c "import secrets; print(secrets.token_urlsafe())" makes one'


class Access:
    """Checks requests against a token, or without one against the one-time addresses that were printed on the terminal."""

    def __init__(self, token: str | None) -> None:
        """
        Args:
            token: the secret that people sign in with; None: one-time addresses, for requests of this machine only.

        Raises:
            ValueError: the token is too short.

        """
        wrong = wrong_token(token) if token else ""
        if wrong:
            raise ValueError(f"token {wrong}")
        self._token = token.encode() if token else b""
        self._key = self._token or secrets.token_bytes(32)
        self._address: tuple[bytes, float] | None = None
        """The digest of the one-time value that is not used yet, and until when it is valid."""
        self.attempts = Attempts()

    @property
    def has_token(self) -> bool:
        """Whether people can sign in with a token."""
        return bool(self._token)

    @property
    def is_off(self) -> bool:
        """Whether nobody can get in: without a token and without a terminal."""
        return not self.has_token and terminal() is None

    def new_address(self) -> str | None:
        """Return the value of a new one-time address; None while the last one can be opened."""
        if self._address is not None and time.monotonic() < self._address[1]:
            return None
        value = secrets.token_urlsafe(24)
        self._address = _digest(value.encode()), time.monotonic() + _OPEN
        return value

    @rests_on(Claim.OURS, Proof.SECRET)
    def opens(self, connection: HTTPConnection, value: str) -> bool:
        """Return whether this is the value of the one-time address. It opens the page once, from this machine."""
        if self._address is None or not is_local(connection) or time.monotonic() >= self._address[1]:
            return False
        if not hmac.compare_digest(_digest(value.encode("utf-8", "replace")), self._address[0]):
            return False
        self._address = None
        return True

    def accepts(self, token: str) -> bool:
        """Return whether this is the token."""
        return self.has_token and hmac.compare_digest(
            _digest(token.encode("utf-8", "replace")), _digest(self._token)
        )

    @rests_on(Claim.OURS, Proof.SECRET)
    def signed_in(self, connection: HTTPConnection) -> bool:
        """Return whether the request carries the token, or the cookie of a sign-in; then the page is shown."""
        if not self.has_token and not is_local(connection):
            return False
        return self._bearer(connection) or self._session_valid(connection.cookies.get(COOKIE, ""))

    @rests_on(Claim.OURS, Proof.SECRET)
    def may_act(self, request: Request, csrf: str) -> bool:
        """Return whether an action is performed: signed in, sent by our own page, with the page's CSRF value."""
        if self._bearer(request):
            return True
        session = request.cookies.get(COOKIE, "")
        return (
            self.signed_in(request)
            and self._session_valid(session)
            and same_origin(request)
            and hmac.compare_digest(csrf.encode("utf-8", "replace"), self._csrf(session).encode())
        )

    def csrf(self, connection: HTTPConnection) -> str:
        """Return the value that the forms of a signed-in page carry; empty if the request is not signed in."""
        session = connection.cookies.get(COOKIE, "")
        return self._csrf(session) if self._session_valid(session) else ""

    def new_session(self) -> str:
        """Return the value of the cookie of a sign-in."""
        issued = str(int(time.time()))
        return f"{issued}.{self._sign('session', issued)}"

    def _bearer(self, connection: HTTPConnection) -> bool:
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self.has_token:
            return False
        # A request is asked several times, and counts once.
        if _CHECKED not in connection.scope:
            connection.scope[_CHECKED] = self.tries(connection, given.strip()) == 0
        return bool(connection.scope[_CHECKED])

    def tries(self, connection: HTTPConnection, token: str) -> int | None:
        """Return 0 if this is the token, None if it is not, and the seconds to wait after too many wrong ones."""
        address = connection.client.host if connection.client else ""
        if self.accepts(token):
            return 0
        wait = self.attempts.wait(address)
        if not wait:
            self.attempts.wrong(address)
        return wait or None

    def _session_valid(self, session: str) -> bool:
        issued, _, signature = session.partition(".")
        if not issued.isascii() or not issued.isdigit() or len(issued) > 12:
            return False
        signed = hmac.compare_digest(
            signature.encode("utf-8", "replace"), self._sign("session", issued).encode()
        )
        return signed and 0 <= time.time() - int(issued) <= _LASTS

    def _csrf(self, session: str) -> str:
        return self._sign("csrf", session)

    def _sign(self, purpose: str, value: str) -> str:
        return hmac.new(self._key, f"{purpose}:{value}".encode(), hashlib.sha256).hexdigest()


@rests_on(Claim.OURS, Proof.BROWSER)
def same_origin(request: Request) -> bool:
    """Return whether a browser says that its own page sent the request; other clients name no origin."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()
