"""The environment of probes: an empty temporary home, few variables, and no network except loopback."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["ENFORCED", "cut_network", "home"]

ENFORCED = "a network namespace with only loopback"
_NOT_ENFORCED = "not enforced: {}"
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def cut_network() -> str:
    """
    Move this process and its future children into a new network namespace with only loopback.

    This cannot be undone, so call it only in a process that runs the audit and nothing else.

    Returns:
        ENFORCED, or "not enforced: " and the reason.

    """
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        user, group = os.getuid(), os.getgid()
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            return _NOT_ENFORCED.format(os.strerror(ctypes.get_errno()))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        _loopback_up()
    except (OSError, AttributeError) as error:
        return _NOT_ENFORCED.format(type(error).__name__)
    return ENFORCED


def _loopback_up() -> None:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(link, _SIOCGIFFLAGS, request))
        fcntl.ioctl(link, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


@contextmanager
def home(more: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield environment variables with an empty temporary home, which is deleted afterwards."""
    with TemporaryDirectory(prefix="amends-audit-", ignore_cleanup_errors=True) as folder:
        yield {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": folder,
            "TMPDIR": folder,
            "XDG_CONFIG_HOME": f"{folder}/.config",
            "XDG_CACHE_HOME": f"{folder}/.cache",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            **more,
        }
