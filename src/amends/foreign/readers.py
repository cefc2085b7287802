"""Readers of what an exception of a known class carries: an errno, a SQLSTATE, the status of an RPC, a close code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from errno import errorcode

from amends.carriers.extraction import extract
from amends.core.fault import Fault
from amends.core.meanings import LOST, NOT_SENT, RATE, Meaning, fault_of
from amends.foreign import codes, validation
from amends.foreign.responses import botocore_fault
from amends.foreign.rpc import grpc_fault
from amends.foreign.safe_attr import attribute
from amends.foreign.without_text import without_text

__all__ = ["BY_VENDOR", "READERS"]


def _errno(exc: BaseException) -> Fault | None:
    number = attribute(exc, "errno")
    name = errorcode.get(number, "") if isinstance(number, int) else ""
    meaning = codes.ERRNO.get(name)
    return None if meaning is None else fault_of(meaning, details={"errno": name})


def _ssl(exc: BaseException) -> Fault | None:
    reason = attribute(exc, "reason")
    meaning = codes.TLS.get(reason) if isinstance(reason, str) else None
    return None if meaning is None else fault_of(meaning)


def _sqlstate(exc: BaseException) -> Fault | None:
    value = attribute(exc, "sqlstate") or attribute(exc, "pgcode")
    meaning = codes.sqlstate(value)
    return None if meaning is None else fault_of(meaning, details={"code": value, "sqlstate": value})


def _psycopg(exc: BaseException) -> Fault | None:
    # psycopg 3 sets `pgconn` only if the connection could not be established.
    found = _sqlstate(exc)
    return fault_of(NOT_SENT) if found is None and attribute(exc, "pgconn") is not None else found


def _sqlite(exc: BaseException) -> Fault | None:
    found = codes.sqlite(attribute(exc, "sqlite_errorname"))
    return None if found is None else fault_of(found[1], details={"sqlite": found[0]})


def _websocket(exc: BaseException, vendor: str | None = None) -> Fault | None:
    received = attribute(exc, "rcvd")
    number, reason = attribute(received, "code"), attribute(received, "reason")
    if not isinstance(number, int):
        return None
    from amends.vendors.closes import read_close

    fault = read_close(int(number), reason if isinstance(reason, str) else "", vendor)
    return None if fault is None else without_text(fault)


def _redis(exc: BaseException) -> Fault | None:
    """Redis: the first word of an error reply is its code. redis-py leaves it in the text if it has no class for it."""
    arguments = attribute(exc, "args")
    text = arguments[0] if isinstance(arguments, tuple) and arguments else None
    word = text.partition(" ")[0] if isinstance(text, str) else ""
    meaning = codes.REDIS.get(word)
    return None if meaning is None else fault_of(meaning, details={"code": word})


def _mongo(exc: BaseException) -> Fault | None:
    """MongoDB: its number; of a bulk write, that of the first write error; and its labels."""
    given = attribute(exc, "details")
    details = given if isinstance(given, Mapping) else {}
    number = attribute(exc, "code")
    errors = details.get("writeErrors")
    if isinstance(errors, list) and errors and isinstance(errors[0], Mapping):
        number = errors[0].get("code")
    given = details.get("errorLabels")
    labels = given if isinstance(given, list) else []
    meaning = codes.MONGO.get(number) if isinstance(number, int) else None
    labelled = next((each for label, each in codes.MONGO_LABELS if label in labels), None)
    # The label of retryable writes says less than the number.
    if labelled is not None and (meaning is None or labelled is not LOST):
        meaning = labelled
    if meaning is None:
        return None
    return fault_of(meaning, details={"code": str(number)} if isinstance(number, int) else None)


def _ssh(exc: BaseException) -> Fault | None:
    number = attribute(exc, "code")
    meaning = codes.SSH.get(number) if isinstance(number, int) else None
    return None if meaning is None else fault_of(meaning)


def _cooldown(exc: BaseException) -> Fault | None:
    """Litellm's router: the seconds until a deployment is tried again."""
    wait = attribute(exc, "cooldown_time")
    if not isinstance(wait, (int, float)) or isinstance(wait, bool) or not 0 <= wait <= _MAX_COOLDOWN:
        return None
    return fault_of(RATE, retry_after=float(wait))


def _first(exc: BaseException) -> object:
    """Return the first argument of an exception, or None."""
    arguments = attribute(exc, "args")
    return arguments[0] if isinstance(arguments, tuple) and arguments else None


def _numbered(meanings: Mapping[int, Meaning], number: object) -> Fault | None:
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    meaning = meanings.get(number)
    return None if meaning is None else fault_of(meaning, details={"code": str(int(number))})


def _mysql(exc: BaseException) -> Fault | None:
    """MySQL: the number, which mysql-connector has in `errno` and the others in the arguments; else the SQLSTATE."""
    number = attribute(exc, "errno")
    return _numbered(codes.MYSQL, number if isinstance(number, int) else _first(exc)) or _sqlstate(exc)


def _amqp(exc: BaseException) -> Fault | None:
    return _numbered(codes.AMQP, attribute(exc, "reply_code"))


def _curl(exc: BaseException) -> Fault | None:
    number = attribute(exc, "code")
    return _numbered(codes.CURL, number if isinstance(number, int) else _first(exc))


def _librdkafka(exc: BaseException) -> Fault | None:
    read = attribute(_first(exc), "name")
    name = read() if callable(read) else None
    meaning = codes.KAFKA.get(name) if isinstance(name, str) else None
    return None if meaning is None else fault_of(meaning, details={"code": name})


def _smtp(exc: BaseException) -> Fault | None:
    """SMTP: the reply. If all recipients were refused, one that was refused for good decides."""
    refused = attribute(exc, "recipients")
    if isinstance(refused, Mapping):
        found = [each[0] for each in refused.values() if isinstance(each, tuple) and each]
    elif isinstance(refused, (list, tuple)):
        found = [attribute(each, "code") for each in refused]
    else:
        found = [attribute(exc, "smtp_code") or attribute(exc, "code")]
    replies = [int(each) for each in found if isinstance(each, int)]
    return _reply(max(replies, default=None))


def _ftp(exc: BaseException) -> Fault | None:
    """FTP: the reply starts with its number."""
    text = _first(exc)
    number = text[:3] if isinstance(text, str) else ""
    if number in {"426", "451"}:
        # A transfer that had begun.
        return fault_of(LOST, details={"code": number})
    return _reply(int(number)) if number.isascii() and number.isdecimal() and len(number) == 3 else None


def _reply(number: int | None) -> Fault | None:
    meaning = codes.reply(number)
    return None if meaning is None else fault_of(meaning, details={"code": str(number)})


def _xmlrpc(exc: BaseException) -> Fault | None:
    """XML-RPC: the number of a fault, where it is one of the specification's; or the status of the answer."""
    number = attribute(exc, "faultCode")
    if number is not None:
        return _numbered(codes.JSONRPC, number)
    headers = attribute(exc, "headers")
    given = dict(headers.items()) if hasattr(headers, "items") else {}
    fault = extract(
        {"status": attribute(exc, "errcode"), "headers": given, "body": None}, "http", native=False
    )
    return None if fault is None else without_text(fault)


def _waiter(exc: BaseException) -> Fault | None:
    """botocore: the last response of a waiter, if that is an error."""
    response = attribute(exc, "last_response")
    return botocore_fault(response) if isinstance(response, Mapping) and "Error" in response else None


_MAX_COOLDOWN = 86400


READERS: dict[str, Callable[..., Fault | None]] = {
    "errno": _errno,
    "ssl": _ssl,
    "sqlstate": _sqlstate,
    "psycopg": _psycopg,
    "sqlite": _sqlite,
    "grpc": grpc_fault,
    "websocket": _websocket,
    "redis": _redis,
    "mongo": _mongo,
    "ssh": _ssh,
    "cooldown": _cooldown,
    "waiter": _waiter,
    "mysql": _mysql,
    "amqp": _amqp,
    "curl": _curl,
    "librdkafka": _librdkafka,
    "smtp": _smtp,
    "ftp": _ftp,
    "xmlrpc": _xmlrpc,
    "json": validation.json_position,
    "pydantic": validation.pydantic,
    "msgspec": validation.msgspec,
    "jsonschema": validation.jsonschema,
}
"""Functions that read more from an instance than its class shows. One that raises counts as having found nothing."""

BY_VENDOR = frozenset({"websocket"})
"""The readers that take the name of the service as `vendor`, because each service has numbers of its own."""
