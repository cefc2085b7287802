"""Reading error bodies that frameworks write."""

import pytest

from amends.http.bodies import fault_from_body, may_rewrite


@pytest.mark.parametrize(
    ("status", "kind", "body", "detail"),
    [
        (403, "text/plain", b"Ask Ann", "Ask Ann"),
        (403, "", b"", "This caller may not do that"),
        (403, "text/plain", b"Forbidden", "This caller may not do that"),
        (403, "text/plain", b"two\nlines", "This caller may not do that"),
        (500, "text/plain", b"Traceback of everything", "Something went wrong inside the service"),
        (403, "text/html", b"<h1>Ask Ann</h1>", "This caller may not do that"),
        (403, "application/json", b"", "This caller may not do that"),
        (403, "application/json", b"null", "This caller may not do that"),
        (403, "application/json", b'{"detail":"Ask Ann"}', "Ask Ann"),
        (403, "application/json", b'{"detail":{"mine":1}}', None),
        (403, "application/json", b'{"detail":"x","more":1}', None),
        (403, "application/json", b"[1]", None),
        (403, "application/json", b'["detail"]', None),
        (403, "application/json", b'"detail"', None),
        (403, "application/json", b'{"status_code":403}', None),
        (403, "application/json", b'{"mine":1}', None),
        (403, "application/json", b'{"detail":[]}', None),
        (403, "application/json", b'{"detail":[{"loc":["a"],"type":1}]}', None),
        (403, "application/json", b"{", None),
        (700, "text/plain", b"odd", "odd"),
        (403, "application/json", b'{"status_code":403,"detail":"Ask Ann"}', "Ask Ann"),
        (
            500,
            "application/json",
            b'{"status_code":500,"detail":"x"}',
            "Something went wrong inside the service",
        ),
        (403, "text/plain", b'{"status_code":403,"detail":"Ask Ann"}', "Ask Ann"),
        (403, "text/plain", b'{"mine":1}', '{"mine":1}'),
        (403, "application/json", b'{"status_code":404,"detail":"Ask Ann"}', None),
        (403, "application/json", b'{"status_code":403,"detail":"x","extra":{"mine":1}}', None),
        (403, "application/json", b'{"status_code":403,"detail":"x","extra":[{"mine":1}]}', None),
        (403, "application/json", b'{"status_code":403,"detail":{"mine":1}}', None),
    ],
)
def test_unstructured_bodies(status, kind, body, detail):
    """A framework's own error body is read; an application's own body is not."""
    found = fault_from_body(status, kind, body)
    assert (None if found is None else found.message) == detail


def test_validation_errors_of_a_plain_fastapi():
    """FastAPI's own 422 body is read field by field, for an application without `install`."""
    body = b'{"detail":[{"loc":["body","n"],"type":"int_parsing","msg":"secret","input":"secret"}]}'
    found = fault_from_body(422, "application/json", body)
    assert (found.field, found.errors[0].suggestions) == ("/body/n", ("Send a whole number",))


def test_validation_errors_of_litestar():
    """Litestar's `extra` is read field by field."""
    body = (
        b'{"status_code":400,"detail":"Validation failed for GET /","extra":'
        b'[{"message":"Expected `int`, got `str`","key":"page.size","source":"query"},{"message":"m"}]}'
    )
    found = fault_from_body(400, "application/json", body)
    assert (found.status, [part.field for part in found.errors]) == (400, ["/query/page/size", None])
    assert found.errors[0].suggestions == ("Expected `int`, got `str`",)


def test_which_responses_are_looked_into():
    """Failed ones without a structure that can be read here."""
    assert may_rewrite(399, "text/plain", None) is False
    assert may_rewrite(400, "text/plain", None) is True
    assert may_rewrite(500, "application/json", None, "gzip") is False
    assert may_rewrite(500, "application/json", None, "Identity") is True
    assert may_rewrite(500, "text/html", "text/html") is False
    assert may_rewrite(500, "image/png", None) is False


@pytest.mark.parametrize(
    ("status", "kind", "accept", "encoding", "expected"),
    [
        (399, "text/plain", None, None, False),
        (400, "text/plain", None, None, True),
        (400, "", None, None, True),
        (400, "Application/JSON; charset=utf-8", None, None, True),
        (400, "image/png", None, None, False),
        (400, "text/html", None, None, True),
        (400, "text/html", "text/html", None, False),
        (400, "text/html", None, "gzip", True),
        (400, "text/plain", None, "gzip", False),
        (400, "text/plain", None, "Identity", True),
    ],
)
def test_what_may_be_rewritten(status, kind, accept, encoding, expected):
    """Errors of the forms that frameworks write by themselves; a page only if the client did not ask for one."""
    assert may_rewrite(status, kind, accept, encoding) is expected
