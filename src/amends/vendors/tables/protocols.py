"""Formats that many services share: OAuth 2, GraphQL, gRPC, Connect, Twirp, OData, x402, SOAP."""

from __future__ import annotations

from msgspec.structs import replace

from amends.vendors.kinds import (
    ABORTED,
    BAD_KEY,
    CANCELLED,
    CONFLICT,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    NOT_READY,
    OVERLOADED,
    PAY,
    RATE,
    SIGN_IN,
    STEP_UP,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["GRPC_NAMES", "VENDORS"]

OAUTH = Vendor(
    name="oauth",
    title="OAuth 2, OpenID Connect, device flow and DPoP",
    docs="https://www.rfc-editor.org/rfc/rfc6749#section-5.2",
    words=words(
        # RFC 8628: five seconds without an `interval`, and five more after slow_down.
        (replace(NOT_READY, wait=5.0), "authorization_pending"),
        ({400: replace(NOT_READY, wait=10.0), 200: replace(NOT_READY, wait=10.0)}, "slow_down"),
        (SIGN_IN, "invalid_grant login_required interaction_required consent_required"),
        # The code of a device flow; as an answer to a call, the access token.
        ({401: EXPIRED, 0: SIGN_IN}, "expired_token"),
        (EXPIRED, "invalid_token insufficient_claims use_dpop_nonce invalid_dpop_proof"),
        (BAD_KEY, "invalid_client"),
        (STEP_UP, "insufficient_scope insufficient_user_authentication mfa_required"),
        ({400: FORBIDDEN, 403: FORBIDDEN, 200: FORBIDDEN}, "access_denied"),
        (FORBIDDEN, "unauthorized_client"),
        (UNAVAILABLE, "temporarily_unavailable"),
        (INVALID, "invalid_scope unsupported_grant_type unsupported_response_type invalid_target"),
    ),
    unless={"invalid_request": INVALID, "server_error": INTERNAL},
)

_GRPC = (
    *(("CANCELLED", CANCELLED), ("UNKNOWN", INTERNAL), ("INVALID_ARGUMENT", INVALID)),
    *(("DEADLINE_EXCEEDED", TIMEOUT), ("NOT_FOUND", NOT_FOUND), ("ALREADY_EXISTS", CONFLICT)),
    *(("PERMISSION_DENIED", FORBIDDEN), ("RESOURCE_EXHAUSTED", RATE), ("FAILED_PRECONDITION", CONFLICT)),
    *(("ABORTED", ABORTED), ("OUT_OF_RANGE", INVALID), ("UNIMPLEMENTED", INVALID), ("INTERNAL", INTERNAL)),
    *(("UNAVAILABLE", UNAVAILABLE), ("DATA_LOSS", INTERNAL), ("UNAUTHENTICATED", BAD_KEY)),
)
GRPC_NAMES = tuple(name for name, _ in _GRPC)
"""The names of gRPC's status codes 1 to 16."""

GRPC = Vendor(
    name="grpc",
    title="gRPC",
    docs="https://grpc.github.io/grpc/core/md_doc_statuscodes.html",
    unless={name: replace(kind, executed=kind.executed) for name, kind in _GRPC},
    words=words((ABORTED, "ABORTED")),
    headers=("grpc-status", "grpc-message", "grpc-encoding"),
)

CONNECT = Vendor(
    name="connect",
    title="Connect and Twirp",
    docs="https://connectrpc.com/docs/protocol/#error-codes",
    words=words(
        (ABORTED, "aborted"),
        (RATE, "resource_exhausted"),
        (UNAVAILABLE, "unavailable"),
        (TIMEOUT, "deadline_exceeded"),
        (CONFLICT, "failed_precondition already_exists"),
        (INVALID, "invalid_argument out_of_range malformed unimplemented"),
        (NOT_FOUND, "bad_route"),
        (CANCELLED, "canceled"),
        (BAD_KEY, "unauthenticated"),
        (FORBIDDEN, "permission_denied"),
    ),
    unless={
        "not_found": NOT_FOUND,
        "internal": INTERNAL,
        "unknown": INTERNAL,
        "data_loss": INTERNAL,
        "dataloss": INTERNAL,
    },
    headers=("connect-protocol-version",),
)

GRAPHQL = Vendor(
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
)

X402 = Vendor(
    name="x402",
    title="x402 payments",
    docs="https://docs.cdp.coinbase.com/x402/core-concepts/http-402",
    words=words((PAY, "@x402")),
    statuses={402: PAY},
    headers=("payment-required", "x-payment-response"),
)

EDGE = Vendor(
    name="edge",
    title="Proxies and gateways",
    docs="https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/",
    words=words(
        (OVERLOADED, "over_capacity server_busy too_busy"),
        (
            RATE,
            "too_many_requests rate_limited rate_limit_exceeded throttled TooManyRequests RateLimitExceeded",
        ),
        (UNAVAILABLE, "service_unavailable"),
    ),
    unless={"unauthorized": BAD_KEY, "forbidden": FORBIDDEN},
)

VENDORS = (OAUTH, GRPC, CONNECT, GRAPHQL, X402, EDGE)
