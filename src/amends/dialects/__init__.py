"""
The wire shapes, one module each, with the same names in each: NAME, SPEC, LOSSES, encode, decode.

`encode` takes a Fault and writes plain values; what it is given wrong is our user's mistake and raises.
`decode` takes any value and answers a Fault or None; it never raises on data.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from amends.core.fault import Fault
from amends.core.validate import check_fault

__all__ = ["ALIASES", "NAMES", "decode", "dialect", "encode"]

NAMES = ("problem", "envelope", "task", "adcp", "arcp")
ALIASES = {"cli": "envelope", "http": "problem"}
"""Other words people use for the same shape: a vocabulary's name finds its dialect."""


def dialect(name: str) -> ModuleType:
    """
    The module of a dialect, by its name or alias.

    Raises:
        LookupError: when there is none; the message lists what there is.

    """
    found = ALIASES.get(name, name)
    if found not in NAMES:
        raise LookupError(
            f"no dialect {name!r}; there are {', '.join(NAMES)} (cli is envelope, http is problem)"
        )
    return import_module(f"amends.dialects.{found}")


def encode(fault: Fault, dialect: str) -> dict[str, Any]:
    """
    `fault` as a dialect writes it, in plain values.

    The code is written as it stands: `translate` first where the other side has words of its own.

    >>> encode(Fault(code="RATE_LIMITED", message="Slow down", retry_after=5), "adcp")
    {'code': 'RATE_LIMITED', 'message': 'Slow down', 'recovery': 'transient', 'retry_after': 5}
    """
    check_fault("encode", fault)
    return _module(dialect).encode(fault)  # type: ignore[no-any-return]


def decode(data: Any, dialect: str) -> Fault | None:
    """
    The Fault a document of this dialect holds, or None. Takes a mapping, or its JSON as bytes or str.

    >>> decode(b'{"code": "TIMEOUT", "message": "", "retryable": true}', "arcp").recovery
    <Recovery.TRANSIENT: 'transient'>
    """
    module = _module(dialect)
    if isinstance(data, bytes | bytearray | memoryview | str):
        from amends.core.wire import Unreadable, read

        try:
            data = read(data)
        except Unreadable:
            return None
    return module.decode(data)  # type: ignore[no-any-return]


_module = dialect  # the parameters above carry the name people would type
