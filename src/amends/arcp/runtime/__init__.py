"""
The runtime of the Agent Runtime Control Protocol: sessions, jobs, leases and what survives of them.

Everything that must outlive a connection stands in a store (`amends.stores`): a log per job, a log per session, and
tables derived from them. Nodes that share a store share everything else.
"""

from __future__ import annotations

from amends.arcp.runtime.context import Context
from amends.arcp.runtime.credentials import (
    Credential,
    CredentialProvider,
    Grant,
    RotatingCredentialProvider,
)
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.runtime import Runtime
from amends.arcp.runtime.streaming import ResultStream

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
