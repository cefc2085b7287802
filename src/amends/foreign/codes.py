"""
The meanings of the codes and numbers inside exceptions of other libraries. Their publishers define these lists, which
data/libraries.toml has under [numbers].

Where a list has classes (a SQLSTATE's first two characters, the part of a SQLite code before the underscore), the row
of the exact code has priority over that of its class.
"""

from __future__ import annotations

from amends.carriers import native
from amends.core.meanings import BAD_KEY, FULL, INVALID, NOT_SENT, Meaning
from amends.vendors.registry import number_tables

__all__ = [
    "AMQP",
    "CURL",
    "ERRNO",
    "GRPC",
    "JSONRPC",
    "KAFKA",
    "MCP",
    "MONGO",
    "MONGO_LABELS",
    "MYSQL",
    "REDIS",
    "SQLITE",
    "SQLSTATE",
    "SSH",
    "TLS",
    "reply",
    "sqlite",
    "sqlstate",
]

_TABLES = number_tables()


def _by_number(name: str) -> dict[int, Meaning]:
    return {int(number): meaning for number, meaning in _TABLES[name].items()}


ERRNO, TLS = _TABLES["errno"], _TABLES["tls"]
SQLSTATE, SQLITE = _TABLES["sqlstate"], _TABLES["sqlite"]
GRPC, KAFKA, REDIS = _TABLES["grpc"], _TABLES["kafka"], _TABLES["redis"]
MONGO, MYSQL = _by_number("mongo"), _by_number("mysql")
MONGO_LABELS = tuple(_TABLES["mongo_labels"].items())
AMQP, CURL, SSH = _by_number("amqp"), _by_number("curl"), _by_number("ssh")

# JSON-RPC's own numbers, and AdCP's three if nothing structured came with them (M3: none of these had an effect).
JSONRPC: dict[int, Meaning] = dict(native.NUMBERS)

# The numbers of MCP. Other protocols use them differently (A2A's -32001 is an unknown task).
MCP: dict[int, Meaning] = dict(native.MCP_NUMBERS)

_SIGN_IN_REPLIES = frozenset({530, 532, 534, 535, 538})
"""The replies of SMTP and FTP that ask for other credentials."""


def reply(code: object) -> Meaning | None:
    """Return the meaning of a reply of SMTP or FTP: those from 400 on are temporary, those from 500 on are not."""
    if not isinstance(code, int) or isinstance(code, bool) or not 400 <= code <= 599:
        return None
    if code in _SIGN_IN_REPLIES:
        return BAD_KEY
    if code < 500:
        return FULL if code == 452 else NOT_SENT
    return INVALID


def sqlstate(value: object) -> Meaning | None:
    """Return the meaning of a SQLSTATE, or that of its class; None if neither has a row."""
    if not isinstance(value, str) or len(value) != 5 or not (value.isascii() and value.isalnum()):
        return None
    return SQLSTATE.get(value) or SQLSTATE.get(value[:2])


def sqlite(value: object) -> tuple[str, Meaning] | None:
    """Return the name and meaning of a SQLite result code, or those of its class; None if neither has a row."""
    if not isinstance(value, str) or not value.startswith("SQLITE_"):
        return None
    code = value.removeprefix("SQLITE_")
    for name in (code, code.partition("_")[0]):
        if name in SQLITE:
            return f"SQLITE_{name}", SQLITE[name]
    return None
