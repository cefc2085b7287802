"""The response for a fault: redaction, members, headers, log line."""

import json
from http import HTTPStatus
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from amends import Fault, decode
from amends.core import recording
from amends.core.crosswalk import source_row
from amends.core.fault import Origin
from amends.http.application_errors import fault_from_status
from amends.http.openapi import problems
from amends.http.request_info import RequestInfo
from amends.http.responses import Settings, _json, complete, error_response, retry_after
from amends.serving.effect_unknown import EffectUnknownError
from tests.each import each

LEAK = "postgres://admin:hunter2@10.0.0.5/prod"

NOT_TEXT = {
    *("vocabulary", "recovery", "actor", "executed", "origin", "fatal", "raised", "in_doubt"),
    *("retry_after", "max_retries", "status", "attempt", "max_attempts"),
}

NOT_REDACTED = {"intent"}
"""Leaves as it is (design, section 6)."""

TEXT_FIELDS = [name for name in Fault.__struct_fields__ if name not in NOT_TEXT | NOT_REDACTED]

VALUES = {
    "suggestions": (LEAK,),
    "details": {"cause": [LEAK]},
    "extensions": {"cause": {"text": LEAK}},
    "errors": (Fault(code="CONFLICT", message=LEAK, suggestions=(LEAK,), details={"cause": LEAK}),),
}

REQUEST = RequestInfo(path="/orders", host="shop.example", traceparent=None)


@each("form", [None, "text/html", "text/markdown"])
@each("field", TEXT_FIELDS)
def test_every_text_of_a_fault_is_redacted(field, form):
    """A19: whichever field of a Fault a secret is in, no response contains it. A new field is tested too."""
    fault = Fault(**{"code": "CONFLICT", "message": "m", field: VALUES.get(field, LEAK)})
    for origin in (None, Origin("adcp")):
        response = error_response(replace(fault, origin=origin), RequestInfo(accept=form), Settings())
        assert b"hunter2" not in response.body
        assert response.status == (500 if field == "code" else 409)


def test_a_received_problem_is_passed_on_unchanged():
    """Design 6: a problem document of an upstream is not redacted."""
    fault = Fault(code="CONFLICT", message=LEAK, origin=Origin("problem"))
    assert b"hunter2" in error_response(fault, RequestInfo(), Settings()).body


def test_any_message_and_path_give_a_valid_document():
    """Quotes, line breaks and characters outside ASCII are escaped in the document."""
    for message in ("plain", 'quotes " and \\ and ü', "two\nlines"):
        for path, instance in (("/a", "/a"), ("/ä", "/%C3%A4"), ("/a b", "/a%20b"), ("/x\ny", "/x%0Ay")):
            response = error_response(
                Fault(code="CONFLICT", message=message), RequestInfo(path=path), Settings()
            )
            document = json.loads(response.body)
            assert (document["detail"], document["instance"]) == (message, instance)


def test_subclasses_of_plain_types():
    """A status may be an HTTPStatus, a text a subclass of str, and details may contain any mapping."""

    class Text(str):
        __slots__ = ()

    fault = fault_from_status(HTTPStatus.CONFLICT, Text("It changed"))
    response = error_response(fault, RequestInfo(path=Text("/a")), Settings())
    assert (response.status, json.loads(response.body)["detail"]) == (409, "It changed")
    assert set(problems(HTTPStatus.NOT_FOUND)) == {404}
    details = {"limits": MappingProxyType({"count": Text("5")}), "status": HTTPStatus.GONE}
    for intent in (None, {"odd": object()}):
        fault = Fault(code="CONFLICT", message=Text("It changed"), details=details, intent=intent)
        document = json.loads(error_response(fault, RequestInfo(), Settings()).body)
        assert document["detail"] == "It changed"
        assert document["details"] == {"limits": {"count": "5"}, "status": 410}
        assert document.get("intent") == (intent and {"odd": "[redacted]"})


def test_a_path_cannot_add_a_log_line(caplog):
    """Line breaks in a path are quoted in the log."""
    caplog.set_level("INFO", "amends.http")
    error_response(fault_from_status(404), RequestInfo(path="/x\nGET / answered 200"), Settings())
    assert "\n" not in caplog.records[-1].getMessage()


def test_an_authors_doc_uri_and_type_are_kept():
    """A code without a page gets no `doc_uri`, and the type `about:blank` (P1)."""
    own = Fault(
        code="NOT_FOUND", vocabulary="http", doc_uri="https://docs.shop.example/lost", type="urn:shop:lost"
    )
    sent = complete(own, REQUEST, Settings(), "id")
    assert (sent.doc_uri, sent.type, sent.instance) == (own.doc_uri, own.type, "/orders")
    unregistered = Fault(code="NEVER_REGISTERED", recovery="terminal", status=418)
    unknown = complete(unregistered, REQUEST, Settings(), "id")
    assert (unknown.doc_uri, unknown.type) == (None, "about:blank")


def test_a_received_fault_gets_our_trace_id():
    """P5: a received fault gets our trace id and no suggestions of ours."""
    received = Fault(
        code="RATE_LIMITED", message="slow", vocabulary="task", trace_id="theirs", origin=Origin("task")
    )
    sent = complete(received, REQUEST, Settings(), "ours")
    assert (sent.trace_id, sent.suggestions) == ("ours", ())


@pytest.mark.parametrize(
    ("given", "sent"), [("Accept", "Accept"), ("", "Accept"), ("Origin", "Accept, Origin")]
)
def test_vary(given, sent):
    """Our `Vary` and the framework's are merged without duplicates."""
    response = error_response(fault_from_status(404), REQUEST, Settings(), headers=[("Vary", given)])
    assert dict(response.headers)["vary"] == sent


@pytest.mark.parametrize(
    ("code", "milliseconds"),
    [("SERVICE_UNAVAILABLE", 5000), ("RATE_LIMITED", 5000), ("TIMEOUT", 1000), ("INTERNAL_ERROR", 1000)],
)
def test_every_retriable_answer_has_a_wait(code, milliseconds):
    """P3, P9: the wait is in body and header, from the table if the author named none; `executed` is beside it (M3)."""
    fault = Fault(code=code, errors=(Fault(code=code),))
    response = error_response(fault, RequestInfo(), Settings())
    document = json.loads(response.body)
    assert (document["is_retriable"], document["retry_after_ms"]) == (True, milliseconds)
    assert document["errors"][0]["retry_after_ms"] == milliseconds
    assert document["executed"] == ("no" if code == "RATE_LIMITED" else "maybe")
    assert dict(response.headers)["retry-after"] == str(milliseconds // 1000)
    assert decode(response.body, "problem").executed == document["executed"]
    assert document["suggestions"]


@pytest.mark.parametrize("code", ["CONFLICT", "PERMISSION_DENIED", "EFFECT_UNKNOWN"])
def test_other_answers_have_none(code):
    """An answer that is not retriable names no wait."""
    fault = EffectUnknownError().fault if code == "EFFECT_UNKNOWN" else Fault(code=code)
    response = error_response(fault, RequestInfo(), Settings())
    assert "retry_after_ms" not in json.loads(response.body)
    assert "retry-after" not in dict(response.headers)


def test_a_huge_wait_is_a_number_that_clients_can_read():
    """A wait that an upstream sent is kept in the body; the header stays within 32 bits."""
    fault = Fault(code="RATE_LIMITED", retry_after=1e300)
    response = error_response(fault, RequestInfo(), Settings())
    assert dict(response.headers)["retry-after"] == str(2**31 - 1)
    json.loads(response.body)
    assert (
        error_response(Fault(code="RATE_LIMITED", retry_after=1.7e308), RequestInfo(), Settings()).status
        == 429
    )


@pytest.mark.parametrize(
    ("settings", "base"),
    [
        (Settings(), None),
        (Settings(hosts=["shop.example"]), "http://shop.example:8000"),
        (Settings(hosts=["SHOP.example:8000"]), "http://shop.example:8000"),
        (Settings(hosts=["shop.example:9000", "other.example"]), None),
        (Settings(hosts=["*.example"]), "http://shop.example:8000"),
        (Settings(hosts=[]), None),
        (Settings(base_url="https://api.example/v1/"), "https://api.example/v1"),
        (Settings(base_url="https://api.example", pages=None), None),
    ],
)
def test_urls_are_absolute_or_absent(settings, base):
    """`type` and `doc_uri` come from `base_url` or a listed host; otherwise `about:blank` and none."""
    request = RequestInfo(path="/x", host="shop.example:8000")
    document = json.loads(error_response(Fault(code="CONFLICT"), request, settings).body)
    assert document.get("doc_uri") == (base and f"{base}/errors/conflict")
    assert document["type"] == (f"{base}/errors/conflict" if base else "about:blank")


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "api.localhost", "10.1.2.3:80"]
)
def test_loopback_names_and_the_bound_address_are_trusted(host):
    """Without `hosts`, what reaches only this machine or is its own address may be in a URL."""
    request = RequestInfo(path="/x", host=host, server="10.1.2.3")
    document = json.loads(error_response(Fault(code="CONFLICT"), request, Settings()).body)
    assert document["type"] == f"http://{host}/errors/conflict"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", "a b", "localhost/x", ""]
)
def test_other_hosts_are_not(host):
    """A `Host` header that the client made up is not in the document."""
    request = RequestInfo(path="/x", host=host, server="10.1.2.3")
    assert b"evil" not in error_response(Fault(code="CONFLICT"), request, Settings()).body


def test_a_relative_page_of_the_author_is_completed():
    """An author's relative `doc_uri` gets the base, or is left out; an author's `type` stays as written."""
    fault = Fault(code="CONFLICT", doc_uri="/docs/conflicts", type="conflicts")
    known = json.loads(error_response(fault, RequestInfo(host="localhost"), Settings()).body)
    assert (known["doc_uri"], known["type"]) == ("http://localhost/docs/conflicts", "conflicts")
    unknown = json.loads(error_response(fault, RequestInfo(host="evil.example"), Settings()).body)
    assert ("doc_uri" in unknown, unknown["type"]) == (False, "conflicts")


def test_error_answers_are_not_cached():
    """`Cache-Control: no-store`, whatever the framework wanted."""
    response = error_response(
        fault_from_status(404), REQUEST, Settings(), headers=[("Cache-Control", "max-age=9")]
    )
    assert [value for name, value in response.headers if name.lower() == "cache-control"] == ["no-store"]


def test_header_values_stay_on_one_line():
    """Values that an author computed cannot add headers, in any framework."""
    response = error_response(
        fault_from_status(404), REQUEST, Settings(), headers=[("X-A", "1\r\nX-B: 2"), ("X-C", "ä☃")]
    )
    assert ("X-A", "1  X-B: 2") in response.headers
    assert ("X-C", "ä?") in response.headers


def test_retry_after_is_rounded_up():
    """P3: a client that obeys the header does not come too early, and not a second later than asked."""
    waits = {1: "1", 1000: "1", 1001: "2", 3_000_000: "3000"}
    assert {wait: retry_after({"retry_after_ms": wait}) for wait in waits} == waits
    assert retry_after({}) is None


def test_only_a_401_asks_for_credentials():
    """Once: a challenge of the application is kept."""
    for code, given, challenges in (
        ("UNAUTHENTICATED", [], ["Bearer"]),
        ("UNAUTHENTICATED", [("WWW-Authenticate", "Basic")], ["Basic"]),
        ("PERMISSION_DENIED", [], []),
    ):
        response = error_response(Fault(code=code), RequestInfo(), Settings(), headers=given)
        found = [value for name, value in response.headers if name.lower() == "www-authenticate"]
        assert found == challenges


MISSING = Fault(code="NOT_FOUND", vocabulary="http", status=404)


def test_the_error_pages_replace_a_404_below_their_path():
    """The index, a page of a code and its headers; the path without a slash is redirected below the root."""
    index = error_response(
        MISSING, RequestInfo(method="GET", path="/errors/", accept="text/html"), Settings()
    )
    assert index.status == 200
    headers = dict(index.headers)
    assert headers["content-type"].startswith("text/html")
    assert headers["content-length"] == str(len(index.body))
    assert headers["vary"] == "Accept"
    assert "default-src 'none'" in headers["content-security-policy"]
    moved = error_response(MISSING, RequestInfo(method="GET", path="/errors", root="/api"), Settings())
    assert moved == (307, [("location", "/api/errors/"), ("content-length", "0")], b"")


@each(
    ("method", "path", "settings", "serve"),
    [
        ("POST", "/errors/", Settings(), True),
        ("GET", "/orders/", Settings(), True),
        ("GET", "/errorsome", Settings(), True),
        ("GET", "/errors/no/such/page", Settings(), True),
        ("GET", "/errors/", Settings(pages=None), True),
        ("GET", "/errors/", Settings(), False),
    ],
)
def test_other_404s_are_problems(method, path, settings, serve):
    """Only GET and HEAD below the path of the pages give a page."""
    request = RequestInfo(method=method, path=path)
    assert error_response(MISSING, request, settings, serve_pages=serve).status == 404


def test_only_a_404_is_replaced_by_a_page():
    """Another failure on the path of the pages keeps its status."""
    fault = Fault(code="CONFLICT", vocabulary="http", status=409)
    assert error_response(fault, RequestInfo(method="GET", path="/errors/"), Settings()).status == 409


@each(
    ("wait", "shown"),
    [(3600.0, "It may work again in 3600 s."), (0.2, "It may work again in 1 s.")],
)
def test_the_wait_in_a_summary(wait, shown):
    """People read whole seconds, at least one."""
    fault = Fault(code="RATE_LIMITED", retry_after=wait)
    assert shown in error_response(fault, RequestInfo(accept="text/markdown"), Settings()).body.decode()


@each(("code", "level"), [("INTERNAL_ERROR", "ERROR"), ("CONFLICT", "INFO")])
def _log_level(caplog, code, level):
    caplog.clear()
    error_response(Fault(code=code), REQUEST, Settings())
    assert [record.levelname for record in caplog.records] == [level]


def test_the_level_of_the_log_line(caplog):
    """The server's failures are errors in the log, the caller's are not."""
    caplog.set_level("INFO", logger="amends.http")
    _log_level(caplog=caplog)


def headers_of(fault, accept=None, **options):
    response = error_response(fault, RequestInfo(accept=accept, host="localhost"), Settings(), **options)
    return dict(response.headers), response.body


def test_the_headers_of_each_form():
    """The content type that the client accepts, the length of the body, and for HTML the policy of the page."""
    for accept, kind, policy in (
        (None, "application/problem+json", False),
        ("application/json", "application/problem+json", False),
        ("text/html", "text/html; charset=utf-8", True),
        ("text/markdown", "text/markdown; charset=utf-8", False),
    ):
        headers, body = headers_of(Fault(code="CONFLICT", message="ü"), accept)
        assert headers["content-type"] == kind
        assert headers["content-length"] == str(len(body))
        assert ("content-security-policy" in headers) is policy
        assert "retry-after" not in headers


def test_headers_that_describe_the_replaced_body_are_not_copied():
    """Others are, once."""
    given = [
        ("ETag", '"a"'),
        ("Content-Type", "text/plain"),
        ("Content-Encoding", "gzip"),
        ("Allow", "GET"),
        ("X-A", "b"),
    ]
    response = error_response(Fault(code="CONFLICT"), REQUEST, Settings(), headers=given)
    names = [name.lower() for name, _ in response.headers]
    assert sorted(names) == sorted({*names})
    assert {"allow", "x-a"} <= set(names)
    assert not {"etag", "content-encoding"} & set(names)


def test_the_summary_for_people():
    """Status, title, message on one line, steps, code and trace; the page of the code in Markdown."""
    fault = Fault(
        code="CONFLICT",
        message="It\n changed",
        suggestions=("Read  it\nagain",),
        trace_id="abc",
        retry_after=3.0,
    )
    body = headers_of(fault, "text/markdown")[1].decode()
    row = source_row(fault)
    assert body == (
        f"# 409 {row.message}\n\nIt changed\n\n- Read it again\n\n"
        "Code `CONFLICT`, trace `abc`. See http://localhost/errors/conflict\n"
    )
    html = headers_of(fault, "text/html")[1].decode()
    assert "See http" not in html
    assert '<a href="http://localhost/errors/conflict">About this error</a>' in html
    elsewhere = error_response(fault, RequestInfo(accept="text/markdown", host="evil.example"), Settings())
    assert elsewhere.body.decode().endswith("trace `abc`.\n")


def test_members_that_cannot_be_written_as_json_are_left_out():
    """The other members stay; a number that no JSON reader accepts and a value of another library are such members."""

    class Odd:
        pass

    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in (Odd(), 2**70000, deep, {1j: 2}):
        document = {"code": "CONFLICT", "odd": value, "kept": MappingProxyType({"a": 1}), "none": None}
        assert json.loads(_json(document)) == {"code": "CONFLICT", "kept": {"a": 1}}
    assert json.loads(_json({"a": 1, "none": None})) == {"a": 1, "none": None}
    assert _json({"odd": Odd()}) == b"{}"


def test_what_is_logged_of_an_answer(caplog):
    """Method, path, status, code and trace id, also as fields; an unexpected exception with its traceback."""
    caplog.set_level("INFO", logger="amends.http")
    cause = KeyError("x")
    request = RequestInfo(method="PUT", root="/shop", path="/orders 7")
    for code, status, level in (("CONFLICT", 409, "INFO"), ("INTERNAL_ERROR", 500, "ERROR")):
        error_response(Fault(code=code, trace_id="abc"), request, Settings(), cause=cause)
        record = caplog.records[-1]
        assert record.getMessage() == f"PUT /shop/orders%207 answered {status} {code} trace_id=abc"
        assert (record.trace_id, record.code, record.status) == ("abc", code, status)
        assert (record.levelname, record.exc_info[1]) == (level, cause)
    caplog.clear()
    caplog.set_level("ERROR", logger="amends.http")
    error_response(Fault(code="CONFLICT"), request, Settings())
    assert caplog.records == []


def test_an_answer_is_recorded():
    """With the request it belongs to and what was sent."""
    notes = []

    def sink(*note):
        notes.append(note)

    recording.add_sink(sink)
    try:
        error_response(
            Fault(code="CONFLICT", trace_id="abc"), RequestInfo(path="/a b", root="/r"), Settings()
        )
    finally:
        recording.remove_sink(sink)
    ((where, outcome, fault, facts),) = notes
    assert (where, outcome, fault.code) == ("http server", "sent", "CONFLICT")
    assert facts == {"name": "GET /r/a%20b", "trace_id": "abc", "status": 409}
