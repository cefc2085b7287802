"""The HTML of error pages and of errors shown to people."""

from html.parser import HTMLParser

import pytest

from amends import Fault
from amends.http.pages import html_document, page
from amends.http.request_info import RequestInfo
from amends.http.responses import Settings, error_response

VOID = {"meta"}


class Checker(HTMLParser):
    """Checks that every element is closed in order, and collects links and elements."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name == "href"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(html):
    checker = Checker()
    checker.feed(html.decode())
    checker.close()
    assert not checker.open
    return checker


@pytest.mark.parametrize(
    "path", ["", "/rate-limited", "/adcp/", "/adcp/budget-too-low", "/operation-cancelled"]
)
def test_every_page_is_complete_html_with_a_dark_mode(path):
    """Closed elements, a viewport, both colour schemes, and links to the other forms that exist."""
    kind, html = page(path, "html")
    found = parsed(html)
    assert kind.startswith("text/html")
    assert {"head", "body", "main", "h1", "footer"} <= set(found.seen)
    assert b"prefers-color-scheme:dark" in html
    assert b'name=color-scheme content="light dark"' in html
    assert b"name=viewport" in html
    base = path.rpartition("/")[0]
    for link in found.links:
        if link.endswith((".md", ".json")):
            assert page(f"{base}/{link}", "html") is not None


def test_the_index_is_a_table_with_a_head():
    """The first row names the columns."""
    found = parsed(page("", "html")[1])
    assert found.seen.count("th") == 3
    assert found.seen.count("thead") == 1


def test_an_error_shown_to_a_person():
    """Escaped text, a page policy, and no markup from the error."""
    fault = Fault(code="CONFLICT", message="<script>alert(1)</script>", suggestions=("a & b",))
    response = error_response(fault, RequestInfo(accept="text/html", host="localhost"), Settings())
    found = parsed(response.body)
    assert "script" not in found.seen
    assert "a & b" in "".join(found.text)
    assert found.links == ["http://localhost/errors/conflict"]
    assert dict(response.headers)["content-security-policy"].startswith("default-src 'none'")
    assert dict(response.headers)["cache-control"] == "no-store"


def test_what_a_person_reads_of_an_error():
    """The wait in seconds; a message that only repeats the title is left out; markup in a code span is escaped."""
    request = RequestInfo(accept="text/html", host="localhost")
    busy = error_response(Fault(code="SERVICE_UNAVAILABLE", retry_after=30), request, Settings())
    text = "".join(parsed(busy.body).text)
    assert "It may work again in 30 s." in text
    refused = Fault(code="VALIDATION_ERROR", message="The request is not valid", vocabulary="http")
    text = "".join(parsed(error_response(refused, request, Settings()).body).text)
    assert text.count("The request is not valid") == 2  # the title of the page and its heading
    assert "work again" not in text
    found = parsed(html_document("t", "A `<b>` and **transient**, **other**"))
    assert ("b" in found.seen, found.seen.count("code"), found.seen.count("strong")) == (False, 1, 2)


def test_an_empty_table_and_alternatives():
    """A table of one row is its head; alternatives are links at the end."""
    found = parsed(html_document("t", "| a | b |\n|---|---|", alternatives={"More": "x?a=1&b=2"}))
    assert (found.seen.count("th"), found.seen.count("td"), found.links) == (2, 0, ["x?a=1&b=2"])
