"""Problem details in an OpenAPI document."""

from amends import FaultError
from amends.core.vocabulary import row_for
from amends.errors import ConflictError
from amends.http.openapi import _with_references, add_problems, problems


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


def test_references_of_the_schema_to_itself():
    """They point to its place in the document; other references and values stay."""
    found = _with_references({"$ref": "#", "a": [{"$ref": "#"}, {"$ref": "#/x"}], "b": "#", "c": 7})
    here = "#/components/schemas/Problem"
    assert found == {"$ref": here, "a": [{"$ref": here}, {"$ref": "#/x"}], "b": "#", "c": 7}


def test_the_responses_of_operations():
    """Each operation gets a default one; FastAPI's 422 is replaced, and its schemas go if none refers to them."""
    invalid = {
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/HTTPValidationError"}}}
    }
    own = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Mine"}}}}
    document = {
        "components": {"schemas": {"HTTPValidationError": {}, "ValidationError": {}, "Mine": {}}},
        "paths": {
            "/a": {
                "get": {"responses": {"422": invalid}},
                "post": {"responses": {"422": own, "default": {"description": "mine"}}},
                "parameters": [{"name": "a"}],
            },
            "/b": {"put": {}},
        },
    }
    assert add_problems(document) is document
    get, post = (document["paths"]["/a"][method]["responses"] for method in ("get", "post"))
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    assert get["422"] == {
        "description": "The request is not valid",
        "content": {"application/problem+json": problem},
    }
    assert get["default"]["description"] == "Any other error"
    assert (post["422"], post["default"]) == (own, {"description": "mine"})
    assert set(document["paths"]["/b"]["put"]["responses"]) == {"default"}
    assert set(document["components"]["schemas"]) == {"Mine", "Problem"}
    before = str(document)
    add_problems(document)
    assert str(document) == before


def test_the_examples_of_a_response():
    """Each has the problem document of its code, and says what to do."""
    response = problems(ConflictError, 409)[409]
    ((code, example),) = response["content"]["application/problem+json"]["examples"].items()
    assert (code, example["value"]["status"], example["value"]["code"]) == ("CONFLICT", 409, "CONFLICT")
    assert example["summary"] == row_for("everyday", "CONFLICT").suggestion
    assert response["description"] == row_for("everyday", "CONFLICT").message
