"""gRPC."""

from __future__ import annotations

from msgspec.structs import replace

from amends.vendors.kinds import (
    ABORTED,
    BAD_KEY,
    CANCELLED,
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    RATE,
    TIMEOUT,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["GRPC_NAMES", "VENDOR"]

_GRPC = (
    *(("CANCELLED", CANCELLED), ("UNKNOWN", INTERNAL), ("INVALID_ARGUMENT", INVALID)),
    *(("DEADLINE_EXCEEDED", TIMEOUT), ("NOT_FOUND", NOT_FOUND), ("ALREADY_EXISTS", CONFLICT)),
    *(("PERMISSION_DENIED", FORBIDDEN), ("RESOURCE_EXHAUSTED", RATE), ("FAILED_PRECONDITION", CONFLICT)),
    *(("ABORTED", ABORTED), ("OUT_OF_RANGE", INVALID), ("UNIMPLEMENTED", INVALID), ("INTERNAL", INTERNAL)),
    *(("UNAVAILABLE", UNAVAILABLE), ("DATA_LOSS", INTERNAL), ("UNAUTHENTICATED", BAD_KEY)),
)

GRPC_NAMES = tuple(name for name, _ in _GRPC)
"""The names of gRPC's status codes 1 to 16."""

VENDOR = Vendor(
    name="grpc",
    title="gRPC",
    docs="https://grpc.github.io/grpc/core/md_doc_statuscodes.html",
    unless={name: replace(kind, executed=kind.executed) for name, kind in _GRPC},
    words=words((ABORTED, "ABORTED")),
    headers=("grpc-status", "grpc-message", "grpc-encoding"),
)
