"""What a handler declares about its request."""

from amends.http.intent import CURRENT, Intent, declare, reached


def test_outside_of_a_request():
    """Without the middleware the functions have no effect."""
    declare(operation="pay")
    reached("paid")
    assert CURRENT.get() is None


def test_a_declaration_is_added_to_the_earlier_ones():
    """A later declaration changes only what it names."""
    intent = Intent("POST /invoices")
    before = CURRENT.set(intent)
    try:
        assert intent.as_dict("r-1", "/status/r-1") == {
            "operation": "POST /invoices",
            "resource_id": "r-1",
            "state_before_cancel": "unknown",
            "recovery": "It may be in progress or done. GET /status/r-1 to learn the outcome.",
        }
        declare(operation="create_invoice", resource_id="inv-17", state="started", customer="c-1")
        reached("paying")
        declare(recovery="Read the invoice.")
    finally:
        CURRENT.reset(before)
    assert intent.as_dict("r-1", "/status/r-1") == {
        "customer": "c-1",
        "operation": "create_invoice",
        "resource_id": "inv-17",
        "state_before_cancel": "paying",
        "recovery": "Read the invoice.",
    }


def test_what_an_intent_says_by_default():
    """An unknown state, the id of the request, and where the outcome can be read; declarations are added up."""
    intent = Intent("POST /a")
    assert intent.as_dict("id", "/operations/id") == {
        "operation": "POST /a",
        "resource_id": "id",
        "state_before_cancel": "unknown",
        "recovery": "It may be in progress or done. GET /operations/id to learn the outcome.",
    }
    token = CURRENT.set(intent)
    try:
        declare(operation="charge", customer=7)
        declare(resource_id="inv", recovery="Ask Ann")
        reached("sent")
        declare(amount=3)
    finally:
        CURRENT.reset(token)
    assert intent.as_dict("id", "/x") == {
        "customer": 7,
        "amount": 3,
        "operation": "charge",
        "resource_id": "inv",
        "state_before_cancel": "sent",
        "recovery": "Ask Ann",
    }
