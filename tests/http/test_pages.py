"""The HTML of error pages and of errors shown to people."""

import json
from html.parser import HTMLParser

import pytest

from amends import Fault
from amends.core.vocabularies.http import VOCABULARY
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


def unknown(path, message=None, **request):
    """The problem for a request of a page that does not exist."""
    row = VOCABULARY.rows["NOT_FOUND"]
    fault = Fault(code="NOT_FOUND", vocabulary="http", message=message or row.message, status=404)
    asked = RequestInfo(path=path, host="localhost", **request)
    return json.loads(error_response(fault, asked, Settings()).body)


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("/errors/rate-limit", "Use /errors/rate-limited"),
        ("/errors/RATE_LIMITD", "Use /errors/rate-limited"),
        ("/errors/adcp/budget-to-low", "Use /errors/adcp/budget-too-low"),
        ("/errors/amends-audit", "See /errors/ for all codes"),
        ("/errors/" + "x" * 9000, "See /errors/ for all codes"),
        ("/errors/a/b/c", "See /errors/ for all codes"),
    ],
)
def test_a_code_that_does_not_exist(path, first):
    """The problem names the parameter, suggests codes that resemble it, and does not repeat it."""
    problem = unknown(path)
    assert (problem["status"], problem["code"], problem["field"]) == (404, "NOT_FOUND", "/path/code")
    assert problem["suggestions"][0] == first
    assert problem["suggestions"][-1] == "See /errors/ for all codes"
    assert page(first.split()[1].removeprefix("/errors"), "json") is not None


def test_a_page_below_the_root_of_a_mounted_application():
    """The suggested paths are those that the caller uses."""
    assert unknown("/errors/conflic", root="/shop")["suggestions"][0] == "Use /shop/errors/conflict"


def test_other_failures_below_the_prefix_stay():
    """A route of the application at this path, another path or method, and a server without pages."""
    assert "field" not in unknown("/errors/7", "There is no report 7")
    assert "field" not in unknown("/error")
    assert "field" not in unknown("/errorsome/7")
    assert "field" not in unknown("/errors/7", method="POST")
    fault = Fault(code="NOT_FOUND", vocabulary="http", status=404)
    found = error_response(fault, RequestInfo(path="/errors/7", host="localhost"), Settings(pages=None))
    assert "field" not in json.loads(found.body)
