"""Refuses and names connections beyond this machine, of any client that uses Python's sockets."""

from __future__ import annotations

import errno
import socket
import sys
from typing import Any

from amends.rehearse.forward import FORWARDING
from amends.rehearse.interception.patches import Patches
from amends.rehearse.interception.stage_link import UNRESOLVED, StageLink, is_local

__all__ = ["guard"]

_MACHINERY = frozenset(
    {
        "socket",
        "asyncio",
        "selectors",
        "ssl",
        "concurrent",
        "threading",
        "anyio",
        "amends",
        "runpy",
        "httpcore",
        "httpcore2",
    }
)
_REFUSED = "a rehearsal makes no connections beyond this machine: {}"


def guard(link: StageLink, patches: Patches) -> None:
    """Guard the sockets and the resolver of this process."""
    plain_socket = socket.socket
    connect, connect_ex, sendto = plain_socket.connect, plain_socket.connect_ex, plain_socket.sendto
    resolve, by_name, by_name_ex = socket.getaddrinfo, socket.gethostbyname, socket.gethostbyname_ex

    def refused(host: object, port: object) -> bool:
        """Return whether an address is beyond this machine; it is then named."""
        name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else host
        if not isinstance(name, str) or is_local(name) or getattr(FORWARDING, "on", False):
            return False
        link.violated(f"{name}:{port}" if port else name, _client())
        return True

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and isinstance(address, tuple) and refused(address[0], address[1]):
            raise ConnectionRefusedError(errno.ECONNREFUSED, _REFUSED.format(address[0]))
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family != socket.AF_UNIX and isinstance(address, tuple) and refused(address[0], address[1]):
            return errno.ECONNREFUSED
        return connect_ex(self, address)

    def guarded_sendto(self: socket.socket, data: Any, *more: Any) -> int:
        address = more[-1]
        if self.family != socket.AF_UNIX and isinstance(address, tuple) and refused(address[0], address[1]):
            raise ConnectionRefusedError(errno.ECONNREFUSED, _REFUSED.format(address[0]))
        return sendto(self, data, *more)

    def known(host: Any, port: object) -> None:
        if host in {UNRESOLVED, UNRESOLVED.encode()}:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if host != socket.gethostname() and not _numeric(host) and refused(host, port):
            raise socket.gaierror(socket.EAI_FAIL, _REFUSED.format(host))

    def guarded_getaddrinfo(host: Any, port: Any, *more: Any, **options: Any) -> Any:
        known(host, port)
        return resolve(host, port, *more, **options)

    def guarded_gethostbyname(hostname: Any) -> str:
        known(hostname, None)
        return by_name(hostname)

    def guarded_gethostbyname_ex(hostname: Any) -> Any:
        known(hostname, None)
        return by_name_ex(hostname)

    patches.set(plain_socket, "connect", guarded_connect)
    patches.set(plain_socket, "connect_ex", guarded_connect_ex)
    patches.set(plain_socket, "sendto", guarded_sendto)
    patches.set(socket, "getaddrinfo", guarded_getaddrinfo)
    patches.set(socket, "gethostbyname", guarded_gethostbyname)
    patches.set(socket, "gethostbyname_ex", guarded_gethostbyname_ex)


def _numeric(host: Any) -> bool:
    """Return whether a host is an address already: looking it up makes no connection."""
    if not isinstance(host, str):
        return host is None
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except OSError:
            continue
        return True
    return False


def _client() -> str:
    """Return the module that wants a connection: the first one outside the machinery of sockets."""
    frame = sys._getframe(2)  # noqa: SLF001 - the documented way to the caller
    found = "?"
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "?"))
        if name.partition(".")[0] not in _MACHINERY:
            found = name
            break
        frame = frame.f_back  # type: ignore[assignment]
    return found
