"""Credentials as a provider gives them, and as others see them."""

import msgspec
import pytest

from amends.arcp import Credential
from amends.arcp.runtime.credentials.provider import without_secret
from amends.arcp.runtime.entries import JobEntry


def test_a_credential_does_not_show_its_value():
    credential = Credential(id="c", value="s3cr3t", endpoint="https://host")
    assert "s3cr3t" not in repr(credential) + str(credential)


def entry(body, label="status"):
    return JobEntry(
        "event", 1, 1, "n", 0.0, msgspec.Raw(msgspec.json.encode({"kind": label, "body": body})), label
    )


def test_a_replaced_value_is_removed_for_others():
    found = without_secret(entry({"phase": "credential_rotated", "id": "c", "value": "s3cr3t"}))
    assert msgspec.json.decode(found.payload)["body"] == {"phase": "credential_rotated", "id": "c"}


@pytest.mark.parametrize(
    ("body", "label"),
    [({"phase": "running", "value": 1}, "status"), ({"phase": "credential_rotated"}, "log"), ({}, "status")],
)
def test_other_events_are_unchanged(body, label):
    given = entry(body, label)
    assert without_secret(given) is given
