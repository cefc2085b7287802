"""Where probes run: a home that is empty and thrown away, few variables, and no network but loopback."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["ENFORCED", "cut_network", "home"]

ENFORCED = "a network namespace with loopback alone"
_NOT = "not enforced: {}"
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def cut_network() -> str:
    """
    Move this process, and all it will start, into a network namespace of its own. Says what came of it.

    For a program's own process only: there is no way back.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        user, group = os.getuid(), os.getgid()
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            return _NOT.format(os.strerror(ctypes.get_errno()))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        _loopback_up()
    except (OSError, AttributeError) as error:
        return _NOT.format(type(error).__name__)
    return ENFORCED


def _loopback_up() -> None:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        named = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(link, _SIOCGIFFLAGS, named))
        fcntl.ioctl(link, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


@contextmanager
def home(more: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """An environment with an empty home, thrown away afterwards."""
    with TemporaryDirectory(prefix="amends-audit-", ignore_cleanup_errors=True) as place:
        yield {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": place,
            "TMPDIR": place,
            "XDG_CONFIG_HOME": f"{place}/.config",
            "XDG_CACHE_HOME": f"{place}/.cache",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            **more,
        }
