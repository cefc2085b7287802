"""What of a path is recorded: names of routes and numbers, nobody's address and nothing that opens a door."""

import pytest

from amends import Fault
from amends.core.redaction.url_paths import plain_path
from amends.recorder.clean import event_of

HIDDEN = [
    ("/users/jane.doe@example.com/orders", "/users/*/orders"),
    ("/users/jane%40example.com", "/users/*"),
    ("/reset/9f8a7c6b5d4e3f2a1b0c9d8e7f6a5b4c/confirm", "/reset/*/confirm"),
    ("/password-reset/eyJhbGciOi.abc", "/password-reset/*"),
    ("/reset-password/AbC123xyZ9", "/reset-password/*"),
    ("/auth/otp/123456", "/auth/otp/*"),
    ("/invite/k3J9xQ2", "/invite/*"),
    ("/services/T024BE7LD/B024BE7LD/abcdEFGHijklMNOPq1", "/services/*/*/*"),
    ("/hooks/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "/hooks/*/*/*"),
    ("/api/users.info/U024BE7LD", "/api/users.info/*"),
    ("/files/dGhpcyBpcyBhIHRlc3Qgb2Yga2V5cw1", "/files/*"),
]
KEPT = [
    "/orders/17",
    "/v1/chat/completions",
    "/openai/deployments/gpt-4o-mini-2024-07-18/chat/completions",
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
    "/model/anthropic.claude-3-5-sonnet-20241022-v2:0/converse",
    "/verify/start",
    "/services/orders",
    "/api/v2/users/current",
    "//",
    "",
]


@pytest.mark.parametrize(("path", "plain"), HIDDEN)
def test_hidden(path, plain):
    """Emails, ids of Slack, and tokens of resets, invitations and hooks, in the name and the address of an event."""
    assert plain_path(path) == plain
    event = event_of(
        0,
        "gateway",
        "gave-up",
        Fault(code="TIMEOUT"),
        {"name": f"GET {path}", "url": f"https://x.example{path}"},
    )
    assert (event.name, event.url.replace("[redacted]", "*")) == (f"GET {plain}", f"https://x.example{plain}")


@pytest.mark.parametrize("path", KEPT)
def test_kept(path):
    """Routes, versions, names of models and plain numbers."""
    assert plain_path(path) == path
