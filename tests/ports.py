"""
Ports on the loopback for servers that take a number and no socket.

A port that was only looked up and let go is anybody's again: the next look may find the same one, and so may an
outgoing connection of any other process, most of all while the server that has it is being restarted.
"""

from __future__ import annotations

import atexit
import socket
from contextlib import ExitStack

_held = ExitStack()
atexit.register(_held.close)


def free_port() -> int:
    """
    A port that nobody is given by chance as long as this process lives.

    It stays bound and is never listened at: whoever names it and allows reuse, as servers do, has it; until then
    connections are refused.
    """
    sock = _held.enter_context(socket.socket())
    sock.bind(("127.0.0.1", 0))
    # Not before: a search by somebody who allows reuse may come to a port that another one holds like this.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return int(sock.getsockname()[1])
