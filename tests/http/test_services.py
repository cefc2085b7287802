"""What the vendor tables say about a request of a client."""

import pytest

from amends.http.services import service_of
from amends.vendors import NAMES
from amends.vendors.hosts import HOSTS, vendor_of_host, vendor_of_origin


@pytest.mark.parametrize(
    ("name", "path", "computes"),
    [
        ("openai", "/v1/chat/completions", True),
        ("openai", "/v1/responses", True),
        ("openai", "/v1/responses/resp_1/cancel", False),
        ("openai", "/v1/files", False),
        ("anthropic", "/v1/messages", True),
        ("anthropic", "/v1/messages/batches", False),
        ("google", "/v1beta/models/gemini-2.5-flash:streamGenerateContent", True),
        ("aws", "/model/m/converse-stream", True),
        ("aws", "/2015-03-31/functions/f/invocations", False),
        ("elevenlabs", "/v1/text-to-speech/voice", True),
        ("elasticsearch", "/index/_search", True),
        ("stripe", "/v1/charges", False),
    ],
)
def test_routes_that_only_compute(name, path, computes):
    """Only POST to such a route: a route below or beside it may have an effect."""
    assert service_of(name, "http://localhost", path, "POST").computes is computes
    assert not service_of(name, "http://localhost", path, "DELETE").computes


def test_every_host_names_a_vendor():
    """The names are those of the tables."""
    assert set(HOSTS.values()) <= set(NAMES)


def test_hosts_are_matched_whole():
    """A host that only ends like a vendor's is another one; without TLS nothing is known."""
    assert vendor_of_host("acme.zendesk.com") == "zendesk"
    assert vendor_of_host("bedrock-runtime.us-east-1.amazonaws.com") == "aws"
    assert vendor_of_host("us-central1-aiplatform.googleapis.com") == "google"
    assert vendor_of_host("lambda.us-east-1.amazonaws.com") is None
    assert vendor_of_host("notslack.com") is None
    assert vendor_of_host("") is None
    assert vendor_of_origin("http://api.stripe.com") is None
    assert vendor_of_origin("https://api.stripe.com:8443") is None
    assert vendor_of_origin("https://[") is None


def test_the_header_of_a_key_is_the_vendor_s():
    """PayPal has one of its own."""
    assert (
        service_of(None, "https://api-m.paypal.com", "/v2/checkout/orders", "POST").key_header
        == "PayPal-Request-Id"
    )
    assert service_of(None, "https://api.stripe.com", "/v1/charges", "POST").key_header == "Idempotency-Key"


def test_successful_answers_are_looked_into_by_type_and_size():
    """A download is left alone, and so is a body above the bound."""
    service = service_of("slack", "https://x", "/", "POST")
    refused = b'{"ok": false, "error": "ratelimited"}'
    assert service.failure(200, {"content-type": "application/json"}, refused).code == "RATE_LIMITED"
    assert service.failure(200, {"content-type": "image/png"}, refused) is None
    assert service.failure(200, {}, refused + b" " * 2_000_000) is None
    assert service.failure(204, {}, b"") is None
    assert service_of(None, "https://x", "/", "GET").failure(200, {}, refused) is None
    assert not service_of("kubernetes", "https://x", "/", "GET").inspected
