"""
The meanings of the codes and numbers inside exceptions of other libraries. Their publishers define these lists.

Where a list has classes (a SQLSTATE's first two characters, the part of a SQLite code before the underscore), the row
of the exact code has priority over that of its class.
"""

from __future__ import annotations

from amends.carriers import native
from amends.core.meanings import (
    ABORTED,
    BAD_KEY,
    CANCELLED,
    CONFLICT,
    DAMAGED,
    FORBIDDEN,
    FULL,
    INTERNAL,
    INVALID,
    LOST,
    NOT_FOUND,
    NOT_SENT,
    RATE,
    TIMEOUT,
    UNTRUSTED,
    Meaning,
)

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

# For an OSError without a class of its own. The errno does not show whether "no route" came before or after something
# was sent; a client that knows it raises a class of its own.
ERRNO: dict[str, Meaning] = {
    "ENETUNREACH": LOST,
    "EHOSTUNREACH": LOST,
    "ENETDOWN": LOST,
    "EHOSTDOWN": LOST,
    "ENETRESET": LOST,
    "EADDRNOTAVAIL": NOT_SENT,
    "EMFILE": NOT_SENT,
    "ENFILE": NOT_SENT,
    "EBUSY": NOT_SENT,
    "ETXTBSY": NOT_SENT,
    "ENOLCK": NOT_SENT,
    "EDEADLK": NOT_SENT,
    "EDEADLOCK": NOT_SENT,  # the same number; `errno.errorcode` has this name on Linux
    "ENOSPC": LOST,
    "EDQUOT": LOST,
    "ENOMEM": LOST,
    "ENOBUFS": LOST,
    "EROFS": FORBIDDEN,
    "EADDRINUSE": CONFLICT,
    "ENOTEMPTY": CONFLICT,
    "EINVAL": INVALID,
    "ENAMETOOLONG": INVALID,
    "ELOOP": INVALID,
    "E2BIG": INVALID,
    "ENOEXEC": INVALID,
    "EXDEV": INVALID,
    "EFBIG": INVALID,
    "ENODEV": NOT_FOUND,
    "ENXIO": NOT_FOUND,
}

# OpenSSL's reasons that occur on an established connection; all others are failed handshakes.
TLS: dict[str, Meaning] = {
    "DECRYPTION_FAILED_OR_BAD_RECORD_MAC": LOST,
    "BAD_RECORD_TYPE": LOST,
    "UNEXPECTED_EOF_WHILE_READING": LOST,
    "APPLICATION_DATA_AFTER_CLOSE_NOTIFY": LOST,
    "PROTOCOL_IS_SHUTDOWN": LOST,
}

# PostgreSQL's appendix A, which follows the SQL standard. A statement that was refused was rolled back.
SQLSTATE: dict[str, Meaning] = {
    "08": LOST,
    "08001": NOT_SENT,
    "08004": NOT_SENT,
    "0A": INVALID,
    "21": INVALID,
    "22": INVALID,
    "23": CONFLICT,
    "23502": INVALID,
    "23514": INVALID,
    "24": CONFLICT,
    "25": CONFLICT,
    "26": NOT_FOUND,
    "27": CONFLICT,
    "28": BAD_KEY,
    "2B": CONFLICT,
    "2D": CONFLICT,
    "34": NOT_FOUND,
    "3B": CONFLICT,
    "3D": NOT_FOUND,
    "3F": NOT_FOUND,
    "40": ABORTED,
    "40003": INTERNAL,  # statement completion unknown
    "42": INVALID,
    "42501": FORBIDDEN,
    "42704": NOT_FOUND,
    "42P01": NOT_FOUND,
    "44": INVALID,
    "53": LOST,
    "53300": NOT_SENT,
    "54": INVALID,
    "55": CONFLICT,
    "55006": NOT_SENT,
    "55P03": ABORTED,
    "57": LOST,
    "57014": CANCELLED,
    "57P03": NOT_SENT,
    "58": INTERNAL,
    "P0": CONFLICT,
    "XX": INTERNAL,
    "XX001": DAMAGED,
    "XX002": DAMAGED,
}

# SQLite's result codes, without the prefix SQLITE_.
SQLITE: dict[str, Meaning] = {
    "BUSY": NOT_SENT,
    "BUSY_SNAPSHOT": ABORTED,
    "LOCKED": NOT_SENT,
    "PROTOCOL": NOT_SENT,
    "SCHEMA": ABORTED,
    "ABORT": ABORTED,
    "CONSTRAINT": CONFLICT,
    "CONSTRAINT_CHECK": INVALID,
    "CONSTRAINT_DATATYPE": INVALID,
    "CONSTRAINT_NOTNULL": INVALID,
    "ERROR": INVALID,
    "MISMATCH": INVALID,
    "RANGE": INVALID,
    "TOOBIG": INVALID,
    "CANTOPEN": NOT_FOUND,
    "NOTFOUND": NOT_FOUND,
    "AUTH": FORBIDDEN,
    "PERM": FORBIDDEN,
    "READONLY": FORBIDDEN,
    "INTERRUPT": CANCELLED,
    "FULL": LOST,
    "NOMEM": LOST,
    "IOERR": INTERNAL,
    "INTERNAL": INTERNAL,
    "MISUSE": INTERNAL,
    "CORRUPT": DAMAGED,
    "NOTADB": DAMAGED,
}

# gRPC's status codes.
GRPC: dict[str, Meaning] = {
    "CANCELLED": CANCELLED,
    "UNKNOWN": INTERNAL,
    "INVALID_ARGUMENT": INVALID,
    "DEADLINE_EXCEEDED": TIMEOUT,
    "NOT_FOUND": NOT_FOUND,
    "ALREADY_EXISTS": CONFLICT,
    "PERMISSION_DENIED": FORBIDDEN,
    "RESOURCE_EXHAUSTED": RATE,
    "FAILED_PRECONDITION": CONFLICT,
    "ABORTED": ABORTED,
    "OUT_OF_RANGE": INVALID,
    "UNIMPLEMENTED": NOT_FOUND,
    "INTERNAL": INTERNAL,
    "UNAVAILABLE": LOST,
    "DATA_LOSS": DAMAGED,
    "UNAUTHENTICATED": BAD_KEY,
}

# JSON-RPC's own numbers, and AdCP's three if nothing structured came with them (M3: none of these had an effect).
JSONRPC: dict[int, Meaning] = dict(native.NUMBERS)

# The numbers of MCP. Other protocols use them differently (A2A's -32001 is an unknown task).
MCP: dict[int, Meaning] = dict(native.MCP_NUMBERS)


# The first word of an error reply of Redis, where redis-py has no class for it.
REDIS: dict[str, Meaning] = {
    "BUSY": NOT_SENT,  # a script runs
    "INPROG": NOT_SENT,
    "NOREPLICAS": NOT_SENT,
    "NOGOODSLAVE": NOT_SENT,
    "UNBLOCKED": ABORTED,
    "MISCONF": FULL,  # writes are refused because the last snapshot failed
    "BUSYKEY": CONFLICT,
    "BUSYGROUP": CONFLICT,
    "NOGROUP": NOT_FOUND,
    "NOTBUSY": CONFLICT,
    "UNKILLABLE": CONFLICT,
    "NOPROTO": INVALID,
    "WRONGTYPE": INVALID,
    "CROSSSLOT": INVALID,
}

# MongoDB's error codes (error_codes.yml). The driver has classes for a few of them only.
MONGO: dict[int, Meaning] = {
    **dict.fromkeys(
        (2, 4, 9, 14, 17, 22, 40, 52, 53, 56, 57, 66, 67, 72, 73, 121, 10334, 17280, 17419), INVALID
    ),
    **dict.fromkeys((59, 115, 168, 352, 40324), INVALID),  # an unknown command, stage or operator
    **dict.fromkeys((26, 27, 43, 47, 286), NOT_FOUND),
    **dict.fromkeys((48, 68, 85, 86, 117, 11000, 11001, 12582), CONFLICT),
    **dict.fromkeys((112, 244, 251, 225), ABORTED),  # a concurrent transaction won
    **dict.fromkeys((13, 31, 33), FORBIDDEN),
    **dict.fromkeys((8000, 11, 18, 391), BAD_KEY),
    # The primary changes, or this member is no longer it: the command was refused.
    **dict.fromkeys((10107, 13435, 13436, 10058, 211, 133, 143, 46, 24), NOT_SENT),
    **dict.fromkeys((6, 7, 89, 91, 189, 9001, 11600, 11602, 63, 150, 13388, 234), LOST),
    **dict.fromkeys((50, 64, 202, 262), TIMEOUT),
    **dict.fromkeys((11601, 237, 290), CANCELLED),
    **dict.fromkeys((462, 16500), RATE),  # 16500: the request units of Cosmos DB
    **dict.fromkeys((14031, 146, 39, 12), FULL),  # disk or memory
}
MONGO_LABELS: tuple[tuple[str, Meaning], ...] = (
    ("SystemOverloadedError", FULL),
    ("TransientTransactionError", ABORTED),
    ("UnknownTransactionCommitResult", LOST),
    ("RetryableWriteError", LOST),
)
"""The labels by which MongoDB says that a repeat may help; the first one counts."""

# MySQL's numbers where the class or the SQLSTATE says less: most are of the class OperationalError.
MYSQL: dict[int, Meaning] = {
    **dict.fromkeys((1205, 1213, 3572), ABORTED),  # the lock was not granted; the statement was rolled back
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370), FORBIDDEN),
    **dict.fromkeys((1045, 1698, 1862), BAD_KEY),
    **dict.fromkeys((1040, 1203, 1290, 1836, 2002, 2003, 2005), NOT_SENT),  # 1290, 1836: a replica
    1226: RATE,
    **dict.fromkeys((1049, 1051, 1146), NOT_FOUND),
    **dict.fromkeys((1021, 1041, 1114), FULL),
    3024: TIMEOUT,
    1317: CANCELLED,
    **dict.fromkeys((1053, 2006, 2013, 2055), LOST),
}

# The close codes of AMQP 0-9-1.
AMQP: dict[int, Meaning] = {
    **dict.fromkeys((311, 402, 501, 502, 503, 504, 505, 540), INVALID),
    320: LOST,
    **dict.fromkeys((403, 530), FORBIDDEN),
    404: NOT_FOUND,
    **dict.fromkeys((405, 406), CONFLICT),
    506: FULL,
    541: INTERNAL,
}

# The errors of librdkafka by name: local ones start with an underscore.
KAFKA: dict[str, Meaning] = {
    **dict.fromkeys(("_ALL_BROKERS_DOWN", "_TRANSPORT"), LOST),
    **dict.fromkeys(("_MSG_TIMED_OUT", "_TIMED_OUT", "REQUEST_TIMED_OUT", "_TIMED_OUT_QUEUE"), TIMEOUT),
    **dict.fromkeys(("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS"), NOT_SENT),
    **dict.fromkeys(
        ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"), NOT_SENT
    ),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": LOST,
    **dict.fromkeys(("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"), NOT_FOUND),
    **dict.fromkeys(
        ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"),
        FORBIDDEN,
    ),
    **dict.fromkeys(("SASL_AUTHENTICATION_FAILED", "_AUTHENTICATION"), BAD_KEY),
    **dict.fromkeys(
        ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "_INVALID_ARG", "TOPIC_EXCEPTION"), INVALID
    ),
    "_QUEUE_FULL": FULL,
    "THROTTLING_QUOTA_EXCEEDED": RATE,
    **dict.fromkeys(("REBALANCE_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"), ABORTED),
    **dict.fromkeys(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "INVALID_TXN_STATE", "_FENCED"), CONFLICT),
}

# libcurl's numbers.
CURL: dict[int, Meaning] = {
    **dict.fromkeys((1, 3, 4), INVALID),
    **dict.fromkeys((5, 6, 7, 35), NOT_SENT),
    28: TIMEOUT,
    **dict.fromkeys((60, 77, 83, 90, 91), UNTRUSTED),
    **dict.fromkeys((18, 52, 55, 56, 92, 95), LOST),
}

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


# Why an SSH server did not open a channel (RFC 4254, 5.1).
SSH: dict[int, Meaning] = {1: FORBIDDEN, 2: NOT_SENT, 3: INVALID, 4: FULL}


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
