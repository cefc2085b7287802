"""The HTML of error pages and of errors shown to people."""

import json
from html.parser import HTMLParser

import msgspec
import pytest
from msgspec.structs import replace

from amends import Fault
from amends.core.explanation import facts, markdown
from amends.core.vocabularies.http import VOCABULARY
from amends.core.vocabulary import row_for
from amends.http.pages import html_document, page, page_url, unknown_page
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


def test_the_forms_of_a_page():
    """By the wanted form or by suffix; the Markdown is that of `amends explain`, the JSON has the facts and an example."""
    row = VOCABULARY.rows["RATE_LIMITED"]
    for path, form in (
        ("/rate-limited", "markdown"),
        ("/rate-limited.md", "html"),
        ("/RATE_LIMITED/", "markdown"),
    ):
        kind, body = page(path, form)
        assert (kind, body.decode()) == ("text/markdown; charset=utf-8", markdown("http", row))
    for path, form in (("/rate-limited", "json"), ("/rate-limited.json", "html"), ("rate_limited", "json")):
        kind, body = page(path, form)
        assert kind == "application/json"
        found = json.loads(body)
        example = found.pop("example")
        assert found == json.loads(msgspec.json.encode(facts("http", row)))
        assert (example["code"], example["detail"]) == ("RATE_LIMITED", row.message)
        assert example["suggestions"] == [row.suggestion]
    kind, body = page("/rate-limited.html", "json")
    assert kind == "text/html; charset=utf-8"
    assert b"<h2>Example</h2>" in body


def test_the_example_of_a_page_names_a_wait_only_for_rate_limits():
    """Five seconds."""
    waits = {
        code: json.loads(page(f"/{code}", "json")[1])["example"].get("retry_after_ms")
        for code in VOCABULARY.rows
    }
    assert waits["RATE_LIMITED"] == 5000
    assert {code for code, wait in waits.items() if wait is not None} == {
        code for code, row in VOCABULARY.rows.items() if row.everyday == "RATE_LIMITED"
    }


@pytest.mark.parametrize(
    "path",
    [
        "/no-such-code",
        "/http/rate-limited",
        "/everyday/rate-limited",
        "/rate-limited/more",
        "/adcp/rate-limitd",
        "/app/x",
    ],
)
def test_paths_without_a_page(path):
    """The codes of HTTP and of the application are directly below the prefix, the everyday ones have no pages."""
    assert page(path, "json") is None


def test_the_index():
    """Every code once, with its recovery class and the link to its page; other vocabularies have one of their own."""
    entries = json.loads(page("", "json")[1])["errors"]
    codes = [entry["code"] for entry in entries]
    assert set(VOCABULARY.rows) <= set(codes)
    assert len(codes) == len(set(codes))
    for entry in entries:
        assert page(f"/{entry['page']}", "json") is not None
    found = next(entry for entry in entries if entry["code"] == "RATE_LIMITED")
    assert found == {
        "code": "RATE_LIMITED",
        "vocabulary": "http",
        "recovery": "transient",
        "message": VOCABULARY.rows["RATE_LIMITED"].message,
        "page": "rate-limited",
    }
    lines = page("", "markdown")[1].decode().split("\n")
    assert lines[:4] == ["# Errors", "", "| code | recovery | what happened |", "|---|---|---|"]
    assert f"| [RATE_LIMITED](rate-limited) | transient | {found['message']} |" in lines
    assert {entry["vocabulary"] for entry in json.loads(page("/adcp", "json")[1])["errors"]} == {"adcp"}


def test_the_links_of_pages():
    """A page links to the index and its other forms, the index to its other forms."""
    assert parsed(page("/rate-limited", "html")[1]).links == ["./", "rate-limited.md", "rate-limited.json"]
    assert parsed(page("/adcp/budget-too-low", "html")[1]).links == [
        "./",
        "budget-too-low.md",
        "budget-too-low.json",
    ]
    assert parsed(page("", "html")[1]).links[-2:] == [".md", ".json"]
    assert parsed(page("/RATE_LIMITED", "html")[1]).links == ["./", "rate-limited.md", "rate-limited.json"]


def test_the_urls_of_pages():
    """A cancellation has the name that the specification gives it; an unknown code or vocabulary has no page."""
    for name, code, url in (
        ("http", "RATE_LIMITED", "/errors/rate-limited"),
        ("everyday", "RATE_LIMITED", "/errors/rate-limited"),
        ("http", "CANCELLED", "/errors/operation-cancelled"),
        ("adcp", "BUDGET_TOO_LOW", "/errors/adcp/budget-too-low"),
        ("adcp", "NO_SUCH_CODE", None),
        ("no such vocabulary", "RATE_LIMITED", None),
    ):
        assert page_url("/errors", name, code) == url


def test_recovery_classes_have_a_colour():
    """In tables and in bold text; other cells have none."""
    html = html_document(
        "t", "# T\n\n| transient | **x** |\n|---|---|\n| terminal | other |\n\n**uncertain** `a`"
    ).decode()
    assert '<th><span class="tag transient">transient</span></th><th><strong>x</strong></th>' in html
    assert '<td><span class="tag terminal">terminal</span></td><td>other</td>' in html
    assert '<p><strong class="uncertain">uncertain</strong> <code>a</code></p>' in html


def test_the_parts_of_a_document():
    """Headings, lists, paragraphs of several lines, links, an example, a link to more."""
    text = "# A <b>\n\nfirst\nsecond\n\n- one\n- [two](three.md)\n\n| a |\n|---|\n| b |\n| c |\n"
    html = html_document("T & t", text, {"a": [1]}, "https://x.example/?a=1&b=2").decode()
    for part in (
        "<title>T &amp; t</title>",
        "<h1>A &lt;b&gt;</h1>",
        "<p>first second</p>",
        '<ul><li>one</li><li><a href="three.md">two</a></li></ul>',
        "<thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr><tr><td>c</td></tr></tbody>",
        "<h2>Example</h2><pre>{\n  &quot;a&quot;: [\n    1\n  ]\n}</pre>",
        '<p><a href="https://x.example/?a=1&amp;b=2">About this error</a></p>',
    ):
        assert part in html
    plain = html_document("t", "x").decode()
    assert not any(part in plain for part in ("<h2>", "<pre>", "<a ", "<footer>", "\n:root"))
    assert plain.startswith("<!doctype html><html lang=en>")
    assert plain.endswith("</html>\n")


def test_only_a_plain_404_is_about_a_page():
    """A field or suggestions of the application's own route stay."""
    row = VOCABULARY.rows["NOT_FOUND"]
    plain = Fault(code="NOT_FOUND", vocabulary="http", message=row.message, status=404)
    assert unknown_page(plain, "/x", "/errors").field == "/path/code"
    for change in ({"field": "/query/a"}, {"suggestions": ("Try b",)}, {"message": "No seat 7"}):
        fault = replace(plain, **change)
        assert unknown_page(fault, "/x", "/errors") is fault


def test_a_long_path_is_compared_by_its_first_64_characters():
    """The rest cannot make the comparison slow, nor hide what resembles a code."""
    row = VOCABULARY.rows["NOT_FOUND"]
    plain = Fault(code="NOT_FOUND", vocabulary="http", message=row.message, status=404)
    code = max(VOCABULARY.rows, key=len).lower().replace("_", "-")
    near = code + "-" * (64 - len(code))
    found = unknown_page(plain, near + "y" * 5000, "/errors").suggestions
    assert found == unknown_page(plain, near, "/errors").suggestions


def test_a_message_that_ends_with_a_full_stop():
    """The first line of a class's docstring is a sentence already."""
    row = row_for("everyday", "CONFLICT")
    text = markdown("everyday", replace(row, message="The seat is taken.", suggestion="Ask Ann!"))
    assert "The seat is taken. When" in text
    assert "Ask Ann! Next" in text
    assert "Too many requests. When" in markdown("everyday", row_for("everyday", "RATE_LIMITED"))
