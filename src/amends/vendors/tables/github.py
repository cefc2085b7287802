"""GitHub."""

from __future__ import annotations

from msgspec.structs import replace

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    RATE,
    SIGN_IN,
    STEP_UP,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["SECONDARY", "VENDOR"]

SECONDARY = replace(RATE, wait=60.0)
"""GitHub documents a minute for a secondary rate limit that names no wait."""

VENDOR = Vendor(
    name="github",
    title="GitHub",
    docs="https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api",
    words=words(
        (RATE, "RATE_LIMITED RATE_LIMIT graphql_rate_limit"),
        # The page that `documentation_url` names.
        (SECONDARY, "@secondary-rate-limit"),
        (RATE, "@primary-rate-limit"),
        # The token has to be authorised for the organisation (header `x-github-sso`).
        (STEP_UP, "INSUFFICIENT_SCOPES @sso"),
        (TOO_LARGE, "MAX_NODE_LIMIT_EXCEEDED RESOURCE_LIMITS_EXCEEDED"),
        (UNAVAILABLE, "SERVICE_UNAVAILABLE"),
        (CONFLICT, "STALE_DATA already_exists"),
        (INVALID, "UNPROCESSABLE missing_field unprocessable undefinedField argumentLiteralsIncompatible"),
        (TIMEOUT, "TIMEOUT"),
        (BAD_KEY, "incorrect_client_credentials bad_verification_code redirect_uri_mismatch"),
        (SIGN_IN, "bad_refresh_token unverified_user_email"),
        (FORBIDDEN, "device_flow_disabled"),
    ),
    unless={"NOT_FOUND": NOT_FOUND, "FORBIDDEN": FORBIDDEN},
    headers=("x-github-request-id", "x-github-media-type", "x-accepted-oauth-scopes", "x-github-sso"),
)
