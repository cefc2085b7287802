"""OAuth 2, OpenID Connect, device flow and DPoP."""

from __future__ import annotations

from msgspec.structs import replace

from amends.vendors.kinds import (
    BAD_KEY,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_READY,
    SIGN_IN,
    STEP_UP,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
