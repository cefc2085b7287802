"""Reading error bodies that frameworks write."""

import pytest

from amends.http.application_errors import fault_from_validation
from amends.http.bodies import fault_from_body


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
        (403, "application/json", b"{", None),
        (700, "text/plain", b"odd", "odd"),
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
    twice = fault_from_validation([(("a",), "missing"), (("a",), "missing"), (("a",), "int"), ((), "json")])
    assert [part.field for part in twice.errors] == ["/a", None]
