"""Supabase and PostgREST."""

from __future__ import annotations

from amends.vendors.kinds import (
    ABORTED,
    BAD_KEY,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    RATE,
    TIMEOUT,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="supabase",
    title="Supabase and PostgREST",
    docs="https://postgrest.org/en/stable/references/errors.html",
    words=words(
        (EXPIRED, "PGRST301 PGRST303 bad_jwt"),
        (BAD_KEY, "PGRST302 invalid_credentials no_authorization"),
        (UNAVAILABLE, "PGRST000 PGRST001 PGRST002"),
        (OVERLOADED, "PGRST003"),
        (NOT_FOUND, "PGRST116 PGRST202 PGRST205"),
        (INVALID, "PGRST100 PGRST102"),
        (RATE, "over_request_rate_limit over_email_send_rate_limit over_sms_send_rate_limit"),
        (DISABLED, "user_banned signup_disabled"),
        (TIMEOUT, "57014"),
        (OVERLOADED, "53300"),
        (ABORTED, "40001 40P01"),
        (CONFLICT, "23505 23503"),
        (FORBIDDEN, "42501"),
    ),
    headers=("sb-gateway-version", "proxy-status-postgrest"),
    numbers=True,
)
