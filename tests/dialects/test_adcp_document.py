"""The payload layer of AdCP's detection order (A6)."""

import pytest

from amends.dialects.adcp_document import payload_error


@pytest.mark.parametrize(
    "payload", [None, [], "x", {}, {"payload": []}, {"payload": {"errors": {}}}, {"errors": [""]}]
)
def test_no_payload_layer(payload):
    """A6 step 6: nothing is found, and that is not a failure."""
    assert payload_error(payload, failed=True, finished=False) is None
