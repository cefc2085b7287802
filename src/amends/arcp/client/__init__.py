"""
The ARCP client: submit jobs, follow them, and get each failure as a typed exception.

`connect` opens a session; a `Client` submits and subscribes; a `Handle` is one job. The client resumes a lost connection
within the runtime's window, without losing or repeating an event. A session that cannot be resumed fails; it never hangs.
"""

from __future__ import annotations

from amends.arcp.client.client import Client
from amends.arcp.client.connect import connect
from amends.arcp.client.events import Event
from amends.arcp.client.handle import Handle
from amends.arcp.client.handshake import Ticket
from amends.arcp.client.settings import Settings

__all__ = ["Client", "Event", "Handle", "Settings", "Ticket", "connect"]
