"""
Which services are our own, so that what their records say is believed.

| proof | believed |
|---|---|
| `own=True` of one client, `amends.own(...)` for the process | the whole record, from the direct peer |
| `AMENDS_SYSTEM`, a secret of all programs of one system | a record that is signed for this very call |
| nothing | only what makes the caller more careful |

That a peer is on this machine, is a child process or knows the trace id proves nothing: tools of other people are and do so too.

A signature covers the record and a random id that the caller sent with the call, so a record of another call has no value. The
caller signs its id, too: a server whose process has the secret tells strangers nothing but what they may believe.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects.record import record_of, restored
from amends.errors.base import FaultError
from amends.logs import logger
from amends.proof import Claim, Proof, rests_on

__all__ = [
    "SYSTEM",
    "believed",
    "child_environment",
    "is_own_address",
    "is_own_command",
    "is_system_call",
    "new_call",
    "own",
    "record_for",
    "signed",
    "trusted",
]

SYSTEM = "AMENDS_SYSTEM"
"""The environment variable with the secret of a system: at least 16 characters, the same for all of its programs."""

_SHORTEST = 16
_CALL = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{32})")
_PORTS = {"https": 443, "wss": 443, "http": 80, "ws": 80}
_SCHEMES = frozenset(_PORTS)
_HOST = re.compile(r"[\w.:-]+")
_LOG = logger("amends")


# By the user's word --------------------------------------------------------------------------------------------


class _Address(msgspec.Struct, frozen=True):
    scheme: str
    host: str
    port: str
    path: str


_ADDRESSES: list[_Address] = []
_COMMANDS: list[str] = []


@explains_wrong_calls
def own(*addresses: str, command: str | Iterable[str] = ()) -> None:
    """
    Declare which services and commands belong to the user's own system, for all clients of this process.

    The failures of an own service reach the callers of this program as they were raised. `own=True` does the same for one client.

    >>> own("https://*.corp.example", command="shop")
    >>> is_own_address("https://orders.corp.example/v1"), is_own_address("https://corp.example.evil/")
    (True, False)
    >>> is_own_command(["/usr/bin/shop", "list"]), is_own_command(["sh", "-c", "shop"])
    (True, False)

    Args:
        addresses: a scheme and a host, with a port and a path if they matter; `*` stands for any characters of one host name
            or port: `https://*.corp`, `http://127.0.0.1:*/orders`. Without a port every port is meant.
        command: the name of a program, or its path if it has a slash; or several.

    Raises:
        TypeError: an address or a command is not text.
        ValueError: an address has no scheme of http, https, ws or wss, or no host.

    """
    found = [_address(each) for each in addresses]
    commands = [command] if isinstance(command, str) else list(command)
    for each in commands:
        if not isinstance(each, str):
            raise TypeError(
                f'own takes the names of commands, not {type(each).__name__}: own(command="shop")'
            )
        if not each:
            raise ValueError('command is the name or the path of a program: own(command="shop")')
    _ADDRESSES.extend(each for each in found if each not in _ADDRESSES)
    _COMMANDS.extend(each for each in commands if each not in _COMMANDS)


_PATTERN = re.compile(
    r"(?P<scheme>[a-z*]+)://(?P<host>\[[^\]]*\]|[^:/?#@\s]+)(?::(?P<port>\d+|\*))?(?P<path>/[^?#\s]*)?"
)


def _address(pattern: object) -> _Address:
    if not isinstance(pattern, str):
        raise TypeError(f'own takes addresses as text, not {type(pattern).__name__}: own("https://*.corp")')
    parts = _PATTERN.fullmatch(pattern.lower() if "/" not in pattern.partition("://")[2] else pattern)
    scheme = None if parts is None else parts["scheme"].lower()
    if parts is None or scheme not in _SCHEMES:
        raise ValueError(
            f'an own address has a scheme (http, https, ws, wss) and a host, as in own("https://*.corp"), not {pattern!r}'
        )
    return _Address(scheme, parts["host"].lower(), parts["port"] or "*", (parts["path"] or "").rstrip("/"))


@rests_on(Claim.OURS, Proof.USER)
def is_own_address(address: object) -> bool:
    """Return whether the user declared an address as part of the own system."""
    return bool(_ADDRESSES) and isinstance(address, str) and _matches(address, tuple(_ADDRESSES))


@lru_cache(maxsize=256)
def _matches(address: str, patterns: tuple[_Address, ...]) -> bool:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if host is None or parts.scheme not in _SCHEMES or not _HOST.fullmatch(host):
        return False
    named = f"[{host}]" if ":" in host else host
    number = str(port or _PORTS[parts.scheme])
    path = parts.path
    return any(
        each.scheme == parts.scheme
        and _same_host(each.host, named)
        and fnmatchcase(number, each.port)
        and (not each.path or path == each.path or (path.startswith(f"{each.path}/") and ".." not in path))
        for each in patterns
    )


def _same_host(pattern: str, host: str) -> bool:
    if "*" not in pattern:
        return pattern == host
    # Brackets and question marks have no meaning in a pattern of a host.
    return re.fullmatch(".+".join(map(re.escape, pattern.split("*"))), host) is not None


@rests_on(Claim.OURS, Proof.USER)
def is_own_command(argv: object) -> bool:
    """Return whether the user declared the program of a command line as part of the own system."""
    if not _COMMANDS or not isinstance(argv, list | tuple) or not argv:
        return False
    program = os.fsdecode(argv[0]) if isinstance(argv[0], str | bytes | os.PathLike) else ""
    name = PurePath(program).name
    return any(program == each if "/" in each else name == each for each in _COMMANDS)


# By the secret of the system -----------------------------------------------------------------------------------


def _secret() -> bytes | None:
    found = os.environ.get(SYSTEM)
    if not found:
        return None
    if len(found) < _SHORTEST:
        _warn_of_short_secret()
        return None
    return found.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=1)
def _warn_of_short_secret() -> None:
    _LOG.warning("%s is ignored: it needs at least %d characters", SYSTEM, _SHORTEST)


def _mac(secret: bytes, what: str, data: bytes) -> str:
    return hmac.digest(secret, what.encode() + b"\0" + data, "sha256")[:16].hex()


def new_call() -> str | None:
    """Return the id that a caller sends with one call, signed; None without a secret."""
    secret = _secret()
    if secret is None:
        return None
    id = os.urandom(16).hex()
    return f"{id}.{_mac(secret, 'call', id.encode())}"


@rests_on(Claim.OURS, Proof.SECRET)
def is_system_call(call: object) -> bool | None:
    """Return whether a caller has the secret; None if this process has none, so that it cannot say."""
    secret = _secret()
    return None if secret is None else _id_of(secret, call) is not None


def _id_of(secret: bytes, call: object) -> str | None:
    found = _CALL.fullmatch(call) if isinstance(call, str) else None
    if found is None or not hmac.compare_digest(found[2], _mac(secret, "call", found[1].encode())):
        return None
    return found[1]


def signed(record: dict[str, Any], call: object) -> dict[str, Any]:
    """Return a record with the signature for one call; unchanged if the caller has not the secret of this process."""
    secret = _secret()
    id = None if secret is None else _id_of(secret, call)
    if secret is None or id is None:
        return record
    return {**record, "sig": _signature(secret, record, id)}


def record_for(fault: Fault, format: str, call: object) -> dict[str, Any]:
    """
    Return the record of a fault for a caller: signed for one with the secret of the system, brief for others.

    Without a secret in this process, every caller gets the whole record.

    Args:
        fault: what is sent.
        format: the format that it is sent in.
        call: the id that the caller sent.

    """
    system = is_system_call(call)
    if system is None:
        return record_of(fault, format)
    return signed(record_of(fault, format, brief=not system), call)


def _signature(secret: bytes, record: Mapping[str, Any], id: str) -> str:
    written = {name: value for name, value in record.items() if name != "sig"}
    return _mac(secret, f"record {id}", msgspec.json.encode(_canonical(written), order="sorted"))


def _canonical(value: Any) -> Any:
    """Return a value in which whole numbers are integers: protobuf, which carries A2A, has none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _canonical(item) for name, item in value.items()}
    return [_canonical(item) for item in value] if isinstance(value, list) else value


@rests_on(Claim.OURS, Proof.SECRET)
def _is_signed(fault: Fault, call: str | None) -> bool:
    """Return whether the record of a fault was signed for this call."""
    record = None if fault.origin is None else fault.origin.record
    stated = None if record is None else record.get("sig")
    if record is None or call is None or not isinstance(stated, str):
        return False
    secret = _secret()
    id = None if secret is None else _id_of(secret, call)
    if secret is None or id is None:
        return False
    try:
        return hmac.compare_digest(stated.encode(), _signature(secret, record, id).encode())
    except (TypeError, ValueError, RecursionError):
        return False


@rests_on(Claim.OURS, Proof.USER, Proof.SECRET)
def believed(fault: Fault, *, own: bool, call: str | None = None) -> Fault:
    """Return a fault that was read from an answer as it was raised, if the service is our own; else the same fault."""
    if fault.origin is None or fault.origin.own or not (own or _is_signed(fault, call)):
        return fault
    found = restored(fault)
    origin = found.origin
    if origin is None:
        return found
    # The messages of ARCP and of tasks are for the caller, whoever wrote them.
    complete = origin.complete or origin.dialect in {"arcp", "task"}
    return replace(found, origin=replace(origin, own=True, complete=complete))


@rests_on(Claim.OURS, Proof.USER, Proof.SECRET)
def trusted(error: FaultError, *, own: bool, call: str | None = None) -> FaultError:
    """
    Return the error of a failed call as it was raised, if the service is our own; else the same error.

    Args:
        error: what a client read from the answer.
        own: the user says that the service is our own.
        call: the id that was sent with the call.

    """
    fault = error.fault
    found = believed(fault, own=own, call=call)
    if found is fault:
        error.own = error.own or own
        return error
    if found.code != fault.code or found.vocabulary != fault.vocabulary:
        renewed = FaultError.from_fault(found)
        renewed.__dict__ = {**error.__dict__, **renewed.__dict__}
        renewed.__cause__ = error.__cause__
        error = renewed
    else:
        error.fault = found
    error.own = True
    return error


def child_environment(env: Mapping[str, str], argv: object) -> dict[str, str]:
    """Return the environment of a child process: without the secret, unless its program is our own."""
    if SYSTEM not in env or is_own_command(argv):
        return dict(env)
    return {name: value for name, value in env.items() if name != SYSTEM}
