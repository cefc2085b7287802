"""Which services are known to honour keys: the vendor table, and the proofs that a transport keeps."""

import copy
import pickle

import pytest

from amends.http.key_support import KEY, KeySupport, shared_proofs, vendor_honours_keys


def test_the_vendor_table():
    """Stripe honours keys of POST requests over TLS; nothing else is known without proof."""
    assert vendor_honours_keys("https://api.stripe.com", "POST")
    assert vendor_honours_keys("https://api.stripe.com:443", "POST")
    assert not vendor_honours_keys("https://api.stripe.com", "PATCH")
    for origin in (
        "http://api.stripe.com",
        "https://api.stripe.com:8443",
        "https://api.stripe.com.evil.example",
    ):
        assert not vendor_honours_keys(origin, "POST")


def test_the_number_of_proofs_is_bounded():
    """The least recently used proof is forgotten, and an address that is used again is kept."""
    support = KeySupport(limit=2)
    support.prove("https://a", "/1")
    support.prove("https://a", "/2")
    assert support.proved("https://a", "/1")
    support.prove("https://a", "/3")
    assert [support.proved("https://a", path) for path in ("/1", "/2", "/3")] == [True, False, True]


def test_proofs_are_shared_by_copies_and_not_pickled():
    """A deep copy of a client keeps its proofs; one in another process collects its own."""
    support = KeySupport()
    support.prove("https://a", "/1")
    assert copy.deepcopy(support).proved("https://a", "/1")
    assert not pickle.loads(pickle.dumps(support)).proved("https://a", "/1")
    assert pickle.loads(pickle.dumps(shared_proofs())) is shared_proofs()


@pytest.mark.parametrize(
    ("headers", "proof"),
    [
        ({KEY: "mine"}, True),
        ({KEY: "other"}, False),
        ({"Idempotency-Replayed": "true"}, True),
        ({"Idempotent-Replayed": " TRUE "}, True),
        ({"Idempotency-Replayed": "false"}, False),
        ({}, False),
    ],
)
def test_what_proves_that_keys_are_honoured(headers, proof):
    """Our own key in the answer, or a replay marker that is true."""
    support = KeySupport()
    support.answered("https://a", "/1", "mine", headers, succeeded=False)
    assert support.proved("https://a", "/1") is proof


def test_a_success_without_the_key_ends_a_proof_by_echo():
    """A service that sent the key back before does so always; one that only marks replays does not."""
    for headers, kept in [({KEY: "mine"}, False), ({"Idempotency-Replayed": "true"}, True)]:
        support = KeySupport()
        support.answered("https://a", "/1", "mine", headers, succeeded=True)
        support.answered("https://a", "/1", "mine", {}, succeeded=False)
        assert support.proved("https://a", "/1")
        support.answered("https://a", "/1", "mine", {}, succeeded=True)
        assert support.proved("https://a", "/1") is kept


def test_an_address_that_is_none_is_not_in_the_table():
    """An invalid address is no vendor's."""
    assert not vendor_honours_keys("https://api.stripe.com:port", "POST")


def test_the_size_that_a_proof_holds_for():
    """A megabyte, or the body of the largest request that proved it; larger requests without the key disprove nothing."""
    support, megabyte = KeySupport(), 1024 * 1024
    support.prove("https://a", "/1")
    assert [support.proved("https://a", "/1", size) for size in (0, megabyte, megabyte + 1)] == [
        True,
        True,
        False,
    ]
    support.answered("https://a", "/1", "mine", {KEY: "mine"}, succeeded=True, size=megabyte + 7)
    assert [support.proved("https://a", "/1", megabyte + each) for each in (7, 8)] == [True, False]
    support.answered("https://a", "/1", "mine", {}, succeeded=True, size=megabyte + 8)
    assert support.proved("https://a", "/1")
    support.prove("https://a", "/1", echoes=True)
    assert support.proved("https://a", "/1", megabyte + 7)
    support.answered("https://a", "/1", "mine", {}, succeeded=True, size=megabyte + 7)
    assert not support.proved("https://a", "/1")


def test_the_proofs_of_a_process():
    """At most 1024 addresses, until they are forgotten; a proof says nothing about other paths."""
    support = KeySupport()
    for number in range(1024):
        support.prove("https://a", f"/{number}")
    assert support.proved("https://a", "/0")
    support.prove("https://a", "/1024")
    assert support.proved("https://a", "/0")
    assert not support.proved("https://a", "/1")
    assert not support.proved("https://b", "/0")
    support.clear()
    assert not support.proved("https://a", "/0")
