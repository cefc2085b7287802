"""Which headers are credentials, and which addresses belong to the same party."""

import pytest

from amends.http.redirects import is_credential, same_party


@pytest.mark.parametrize(
    ("first", "then", "same"),
    [
        ("https://a.example", "https://a.example:443/x", True),
        ("http://a.example", "https://a.example/x", True),
        ("https://a.example", "http://a.example", False),
        ("http://a.example:8080", "https://a.example", False),
        ("https://a.example", "https://a.example:8443", False),
        ("https://a.example", "https://b.a.example", False),
        ("https://a.example", "not an address", False),
        ("https://a.example", "https://a.example:port", False),
    ],
)
def test_who_is_the_same_party(first, then, same):
    """The same origin, or the same host with TLS on the default ports."""
    assert same_party(first, then) is same


CREDENTIALS = (
    "Authorization Proxy-Authorization Authentication X-CSRF-Token Ocp-Apim-Subscription-Key X_API_KEY AccessKey apikey "
    "X-Session-Id X-TrackerToken X-Goog-IAP-JWT-Assertion X-Amzn-Oidc-Data X-Auth-User DD-Application-Key X-Signature "
    "X-Secret-Key X-Password Idempotency-Key"
)


def test_names_of_credentials():
    """A header is judged by the words in its name."""
    assert [name for name in CREDENTIALS.split() if not is_credential(name)] == []
    others = "Accept Content-Type X-Keyboard Cookie ETag User-Agent Origin traceparent X-Request-Id X-Author"
    assert [name for name in others.split() if is_credential(name)] == []
