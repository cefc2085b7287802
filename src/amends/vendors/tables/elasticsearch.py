"""Elasticsearch and OpenSearch."""

from __future__ import annotations

from amends.vendors.kinds import (
    CANCELLED,
    CONFLICT,
    FORBIDDEN,
    IN_PROGRESS,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    RATE,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
