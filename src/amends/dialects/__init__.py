"""
The error formats on the wire. Each module has the same names: NAME, SPEC, LOSSES, encode, decode.

`encode` returns a Fault as plain values, and raises for anything but a Fault. `decode` takes any value and returns a
Fault or None; it never raises on data.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from amends.core.fault import Fault, check_fault
from amends.core.validate import shown
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["ALIASES", "NAMES", "decode", "dialect", "encode"]

NAMES = ("problem", "envelope", "task", "adcp", "arcp")
ALIASES = {"cli": "envelope", "http": "problem"}
"""Other names of dialects: those of their vocabularies."""


def dialect(name: str) -> ModuleType:
    """
    Return the module of a dialect, by its name or alias.

    Raises:
        LookupError: if there is none; the message lists the names.

    """
    given: object = name
    found = ALIASES.get(given, given) if isinstance(given, str) else None
    if found not in NAMES:
        raise LookupError(
            f"no dialect {shown(name)}; there are {', '.join(NAMES)} (cli is envelope, http is problem)"
        )
    return import_module(f"amends.dialects.{found}")


@explains_wrong_calls
def encode(fault: Fault, dialect: str) -> dict[str, Any]:
    """
    Return `fault` in a dialect, as plain values.

    The code is not translated: call `translate` first if the receiver uses another vocabulary.

    >>> encode(Fault(code="RATE_LIMITED", message="Slow down", retry_after=5), "adcp")
    {'code': 'RATE_LIMITED', 'message': 'Slow down', 'recovery': 'transient', 'retry_after': 5}
    """
    check_fault("encode", fault)
    return _module(dialect).encode(fault)  # type: ignore[no-any-return]


@explains_wrong_calls
def decode(data: Any, dialect: str) -> Fault | None:
    """
    Return the Fault in a document of a dialect, or None. Takes a mapping, or its JSON as bytes or str.

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


_module = dialect  # the parameters of encode and decode have the same name
