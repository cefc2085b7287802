"""How the interception in a process talks to the stage, which may be in another process."""

from __future__ import annotations

import http.client
import threading
from typing import Any
from urllib.parse import urlsplit

import msgspec

__all__ = ["LOCAL_NAMES", "UNRESOLVED", "StageLink", "is_local"]

LOCAL_NAMES = frozenset({"", "localhost", "localhost.localdomain", "ip6-localhost", "::1", "::", "0.0.0.0"})  # noqa: S104 - names
UNRESOLVED = "no-address.amends-rehearsal.invalid"
"""A host that has no address in a rehearsal; asking for it is no connection beyond this machine."""
_SECONDS = 10.0


def is_local(host: str | None) -> bool:
    """
    Return whether a host is this machine.

    >>> is_local("127.0.0.1"), is_local("[::1]"), is_local("api.openai.com")
    (True, True, False)
    """
    if host is None:
        return True
    name = host.strip("[]").lower().rstrip(".").partition("%")[0]
    return name in LOCAL_NAMES or name.startswith("127.") or name.endswith(".localhost")


class StageLink:
    """The address of the stage, and what it says about hosts."""

    def __init__(self, address: str) -> None:
        self.address = address
        parts = urlsplit(address)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self._known: dict[str, bool] = {}
        self._asks = False
        self._lock = threading.Lock()
        self.refusing_port = 0
        self.tls_port = 0
        self._ports: dict[int, str] = {}
        """Port → the service of the stage that listens on it."""

    def begin(self) -> None:
        """Ask the stage for its ports, and forget what it said about hosts in an earlier run."""
        with self._lock:
            self._known.clear()
        ports = self._ask("hello", {})
        self.refusing_port, self.tls_port = int(ports["refusing"]), int(ports["tls"])
        self._asks = bool(ports["asks"])
        self._ports = {int(port): name for name, port in ports["services"].items()}

    def covers(self, host: str | None) -> bool:
        """Return whether calls to a host go to the stage."""
        if host is None or is_local(host) or host == UNRESOLVED:
            return False
        with self._lock:
            if host not in self._known:
                self._known[host] = self._ask("service", {"host": host}).get("service") is not None
            return self._known[host]

    def failing_here(self, host: str | None, port: int | None, method: str, target: str) -> str | None:
        """Return the failure that a connection to a service at its own address on this machine meets, or None."""
        if not self._asks or port not in self._ports or not is_local(host):
            return None
        return self.connecting("", method, target, service=self._ports[port])

    def connecting(self, host: str, method: str, target: str, *, service: str = "") -> str | None:
        """Return the failure that a connection for a call meets, or None."""
        if not self._asks:
            return None
        sent = {"host": host, "service": service, "method": method, "target": target}
        found = self._ask("connect", sent).get("fails")
        return str(found) if found else None

    def failing_address(self, kind: str) -> str:
        """Return an address whose connection fails in this way."""
        if kind == "dns":
            return f"http://{UNRESOLVED}"
        if kind == "tls":
            return f"https://{self.host}:{self.tls_port}"
        return f"http://{self.host}:{self.refusing_port}"

    def violated(self, address: str, by: str) -> None:
        """Tell the stage of a connection beyond this machine."""
        self._ask("violation", {"address": address, "by": by})

    def _ask(self, action: str, document: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=_SECONDS)
        try:
            connection.request("POST", f"/.amends-rehearsal/{action}", msgspec.json.encode(document))
            answer: dict[str, Any] = msgspec.json.decode(connection.getresponse().read())
        finally:
            connection.close()
        return answer
