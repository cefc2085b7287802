"""The URLs in an error that may be followed (A21)."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amends.core.urls import Refusal, UrlVerdict, check_url, judge_url, safe_urls
from tests.each import each

KNOWN = "seller.example"

FOLLOWED = [
    ("https://seller.example/setup/acct_123", "https://seller.example/setup/acct_123"),
    ("https://seller.example", "https://seller.example/"),
    ("https://seller.example/", "https://seller.example/"),
    ("HTTPS://Seller.Example/A", "https://seller.example/A"),
    ("https://app.seller.example/x", "https://app.seller.example/x"),
    ("https://a.b.c.seller.example/", "https://a.b.c.seller.example/"),
    ("https://seller.example:443/x", "https://seller.example/x"),
    ("https://seller.example?x=1", "https://seller.example/?x=1"),
    ("https://seller.example#part", "https://seller.example/#part"),
    ("https://seller.example/@ann?mail=a@b#c@d", "https://seller.example/@ann?mail=a@b#c@d"),
    ("https://seller.example//evil.example/", "https://seller.example//evil.example/"),
    ("https://seller.example/a%20b/%E2%82%AC", "https://seller.example/a%20b/%E2%82%AC"),
    ("https://seller.example/?u=https://evil.example", "https://seller.example/?u=https://evil.example"),
    ("https://xn--pple-43d.seller.example/", "https://xn--pple-43d.seller.example/"),
]

# (the URL, why it is refused). The comments name the host that a browser or an old client would contact.
REFUSED = [
    # not text, not bounded
    (None, Refusal.NOT_TEXT),
    (7, Refusal.NOT_TEXT),
    (b"https://seller.example/", Refusal.NOT_TEXT),
    (["https://seller.example/"], Refusal.NOT_TEXT),
    ("https://seller.example/" + "a" * 2048, Refusal.TOO_LONG),
    # schemes
    ("", Refusal.SCHEME),
    ("http://seller.example/", Refusal.SCHEME),
    ("javascript:alert(1)//seller.example", Refusal.SCHEME),
    ("javascript://seller.example/%0aalert(1)", Refusal.SCHEME),
    ("data:text/html,<b>", Refusal.SCHEME),
    ("file:///etc/passwd", Refusal.SCHEME),
    ("ftp://seller.example/", Refusal.SCHEME),
    ("wss://seller.example/", Refusal.SCHEME),
    ("//seller.example/", Refusal.SCHEME),
    ("/setup", Refusal.SCHEME),
    ("seller.example/setup", Refusal.SCHEME),
    ("https:seller.example", Refusal.SCHEME),  # a browser reads https://seller.example
    ("https:/seller.example", Refusal.SCHEME),
    ("https:\\\\seller.example", Refusal.SCHEME),
    (" https://seller.example/", Refusal.SCHEME),  # browsers trim
    ("\thttps://seller.example/", Refusal.SCHEME),
    ("ht\ntps://seller.example/", Refusal.SCHEME),  # browsers remove line breaks
    ("https\t://seller.example/", Refusal.SCHEME),
    ("https:/\t/seller.example/", Refusal.SCHEME),
    ("\ufeffhttps://seller.example/", Refusal.SCHEME),
    ("httpſ://seller.example/", Refusal.SCHEME),  # U+017F upper-cases to S
    # userinfo
    ("https://user:pass@seller.example/", Refusal.USERINFO),
    ("https://seller.example@evil.example/", Refusal.USERINFO),
    ("https://@seller.example/", Refusal.USERINFO),
    (
        "https://evil.example\\@seller.example/",
        Refusal.USERINFO,
    ),  # browsers: evil.example; RFC 3986: seller.example
    ("https://seller.example\\@evil.example/", Refusal.USERINFO),
    ("https://seller.example#@evil.example/", Refusal.USERINFO),
    ("https://evil.example#@seller.example/", Refusal.USERINFO),
    ("https://evil.example?@seller.example/", Refusal.USERINFO),
    ("https://seller.example?@evil.example", Refusal.USERINFO),
    ("https://seller.example:443@evil.example/", Refusal.USERINFO),
    ("https://seller.example:@evil.example/", Refusal.USERINFO),
    ("https://a@b@seller.example/", Refusal.USERINFO),
    # characters
    ("https://seller.example\\evil", Refusal.CHARACTER),
    ("https://evil.example\\.seller.example/", Refusal.CHARACTER),  # browsers: evil.example
    ("https://seller.example/a b", Refusal.CHARACTER),
    ("https://seller.example/\n", Refusal.CHARACTER),
    ("https://seller.example\n", Refusal.CHARACTER),
    ("https://sel\tler.example/", Refusal.CHARACTER),
    ("https://seller.example/\r\nHost: evil", Refusal.CHARACTER),
    ("https://seller.example/\x00", Refusal.CHARACTER),
    ("https://seller.example/\x7f", Refusal.CHARACTER),
    ("https://seller.example/\u202egpj", Refusal.CHARACTER),
    ("https://seller.example/é", Refusal.CHARACTER),
    ("https://seller.example/<script>", Refusal.CHARACTER),
    ('https://seller.example/"x', Refusal.CHARACTER),
    ("https://seller.example/{id}", Refusal.CHARACTER),
    ("https://seller.example/%zz", Refusal.CHARACTER),
    ("https://seller.example/%4", Refusal.CHARACTER),
    ("https://seller.example/#a#b", Refusal.CHARACTER),
    ("https://sеller.example/", Refusal.CHARACTER),
    ("https://seller。example/", Refusal.CHARACTER),  # browsers read an ideographic stop as a dot
    ("https://ｓeller.example/", Refusal.CHARACTER),  # and wide letters as narrow ones
    ("https://seller.example/".replace("l", "ℓ", 1), Refusal.CHARACTER),
    ("https://[::1]/", Refusal.CHARACTER),
    ("https://[fe80::1%25eth0]/", Refusal.CHARACTER),
    # ports
    ("https://seller.example:8443/", Refusal.PORT),
    ("https://seller.example:80/", Refusal.PORT),
    ("https://seller.example:/", Refusal.PORT),
    ("https://seller.example:0443/", Refusal.PORT),
    ("https://seller.example:443:443/", Refusal.PORT),
    ("https://seller.example:evil.example/", Refusal.PORT),
    # hosts
    ("https://", Refusal.HOST),
    ("https:///seller.example/", Refusal.HOST),  # a browser reads https://seller.example/
    ("https:////seller.example/", Refusal.HOST),
    ("https://?seller.example", Refusal.HOST),
    ("https://#seller.example", Refusal.HOST),
    ("https://:443/", Refusal.HOST),
    ("https://seller.example./", Refusal.HOST),
    ("https://.seller.example/", Refusal.HOST),
    ("https://a..seller.example/", Refusal.HOST),
    ("https://-a.seller.example/", Refusal.HOST),
    ("https://a-.seller.example/", Refusal.HOST),
    ("https://a_b.seller.example/", Refusal.HOST),
    ("https://*.seller.example/", Refusal.HOST),
    ("https://seller.example%40evil.example/", Refusal.HOST),
    ("https://seller.example%2f.evil.example/", Refusal.HOST),
    ("https://seller%2eexample/", Refusal.HOST),  # browsers decode hosts
    ("https://%73eller.example/", Refusal.HOST),
    ("https://seller.example,evil.example/", Refusal.HOST),
    ("https://seller.example;evil.example/", Refusal.HOST),
    ("https://seller.example&evil.example/", Refusal.HOST),
    ("https://127.0.0.1/", Refusal.HOST),
    ("https://127.1/", Refusal.HOST),
    ("https://0x7f.1/", Refusal.HOST),
    ("https://0x7f000001/", Refusal.HOST),
    ("https://2130706433/", Refusal.HOST),
    ("https://017700000001/", Refusal.HOST),
    ("https://seller.example.0x7f/", Refusal.HOST),
    ("https://seller.0x/", Refusal.HOST),
    ("https://" + "a" * 64 + ".seller.example/", Refusal.HOST),
    ("https://" + "a." * 130 + "seller.example/", Refusal.HOST),
    # foreign hosts
    ("https://evil.example/", Refusal.FOREIGN_HOST),
    ("https://sellerr.example/", Refusal.FOREIGN_HOST),
    ("https://evilseller.example/", Refusal.FOREIGN_HOST),
    ("https://seller.example.evil.example/", Refusal.FOREIGN_HOST),
    ("https://evil.example/seller.example", Refusal.FOREIGN_HOST),
    ("https://evil.example/@seller.example", Refusal.FOREIGN_HOST),
    ("https://evil.example?u=seller.example", Refusal.FOREIGN_HOST),
    ("https://xn--sller-kva.example/", Refusal.FOREIGN_HOST),
    ("https://example/", Refusal.FOREIGN_HOST),
    ("https://localhost/", Refusal.FOREIGN_HOST),
]


@pytest.mark.parametrize(("url", "normal"), FOLLOWED)
def test_accepted_urls(url, normal):
    """A21: an https URL without userinfo on the known domain or a subdomain is accepted in normal form."""
    assert judge_url(url, KNOWN) == UrlVerdict(url=normal)
    assert check_url(normal, KNOWN) == normal


@each(("url", "why"), REFUSED)
def test_refused_urls(url, why):
    """A21: other URLs are refused, including those that some clients would read as the known host."""
    assert judge_url(url, KNOWN) == UrlVerdict(refusal=why)
    assert check_url(url, KNOWN) is None


@pytest.mark.parametrize(
    "known",
    [None, "", " ", "seller.example:443", "https://seller.example", "seller.example.", ".example", "127.0.0.1", "[::1]",
     "sеller.example", "a@b", "seller.example/", "*.example", 7],
)  # fmt: skip
def test_no_usable_known_host(known):
    """A21: without a valid known host every URL is refused."""
    assert judge_url("https://seller.example/", known).refusal is Refusal.UNKNOWN_HOST


@pytest.mark.parametrize(
    ("known", "url", "followed"),
    [
        ("SELLER.example", "https://seller.EXAMPLE/x", True),
        ("xn--bcher-kva.example", "https://xn--bcher-kva.example/", True),
        ("xn--bcher-kva.example", "https://bücher.example/", False),
        ("bücher.example", "https://xn--bcher-kva.example/", False),
        ("localhost", "https://localhost/", True),
        ("localhost", "https://x.localhost/", False),
        ("com", "https://seller.com/", False),
        ("app.seller.example", "https://seller.example/", False),
    ],
)
def test_known_hosts(known, url, followed):
    """Hosts are compared in ASCII without case; subdomains of a single label and parent domains are refused."""
    assert (check_url(url, known) is not None) is followed


def test_only_checked_members_of_details_are_returned():
    """A21: `safe_urls` returns the known URL members that pass the check, and no others."""
    details = {
        "setup_url": "https://seller.example/setup",
        "policy_url": "http://seller.example/policy",
        "authorization_url": "https://evil.example/",
        "other_url": "https://seller.example/other",
    }
    assert safe_urls(details, KNOWN) == {"setup_url": "https://seller.example/setup"}
    assert safe_urls({"policy_url": "https://seller.example/p"}, KNOWN) == {
        "policy_url": "https://seller.example/p"
    }
    assert safe_urls(details, None) == {}
    assert safe_urls(None, KNOWN) == {}
    assert safe_urls(["setup_url"], KNOWN) == {}


def whatwg_host(url: str) -> str:
    """Return the host a browser would contact, by the WHATWG rules for whitespace, slashes and the last "@"."""
    url = url.strip("".join(map(chr, range(0x21)))).translate({9: None, 10: None, 13: None})
    scheme, _, rest = url.partition(":")
    assert scheme.lower() == "https"
    rest = rest.replace("\\", "/").lstrip("/")
    for sign in "/?#":
        rest = rest.partition(sign)[0]
    return rest.rpartition("@")[2].partition(":")[0].lower()


def lax_host(url: str) -> str:
    """Return the host a simple client would contact: the text between the last "@" before a slash and the next sign."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0].lower().rstrip("?#")


PIECES = st.sampled_from(
    ["https://", "https:", "HTTPS://", "http://", "//", "/", "\\", "@", ":", ":443", ":80", "?", "#", ".", "%40", "%2e", " ",
     "\t", "\n", "seller.example", "evil.example", "app.", "seller", "example", "user", "。", "é", "[", "]", "0x7f.1", "a"]
)  # fmt: skip


@given(st.one_of(st.lists(PIECES, max_size=9).map("".join), st.text(max_size=40).map("https://".__add__)))
@example("https://seller.example?a/@evil.example")
def test_all_clients_contact_the_checked_host(url):
    """For any accepted URL, urllib, a browser and a simple client contact the known host."""
    followed = check_url(url, KNOWN)
    for form in filter(None, [followed, followed and url]):
        parts = urlsplit(form)
        hosts = {parts.hostname, whatwg_host(form)} | ({lax_host(form)} if form is followed else set())
        assert all(host == KNOWN or host.endswith("." + KNOWN) for host in hosts), hosts
        assert (parts.scheme, parts.username, parts.port in {None, 443}) == ("https", None, True)
    if followed:
        assert check_url(followed, KNOWN) == followed


@given(st.text(), st.one_of(st.none(), st.text()))
def test_never_raises(url, known):
    """For any text, the verdict has either a URL or a refusal."""
    verdict = judge_url(url, known)
    assert (verdict.url is None) is not (verdict.refusal is None)
