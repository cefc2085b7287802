"""Problem details in an OpenAPI document."""

from amends import FaultError
from amends.errors import ConflictError
from amends.http.openapi import add_problems, problems


def test_openapi_of_statuses_and_of_others():
    """A bare status uses its row; documents without components or paths are accepted."""
    assert problems(503)[503]["description"] == "The service is temporarily unavailable"
    assert "Problem" in add_problems({"openapi": "3.1.0"})["components"]["schemas"]
    kept = {
        "paths": {"/": {"get": {"responses": {"200": {"$ref": "#/x/HTTPValidationError"}}}, "summary": "s"}}
    }
    assert set(add_problems(kept)["paths"]["/"]["get"]["responses"]) == {"200", "default"}


class SeatSold(FaultError):
    """The seat is taken"""

    code = "HTTP_TEST_SEAT_SOLD"
    recovery = "correctable"
    status = 409


def test_errors_of_one_status_share_a_response():
    """OpenAPI has one response per status: its description names both errors, with an example of each."""
    (response,) = problems(ConflictError, SeatSold).values()
    assert ";" in response["description"]
    assert len(response["content"]["application/problem+json"]["examples"]) == 2


def test_the_schema_has_no_keywords_of_a_document():
    """Keys such as `$schema` and `$id` belong to a document and are left out; references point to its place."""
    schema = add_problems({})["components"]["schemas"]["Problem"]
    assert schema["properties"]
    assert not [key for key in schema if key.startswith("$")]


def test_an_error_without_a_status_is_a_500():
    """A code whose row and everyday row name none."""
    from amends.errors import InternalError

    assert set(problems(InternalError)) == {500}
