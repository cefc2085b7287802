"""Cloudflare, Kubernetes, Elasticsearch, Databricks, Snowflake, ClickHouse, Heroku, DigitalOcean, Vercel, Okta, Supabase."""

from __future__ import annotations

from msgspec.structs import replace

from amends.vendors.kinds import (
    ABORTED,
    BAD_KEY,
    CANCELLED,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    IN_PROGRESS,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    PERMANENT,
    QUOTA,
    RATE,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDORS"]

CLOUDFLARE = Vendor(
    name="cloudflare",
    title="Cloudflare",
    docs="https://developers.cloudflare.com/support/troubleshooting/http-status-codes/",
    words=words(
        # Pages and documents of the edge.
        (RATE, "1015"),
        (QUOTA, "1027"),
        (PERMANENT, "1000 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 1012 1013 1014 1020 1023 1034"),
        (UNAVAILABLE, "1016 1018 1033 1200"),
        (INTERNAL, "1101 1102"),
        # The API and Workers AI.
        (replace(RATE, wait=300.0), "971 10429"),
        (OVERLOADED, "3040"),
        (QUOTA, "3036"),
        (TIMEOUT, "3007"),
        (NOT_FOUND, "7003 5007 1001"),
        (BAD_KEY, "10000 9109 6003 9106"),
        (INTERNAL, "10013"),
    ),
    headers=("cf-auditlog-id", "api-version-cloudflare"),
    numbers=True,
)

KUBERNETES = Vendor(
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

ELASTICSEARCH = Vendor(
    name="elasticsearch",
    title="Elasticsearch and OpenSearch",
    docs="https://www.elastic.co/docs/reference/elasticsearch/rest-apis/common-options",
    words=words(
        (RATE, "es_rejected_execution_exception rejected_execution_exception"),
        (OVERLOADED, "circuit_breaking_exception"),
        (UNAVAILABLE, "no_shard_available_action_exception master_not_discovered_exception"),
        (UNAVAILABLE, "unavailable_shards_exception node_disconnected_exception"),
        (TIMEOUT, "process_cluster_event_timeout_exception receive_timeout_transport_exception"),
        (CONFLICT, "version_conflict_engine_exception resource_already_exists_exception"),
        (NOT_FOUND, "index_not_found_exception document_missing_exception resource_not_found_exception"),
        (
            INVALID,
            "parsing_exception mapper_parsing_exception document_parsing_exception illegal_argument_exception",
        ),
        (INVALID, "x_content_parse_exception query_shard_exception strict_dynamic_mapping_exception"),
        (TOO_LARGE, "too_many_buckets_exception too_many_clauses"),
        (IN_PROGRESS, "snapshot_in_progress_exception concurrent_snapshot_execution_exception"),
        (CANCELLED, "task_cancelled_exception"),
        ({429: OVERLOADED, 403: FORBIDDEN, 503: UNAVAILABLE, 0: FORBIDDEN}, "cluster_block_exception"),
    ),
    headers=("x-elastic-product", "x-found-handling-cluster", "x-cloud-request-id"),
    computes=("/_search", "/_count", "/_msearch"),
)

DATABRICKS = Vendor(
    name="databricks",
    title="Databricks",
    docs="https://docs.databricks.com/api/workspace/introduction",
    words=words(
        (RATE, "REQUEST_LIMIT_EXCEEDED"),
        (UNAVAILABLE, "TEMPORARILY_UNAVAILABLE WORKSPACE_TEMPORARILY_UNAVAILABLE"),
        (QUOTA, "QUOTA_EXCEEDED"),
        (NOT_FOUND, "RESOURCE_DOES_NOT_EXIST ENDPOINT_NOT_FOUND"),
        (INVALID, "INVALID_PARAMETER_VALUE MALFORMED_REQUEST"),
        (CONFLICT, "RESOURCE_CONFLICT RESOURCE_ALREADY_EXISTS INVALID_STATE"),
        (DISABLED, "FEATURE_DISABLED CUSTOMER_UNAUTHORIZED"),
    ),
    headers=("x-databricks-", "x-request-id-databricks"),
)

SNOWFLAKE = Vendor(
    name="snowflake",
    title="Snowflake",
    docs="https://docs.snowflake.com/en/developer-guide/sql-api/handling-responses",
    words=words(
        (EXPIRED, "390114 390112 390111 390318 390303"),
        (BAD_KEY, "390144 390100 390101 394400"),
        (DISABLED, "390102 390913"),
        (NOT_FOUND, "002003 390201"),
        (INVALID, "001003 000904 002043"),
        (TIMEOUT, "000630"),
        (CANCELLED, "000604"),
        (IN_PROGRESS, "000625"),
        (FORBIDDEN, "003001"),
    ),
    numbers=True,
)

CLICKHOUSE = Vendor(
    name="clickhouse",
    title="ClickHouse",
    docs="https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp",
    words=words(
        (RATE, "202 203"),
        (TIMEOUT, "159 209"),
        (TOO_LARGE, "241 396"),
        (FORBIDDEN, "497 164"),
        (BAD_KEY, "516 193 194"),
        (NOT_FOUND, "60 81"),
        (INVALID, "62 47 46"),
        (QUOTA, "201"),
    ),
    headers=("x-clickhouse-exception-code", "x-clickhouse-summary"),
    numbers=True,
)

PLATFORMS = (
    Vendor(
        name="heroku",
        title="Heroku",
        docs="https://devcenter.heroku.com/articles/platform-api-reference#errors",
        words=words(
            (RATE, "rate_limit"),
            (DISABLED, "suspended"),
            (QUOTA, "delinquency verification_required"),
            (UNAVAILABLE, "maintenance"),
            (INVALID, "invalid_params"),
        ),
        headers=("ratelimit-multiplier",),
    ),
    Vendor(
        name="digitalocean",
        title="DigitalOcean",
        docs="https://docs.digitalocean.com/reference/api/intro/#errors",
        words=words(
            (RATE, "too_many_requests"),
            (BAD_KEY, "Unauthorized unauthorized"),
            (INVALID, "unprocessable_entity"),
        ),
    ),
    Vendor(
        name="vercel",
        title="Vercel",
        docs="https://vercel.com/docs/rest-api/reference/errors",
        words=words(
            (RATE, "rate_limited"),
            (QUOTA, "payment_required api_limit_exceeded_upgrade"),
            (DISABLED, "account_blocked team_suspended"),
        ),
        headers=("x-vercel-id", "x-vercel-error"),
    ),
    Vendor(
        name="okta",
        title="Okta",
        docs="https://developer.okta.com/docs/reference/error-codes/",
        words=words(
            (RATE, "E0000047"),
            (IN_PROGRESS, "E0000254"),
            (BAD_KEY, "E0000011 E0000004 E0000005"),
            (FORBIDDEN, "E0000006"),
            (NOT_FOUND, "E0000007 E0000008 E0000022"),
            (INVALID, "E0000001 E0000003 E0000021"),
            (INTERNAL, "E0000009"),
            (UNAVAILABLE, "E0000010"),
            (QUOTA, "E0000098"),
        ),
        headers=("x-okta-request-id",),
    ),
    Vendor(
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
    ),
)

VENDORS = (CLOUDFLARE, KUBERNETES, ELASTICSEARCH, DATABRICKS, SNOWFLAKE, CLICKHOUSE, *PLATFORMS)
