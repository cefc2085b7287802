"""
The client: submit jobs, watch them, get every failure as the exception it is.

`connect` opens a session; a `Client` submits and subscribes; a `Handle` is one job. A lost connection is resumed
within the runtime's window, without an event lost or doubled; what cannot be resumed fails, it never hangs.
"""

from __future__ import annotations

from amends.arcp.client.client import Client
from amends.arcp.client.connect import connect
from amends.arcp.client.events import Event
from amends.arcp.client.handle import Handle
from amends.arcp.client.handshake import Ticket
from amends.arcp.client.settings import Settings

__all__ = ["Client", "Event", "Handle", "Settings", "Ticket", "connect"]
