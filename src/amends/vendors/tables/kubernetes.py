"""Kubernetes."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    RATE,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="kubernetes",
    title="Kubernetes",
    docs="https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md",
    words=words(
        (RATE, "TooManyRequests"),
        (UNAVAILABLE, "ServerTimeout ServiceUnavailable StorageReadinessNotReady"),
        (TIMEOUT, "Timeout"),
        (CONFLICT, "Conflict AlreadyExists Expired Gone"),
        (NOT_FOUND, "NotFound"),
        (FORBIDDEN, "Forbidden"),
        (BAD_KEY, "Unauthorized"),
        (INVALID, "Invalid BadRequest MethodNotAllowed NotAcceptable UnsupportedMediaType"),
        (TOO_LARGE, "RequestEntityTooLarge"),
        (INTERNAL, "InternalError"),
        (FORBIDDEN, "NamespaceTerminating"),
    ),
    headers=("x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"),
)
