"""The beginning of a process that takes part in a rehearsal: `startup/sitecustomize.py` calls it."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from amends.rehearse.environment import ADDRESS, SAVED, restored
from amends.rehearse.interception.stage_link import is_local

__all__ = ["begin"]


def begin() -> None:
    """Begin the interception, and put back the variables that only programs without it need."""
    from amends.rehearse.interception.process import Interception

    address = os.environ[ADDRESS]
    environment, variables = restored(os.environ, _kept())
    Interception(address, variables).install()
    os.environ.clear()
    os.environ.update(environment)


def _kept() -> frozenset[str]:
    """
    Return the names of variables that stay: keys, addresses of services that have no host of their own, and those that named a loopback
    address before, which is not intercepted. `grpc_proxy` stays, because gRPC does not use Python's sockets.
    """
    import msgspec

    saved: dict[str, str | None] = msgspec.json.decode(os.environ.get(SAVED, "{}"))
    kept = {"grpc_proxy"}
    for name, before in saved.items():
        if (
            name.endswith("_API_KEY")
            or (name.endswith("_URL") and name not in _BY_HOST)
            or (before and name in _BY_HOST and is_local(urlsplit(before).hostname))
        ):
            kept.add(name)
    return frozenset(kept)


_BY_HOST = frozenset({"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GROQ_BASE_URL", "DEEPSEEK_BASE_URL"})
