"""Docker and OCI registries."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, INVALID, NOT_FOUND, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="docker-registry",
    title="Docker and OCI registries",
    docs="https://distribution.github.io/distribution/spec/api/#errors",
    words=words(
        (RATE, "TOOMANYREQUESTS"),
        (BAD_KEY, "UNAUTHORIZED"),
        (FORBIDDEN, "DENIED"),
        (NOT_FOUND, "MANIFEST_UNKNOWN NAME_UNKNOWN BLOB_UNKNOWN MANIFEST_BLOB_UNKNOWN BLOB_UPLOAD_UNKNOWN"),
        (
            INVALID,
            "BLOB_UPLOAD_INVALID DIGEST_INVALID SIZE_INVALID MANIFEST_INVALID NAME_INVALID TAG_INVALID",
        ),
        (INVALID, "UNSUPPORTED MANIFEST_UNVERIFIED"),
    ),
    headers=("docker-distribution-api-version", "docker-ratelimit-source"),
)
