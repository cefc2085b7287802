"""The variables with which a process takes part in a rehearsal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

__all__ = ["ADDRESS", "SAVED", "child_environment", "restored", "startup_folder"]

ADDRESS = "AMENDS_REHEARSAL"
"""Holds the address of the stage."""
SAVED = "AMENDS_REHEARSAL_SAVED"
"""Holds the values that other variables had before, so that a process with the interception puts them back."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_LOCAL = "127.0.0.1,localhost,::1"


def startup_folder() -> str:
    """Return the folder whose `sitecustomize` begins the interception in a new Python."""
    return str(Path(__file__).parent / "startup")


def child_environment(
    given: Mapping[str, str], address: str, variables: Mapping[str, str], *, set_by_program: bool = False
) -> dict[str, str]:
    """
    Return the environment of a child process.

    A Python with amends begins the interception at its start. For all others, the variables hold the addresses of the services,
    and every connection beyond this machine goes to a proxy that refuses it.

    Args:
        given: the environment without a rehearsal.
        address: the address of the stage.
        variables: variable → address of a service, and keys that SDKs insist on.
        set_by_program: whether the program under test made the environment: an address that it names is left as it is, as that of
            a proxy which it has started.

    """
    ours = {
        name: value
        for name, value in variables.items()
        if not (name.endswith("_API_KEY") and given.get(name))
    }
    if set_by_program:
        ours = {name: value for name, value in ours.items() if not given.get(name)}
    ours |= dict.fromkeys(_PROXIES, address)
    ours |= {"NO_PROXY": _LOCAL, "no_proxy": _LOCAL, "grpc_proxy": address, "NODE_USE_ENV_PROXY": "1"}
    saved = {name: given.get(name) for name in ours}
    paths = [startup_folder(), *filter(None, given.get("PYTHONPATH", "").split(os.pathsep))]
    ours["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    return {**given, **ours, ADDRESS: address, SAVED: msgspec.json.encode(saved).decode()}


def restored(given: Mapping[str, str], keep: frozenset[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the environment as it was before, and the variables of services that were set. `keep`: names that stay."""
    saved: dict[str, str | None] = msgspec.json.decode(given.get(SAVED, "{}"))
    now = dict(given)
    variables = {name: given[name] for name in saved if name in given and name not in _BOOKKEEPING}
    for name, value in saved.items():
        if name in keep:
            continue
        if value is None:
            now.pop(name, None)
        else:
            now[name] = value
    for name in (ADDRESS, SAVED):
        now.pop(name, None)
    ours = startup_folder()
    paths = [each for each in now.get("PYTHONPATH", "").split(os.pathsep) if each and each != ours]
    if paths:
        now["PYTHONPATH"] = os.pathsep.join(paths)
    else:
        now.pop("PYTHONPATH", None)
    return now, variables


_BOOKKEEPING = frozenset({*_PROXIES, "NO_PROXY", "no_proxy", "grpc_proxy", "NODE_USE_ENV_PROXY"})
