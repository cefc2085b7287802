"""
The runtime of the Agent Runtime Control Protocol (ARCP): sessions, jobs, leases and their persistence.

Everything that must survive a connection or a process is in a store (`amends.stores`): one log per job, one log per
session, and tables derived from those logs. Nodes that share a store need no other connection to each other.
"""

from __future__ import annotations

from amends.arcp.runtime.credentials.provider import (
    Credential,
    CredentialProvider,
    Grant,
    RotatingCredentialProvider,
)
from amends.arcp.runtime.jobs.context import Context
from amends.arcp.runtime.jobs.result_stream import ResultStream
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.runtime import Runtime

__all__ = [
    "Context",
    "Credential",
    "CredentialProvider",
    "Grant",
    "Limits",
    "ResultStream",
    "RotatingCredentialProvider",
    "Runtime",
]
