"""The text of `amends decode` at a terminal."""

import os
import sys

import pytest

from tests.terminal import at_a_terminal

QUOTA = (
    '{"error": {"message": "m", "type": "insufficient_quota", "param": null, "code": "insufficient_quota"}}'
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("HTTP/1.1 429 Too Many Requests\nRetry-After: 3\n", "http · header"),
        (
            f"HTTP/1.1 429 Too Many Requests\nx-request-id: q\n\n{QUOTA}",
            "http · body, in the format of openai",
        ),
        ("ConnectionRefusedError: [Errno 111] Connection refused\n", "exception"),
    ],
)
def test_the_place_of_the_failure_and_the_service(text, place, tmp_path):
    """The transport and the place, as far as they are known, and the service whose format it is."""
    (tmp_path / "pasted").write_text(text)
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    code, seen = at_a_terminal(
        [sys.executable, "-m", "amends", "decode", str(tmp_path / "pasted")], env=environment
    )
    assert code == 0
    assert f"  found in {place}" in seen.splitlines()
