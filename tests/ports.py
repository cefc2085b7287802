"""
Ports on the loopback for servers that take a number and no socket.

A port that was only looked up and released can be taken by the next look-up or by an outgoing connection of any
process, in particular while the server that uses it is being restarted.
"""

from __future__ import annotations

import atexit
import socket
from contextlib import ExitStack

_held = ExitStack()
atexit.register(_held.close)


def free_port() -> int:
    """
    Reserve a port for as long as this process lives.

    The socket stays bound and does not listen. A server that binds the port with SO_REUSEADDR, as servers do, gets it;
    until then connections are refused.
    """
    sock = _held.enter_context(socket.socket())
    sock.bind(("127.0.0.1", 0))
    # Set after bind: with the option set before, bind may choose a port that another process reserved this way.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return int(sock.getsockname()[1])
