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


def prove(support, path="/1", *, key="theirs", size=0):
    """Give an address a proof: the answer to the request of somebody else sent the key back."""
    support.answered("https://a", path, key, {KEY: key}, succeeded=True, size=size)


def proved(support, path="/1", size=0, *, key="mine"):
    return support.proved("https://a", path, key, size)


def test_the_number_of_proofs_is_bounded():
    """The least recently used proof is forgotten, and an address that is used again is kept."""
    support = KeySupport(limit=2)
    prove(support, "/1")
    prove(support, "/2")
    assert proved(support, "/1")
    prove(support, "/3")
    assert [proved(support, path) for path in ("/1", "/2", "/3")] == [True, False, True]


def test_proofs_are_shared_by_copies_and_not_pickled():
    """A deep copy of a client keeps its proofs; one in another process collects its own."""
    support = KeySupport()
    prove(support)
    assert proved(copy.deepcopy(support))
    assert not proved(pickle.loads(pickle.dumps(support)))
    assert pickle.loads(pickle.dumps(shared_proofs())) is shared_proofs()


@pytest.mark.parametrize(
    ("headers", "proof"),
    [
        ({KEY: "theirs"}, True),
        ({KEY: "other"}, False),
        ({"Idempotency-Replayed": "true"}, True),
        ({"Idempotent-Replayed": " TRUE "}, True),
        ({"Idempotency-Replayed": "false"}, False),
        ({}, False),
    ],
)
def test_what_proves_that_keys_are_honoured(headers, proof):
    """The request's key in a successful answer, or a replay marker that is true. A failed answer proves nothing."""
    support = KeySupport()
    support.answered("https://a", "/1", "theirs", headers, succeeded=False)
    assert not proved(support)
    support.answered("https://a", "/1", "theirs", headers, succeeded=True)
    assert proved(support) is proof


def test_an_answer_is_no_proof_for_its_own_request():
    """Only the answer to another request is: what fails after it was sent is repeated without being known."""
    support = KeySupport()
    prove(support, key="mine")
    assert (proved(support), proved(support, key="next")) == (False, True)
    prove(support, key="next")
    assert (proved(support), proved(support, key="next")) == (True, True)


def test_a_proof_is_taken_back():
    """A successful status with a failure inside proves nothing, and leaves the proofs of other answers."""
    support = KeySupport()
    support.take_back("https://a", "/1", "mine")
    prove(support, key="mine")
    support.take_back("https://a", "/1", "mine")
    assert not proved(support, key="next")
    prove(support, key="one")
    prove(support, key="two")
    support.take_back("https://a", "/1", "two")
    assert proved(support)


@pytest.mark.parametrize(
    ("more", "honoured"),
    [
        ({}, False),
        ({"said": True}, True),
        ({"said": False, "by_hand": True}, False),
        ({"by_hand": True}, True),
        ({"said": True, "redirected": True}, False),
        ({"by_hand": True, "redirected": True}, False),
    ],
)
def test_the_users_word(more, honoured):
    """It comes before the proofs, and says nothing about a service that the request was redirected to."""
    assert KeySupport().honours("https://a", "/1", "POST", "mine", **more) is honoured


def test_a_success_without_the_key_ends_a_proof_by_echo():
    """A service that sent the key back before does so always; one that only marks replays does not."""
    for headers, kept in [({KEY: "theirs"}, False), ({"Idempotency-Replayed": "true"}, True)]:
        support = KeySupport()
        support.answered("https://a", "/1", "theirs", headers, succeeded=True)
        support.answered("https://a", "/1", "theirs", {}, succeeded=False)
        assert proved(support)
        support.answered("https://a", "/1", "theirs", {}, succeeded=True)
        assert proved(support) is kept


def test_an_address_that_is_none_is_not_in_the_table():
    """An invalid address is no vendor's."""
    assert not vendor_honours_keys("https://api.stripe.com:port", "POST")


def test_the_size_that_a_proof_holds_for():
    """A megabyte, or the body of the largest request that proved it; larger requests without the key disprove nothing."""
    support, megabyte = KeySupport(), 1024 * 1024
    prove(support)
    assert [proved(support, "/1", size) for size in (0, megabyte, megabyte + 1)] == [True, True, False]
    prove(support, size=megabyte + 7)
    assert [proved(support, "/1", megabyte + each) for each in (7, 8)] == [True, False]
    support.answered("https://a", "/1", "theirs", {}, succeeded=True, size=megabyte + 8)
    assert proved(support)
    prove(support)
    assert proved(support, "/1", megabyte + 7)
    support.answered("https://a", "/1", "theirs", {}, succeeded=True, size=megabyte + 7)
    assert not proved(support)


def test_the_proofs_of_a_process():
    """At most 1024 addresses, until they are forgotten; a proof says nothing about other paths."""
    support = KeySupport()
    for number in range(1024):
        prove(support, f"/{number}")
    assert proved(support, "/0")
    prove(support, "/1024")
    assert proved(support, "/0")
    assert not proved(support, "/1")
    assert not support.proved("https://b", "/0", "mine")
    support.clear()
    assert not proved(support, "/0")
