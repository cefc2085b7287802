"""GraphQL."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    LOST,
    NOT_FOUND,
    RATE,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="graphql",
    title="GraphQL",
    docs="https://www.apollographql.com/docs/apollo-server/data/errors",
    words=words(
        (BAD_KEY, "UNAUTHENTICATED"),
        (RATE, "THROTTLED RATE_LIMITED RATELIMITED TOO_MANY_REQUESTS"),
        (INVALID, "GRAPHQL_PARSE_FAILED GRAPHQL_VALIDATION_FAILED BAD_USER_INPUT PERSISTED_QUERY_NOT_FOUND"),
        (INVALID, "PERSISTED_QUERY_NOT_SUPPORTED OPERATION_RESOLUTION_FAILURE"),
        (TOO_LARGE, "MAX_QUERY_COMPLEXITY_EXCEEDED QUERY_TOO_COMPLEX"),
        # The error classes of Braintree.
        (RATE, "RESOURCE_LIMIT"),
        (UNAVAILABLE, "SERVICE_AVAILABILITY"),
    ),
    unless={"FORBIDDEN": FORBIDDEN, "INTERNAL_SERVER_ERROR": INTERNAL, "NOT_FOUND": NOT_FOUND},
    # The protocol graphql-transport-ws.
    closes={
        **dict.fromkeys((4400, 4406, 4429), INVALID),
        4401: BAD_KEY,
        4403: FORBIDDEN,
        **dict.fromkeys((4408, 4504), LOST),
        4409: CONFLICT,
        4500: INTERNAL,
    },
)
