"""Intercom."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONFLICT, FORBIDDEN, INVALID, TIMEOUT, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="intercom",
    title="Intercom",
    docs="https://developers.intercom.com/docs/references/rest-api/errors/error-objects",
    words=words(
        (BAD_KEY, "token_unauthorized token_not_found token_suspended"),
        (FORBIDDEN, "api_plan_restricted action_forbidden"),
        (INVALID, "parameter_invalid parameter_not_found bad_request"),
        (CONFLICT, "unique_user_constraint"),
        (TIMEOUT, "server_timeout"),
        (UNAVAILABLE, "service_unavailable client_error"),
    ),
    headers=("x-intercom-version",),
)
