"""
The last line of a traceback, as people paste it into `amends decode`: `httpx.ReadTimeout: The read operation timed out`.

A status or a code word in the place where a library always writes it is read as a response. Otherwise the name of the class
decides, as in `amends.foreign`. The prose of the message decides nothing. A body in a line is found before (`pasted_documents`).
"""

from __future__ import annotations

import builtins
import re

from amends.carriers.extraction import examine
from amends.core.meanings import fault_of
from amends.core.reading import FAILED, Reading
from amends.foreign import codes
from amends.foreign.classes import INSIDE, rows

__all__ = ["read_traceback"]

_TITLE = "Traceback (most recent call last)"
_MAX_LINES = 10_000
_MAX_TRIED = 200
"""Lines that are read as exceptions, from the last one back."""
_FRAME = re.compile(r"^ *(?:[|+] ?)+-*")
"""What Python writes before the lines of an exception group."""
_LINE = re.compile(r"(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: (?P<message>.*))?")
_PREFIX = re.compile(
    r"^.{0,120}?(?<![\w.])(?=(?:[a-z_]\w*\.)+[A-Z]\w*(?:Error|Exception|Timeout|Exceeded)?: )"
)
"""What journals and log files write before the name of an exception."""
_STATUSES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:code|status|status_code)(?: code)?[:= ]{1,3}\(?([45]\d\d)\b",  # openai, anthropic, aiohttp, pydantic-ai
        r"^\(?([45]\d\d)\b",  # requests, google-api-core, kubernetes, PyGithub
        r"^HTTP Error ([45]\d\d)\b",  # urllib
        r"^(?:Client|Server) error '([45]\d\d) ",  # httpx
    )
)
_BOTOCORE = re.compile(r"^An error occurred \((\w{1,96})\) when calling the ")
_ELASTIC = re.compile(r"^\w{1,64}\(([45]\d\d), '(\w{1,96})'")
_AZURE = re.compile(r"^\((\w{1,96})\) ")

# psycopg has a class for every SQLSTATE; these are the ones that people meet.
_POSTGRES = {
    "UniqueViolation": "23505",
    "ForeignKeyViolation": "23503",
    "NotNullViolation": "23502",
    "CheckViolation": "23514",
    "ExclusionViolation": "23P01",
    "SerializationFailure": "40001",
    "DeadlockDetected": "40P01",
    "LockNotAvailable": "55P03",
    "QueryCanceled": "57014",
    "AdminShutdown": "57P01",
    "CannotConnectNow": "57P03",
    "TooManyConnections": "53300",
    "DiskFull": "53100",
    "OutOfMemory": "53200",
    "UndefinedTable": "42P01",
    "UndefinedColumn": "42703",
    "UndefinedFunction": "42883",
    "SyntaxError": "42601",
    "InsufficientPrivilege": "42501",
    "InvalidTextRepresentation": "22P02",
    "StringDataRightTruncation": "22001",
    "NumericValueOutOfRange": "22003",
    "InvalidPassword": "28P01",
    "ReadOnlySqlTransaction": "25006",
    "InFailedSqlTransaction": "25P02",
    "DuplicateTable": "42P07",
}

# Classes that have no row of their own: the row of their base class.
_BASES = {
    **{
        f"{module}.{name}": f"{module}.{base}"
        for module in ("httpx", "httpx2")
        for name, base in (
            ("ReadTimeout", "TimeoutException"),
            ("WriteTimeout", "TimeoutException"),
            ("ReadError", "NetworkError"),
            ("WriteError", "NetworkError"),
            ("CloseError", "NetworkError"),
        )
    },
    "requests.exceptions.ReadTimeout": "requests.exceptions.Timeout",
    "builtins.ConnectionResetError": "builtins.ConnectionError",
    "builtins.ConnectionAbortedError": "builtins.ConnectionError",
    "builtins.BrokenPipeError": "builtins.ConnectionError",
    "aiohttp.client_exceptions.ServerDisconnectedError": "aiohttp.client_exceptions.ClientConnectionError",
    "aiohttp.client_exceptions.ClientConnectorDNSError": "aiohttp.client_exceptions.ClientConnectorError",
}


def read_traceback(text: str) -> object:
    r"""
    Return what the last exception of a text reports: a response, a `Reading`, or None if there is none.

    The message of an exception may go on in further lines, and its cause may say more than an exception of one's own or one
    that only wraps others.

    >>> read_traceback("urllib.error.HTTPError: HTTP Error 429: Too Many Requests\n")
    {'status': 429, 'headers': {}, 'body': ''}
    >>> read_traceback("httpx.ReadTimeout: The read operation timed out").fault.code
    'TIMEOUT'
    """
    lines = [_FRAME.sub("", line) for line in text.splitlines()[-_MAX_LINES:]]
    lines = [line for line in lines if line.strip()]
    titled = _TITLE in text
    result: object = None
    for number, line in enumerate(reversed(lines[-_MAX_TRIED:])):
        if not titled and result is not None and result is not FAILED:
            break
        found = _read_line(line.strip() if number == 0 else line.rstrip(), titled, last=number == 0)
        if found is None or (found is FAILED and result is not None):
            continue
        if not (isinstance(found, Reading) and (found is FAILED or found.path == _WRAPPER)):
            return found
        result = found if result is None or result is FAILED else result
    return _plain(result)


_WRAPPER = "wrapper"


def _plain(result: object) -> object:
    """Return a reading with its published path."""
    if isinstance(result, Reading) and result.path == _WRAPPER:
        return Reading(True, result.fault, "exception", None, True)
    return result


def _read_line(line: str, titled: bool, *, last: bool) -> object:
    """Return what one line reports."""
    found = _LINE.fullmatch(line)
    if found is None or not _is_exception(found["name"], titled):
        line = _PREFIX.sub("", line, count=1)
        found = _LINE.fullmatch(line)
    exception = found is not None and _is_exception(found["name"], titled and (last or line[:1] != " "))
    if found is None or not exception:
        # In a line that is no exception only the first form counts: numbers at the start of log lines mean other things.
        status = _STATUSES[0].search(line) if last else None
        return None if status is None else _response(int(status[1]))
    name, message = found["name"], found["message"] or ""
    for pattern in _STATUSES:
        if (match := pattern.search(message)) is not None:
            return _response(int(match[1]))
    if (match := _BOTOCORE.match(message)) is not None:
        return {"status": 400, "headers": {"x-amzn-errortype": match[1]}, "body": ""}
    if name.startswith("elastic") and (match := _ELASTIC.match(message)) is not None:
        error = {"root_cause": [{"type": match[2]}], "type": match[2]}
        return {"status": int(match[1]), "headers": {}, "body": {"error": error, "status": int(match[1])}}
    if name.startswith("azure.") and (match := _AZURE.match(message)) is not None:
        reading = examine({"error": {"code": match[1], "message": ""}}, vendor="azure")[1]
        if reading.fault is not None:
            return reading
    return _by_class(name)


def _response(status: int) -> dict[str, object]:
    return {"status": status, "headers": {}, "body": ""}


def _is_exception(name: str, titled: bool) -> bool:
    """Whether a name is that of an exception: of a class with a row, in a traceback, of a module, or a built-in one."""
    last = name.rpartition(".")[2]
    if not last[:1].isupper() and not (last[:1] == "_" and last[1:2].isupper()):
        return name in rows()
    return "." in name or titled or isinstance(getattr(builtins, name, None), type)


def _by_class(name: str) -> Reading:
    full = name if "." in name else f"builtins.{name}"
    module, _, last = full.rpartition(".")
    if module in {"psycopg.errors", "psycopg2.errors", "asyncpg.exceptions"}:
        meaning = codes.sqlstate(_POSTGRES.get(last.removesuffix("Error")) or _POSTGRES.get(last))
        if meaning is not None:
            return Reading(True, fault_of(meaning), "exception", None, True)
    row = rows().get(_BASES.get(full, full))
    if row is None:
        return FAILED
    return Reading(True, fault_of(row.meaning), _WRAPPER if row.reader == INSIDE else "exception", None, True)
