"""Shopify, Xero, QuickBooks, eBay, Yelp, NewsAPI, Marketo."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    QUOTA,
    RATE,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDORS"]

SHOPIFY = Vendor(
    name="shopify",
    title="Shopify",
    docs="https://shopify.dev/docs/api/usage/response-codes",
    words=words(
        (RATE, "THROTTLED"),
        (TOO_LARGE, "MAX_COST_EXCEEDED"),
        (FORBIDDEN, "ACCESS_DENIED"),
        (DISABLED, "SHOP_INACTIVE"),
        (CONFLICT, "TAKEN"),
        (INVALID, "BLANK undefinedField argumentLiteralsIncompatible missingRequiredArguments"),
    ),
    # 402: the shop is frozen; 430: the request was refused for security reasons.
    statuses={402: QUOTA, 430: FORBIDDEN},
    headers=("x-shopify-stage", "x-shopid", "x-shopify-shop-api-call-limit", "x-shopify-api-version"),
)

MARKETO = Vendor(
    name="marketo",
    title="Adobe Marketo Engage",
    docs="https://experienceleague.adobe.com/en/docs/marketo-developer/marketo/rest/error-codes",
    words=words(
        (RATE, "606 615"),
        # 1029: the quota of a day for exports, or too many jobs in the queue.
        (QUOTA, "607 1029"),
        (EXPIRED, "601 602"),
        (FORBIDDEN, "603"),
        (TIMEOUT, "604"),
        (UNAVAILABLE, "608 713"),
        (NOT_FOUND, "610 702 1004 1013"),
        (INVALID, "609 612 701 1001 1002 1003 1006"),
        (INTERNAL, "611"),
        (TOO_LARGE, "413 414"),
    ),
    numbers=True,
)

VENDORS = (
    SHOPIFY,
    MARKETO,
    Vendor(
        name="xero",
        title="Xero",
        docs="https://developer.xero.com/documentation/guides/oauth2-limits/limits",
        # The header x-rate-limit-problem.
        words=words((QUOTA, "day"), (RATE, "minute concurrent appminute")),
        headers=("xero-correlation-id", "x-rate-limit-problem"),
    ),
    Vendor(
        name="quickbooks",
        title="QuickBooks",
        docs="https://developer.intuit.com/app/developer/qbo/docs/develop/troubleshooting/error-codes",
        words=words(
            (RATE, "003001 3001"),
            (EXPIRED, "003200 3200"),
            (FORBIDDEN, "003100 3100"),
            (NOT_FOUND, "610"),
            (CONFLICT, "5010 6140 6240"),
            (INVALID, "2010 2020 2050 6000"),
            (INTERNAL, "10000"),
        ),
        headers=("intuit_tid", "qbo-version"),
        numbers=True,
    ),
    Vendor(
        name="ebay",
        title="eBay",
        docs="https://developer.ebay.com/api-docs/static/handling-error-messages.html",
        words=words((RATE, "2001"), (BAD_KEY, "1001 1002"), (FORBIDDEN, "1100"), (INTERNAL, "2003")),
        headers=("x-ebay-c-request-id", "x-ebay-request-id"),
        numbers=True,
    ),
    Vendor(
        name="binance",
        title="Binance",
        docs="https://developers.binance.com/docs/binance-spot-api-docs/errors",
        words=words(
            # Also with status 418, when the address was banned for a time.
            (RATE, "-1003 -1015"),
            (BAD_KEY, "-2014 -2015 -1022"),
            (INVALID, "-1021 -1100 -1102 -1121"),
            (QUOTA, "-2010"),
            (TIMEOUT, "-1007"),
        ),
        headers=("x-mbx-used-weight-1m", "x-mbx-used-weight", "x-mbx-uuid"),
    ),
    Vendor(
        name="yelp",
        title="Yelp",
        docs="https://docs.developer.yelp.com/docs/fusion-rate-limiting",
        words=words(
            (RATE, "TOO_MANY_REQUESTS_PER_SECOND"),
            (QUOTA, "ACCESS_LIMIT_REACHED"),
            (BAD_KEY, "TOKEN_INVALID TOKEN_MISSING"),
            (NOT_FOUND, "BUSINESS_NOT_FOUND LOCATION_NOT_FOUND"),
        ),
    ),
    Vendor(
        name="newsapi",
        title="NewsAPI",
        docs="https://newsapi.org/docs/errors",
        words=words(
            (RATE, "rateLimited"),
            (QUOTA, "apiKeyExhausted"),
            (BAD_KEY, "apiKeyInvalid apiKeyMissing"),
            (DISABLED, "apiKeyDisabled"),
            (INVALID, "parameterInvalid parametersMissing"),
        ),
    ),
)
