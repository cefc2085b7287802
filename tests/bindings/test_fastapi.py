"""FastAPI: validation errors by field, and problem details in the OpenAPI document."""

import random
import string
import subprocess
import sys
from enum import Enum
from typing import Annotated

import httpx2
import jsonschema
import pytest
from fastapi import Depends, FastAPI, Header, HTTPException, Query
from fastapi.middleware.cors import CORSMiddleware
from pydantic import BaseModel, Field

from amends import FaultError, decode
from amends.bindings.fastapi import install, problems
from amends.errors import NotFoundError, RateLimitedError
from amends.schemas import schema
from tests.http.serving import serve


class OutOfStock(FaultError):
    """It is sold out"""

    code = "FASTAPI_TEST_OUT_OF_STOCK"
    recovery = "correctable"
    status = 409


class Currency(Enum):
    EUR = "EUR"
    USD = "USD"


class Line(BaseModel):
    sku: str = Field(min_length=2, max_length=20)
    count: int = Field(ge=1, le=100)


class Order(BaseModel):
    amount: float = Field(gt=0)
    currency: Currency
    lines: list[Line] = Field(min_length=1)


def signed_in(x_token: Annotated[str | None, Header()] = None):
    if x_token == "expired":
        raise HTTPException(
            401, "The token has expired", headers={"WWW-Authenticate": 'Bearer error="invalid_token"'}
        )


def application():
    app = FastAPI(title="shop")
    app.add_middleware(CORSMiddleware, allow_origins=["*"])
    orders = {"1": {"id": "1", "amount": 5.0}}

    @app.get("/orders/{id}", responses=problems(NotFoundError, RateLimitedError))
    def order(id: str) -> dict[str, str | float]:
        if id not in orders:
            raise NotFoundError("There is no such order", suggestions=["List the orders"])
        return orders[id]

    @app.get("/orders")
    def listed(limit: Annotated[int, Query(ge=1, le=50)] = 10) -> list[dict[str, str | float]]:
        return list(orders.values())[:limit]

    @app.post("/orders", status_code=201, responses=problems(OutOfStock), dependencies=[Depends(signed_in)])
    def place(order: Order) -> dict[str, str]:
        if order.amount > 1000:
            raise OutOfStock
        return {"id": "2"}

    @app.get("/broken")
    def broken() -> dict[str, str]:
        raise RuntimeError("unexpected")

    install(app)
    return app


async def send(method, path, app=None, **options):
    transport = httpx2.ASGITransport(app=app or application())
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as session:
        return await session.request(method, path, **options)


async def test_every_field_is_named_with_what_to_do():
    """P6, P7: one nested problem per field with a JSON Pointer, the rule, and the value if it is short."""
    wrong = {"amount": -77123, "currency": "h4ck", "lines": [{"sku": "ab", "count": 1}, {"sku": "x"}]}
    response = await send("POST", "/orders", json=wrong)
    body = response.json()
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert (body["code"], body["recovery"], body["is_retriable"]) == (
        "VALIDATION_ERROR",
        "correctable",
        False,
    )
    assert [(part["field"], part["suggestions"]) for part in body["errors"]] == [
        ("/body/amount", ["Send a value greater than 0"]),
        ("/body/currency", ["Use one of 'EUR' or 'USD'"]),
        ("/body/lines/1/sku", ["Send at least 2 characters"]),
        ("/body/lines/1/count", ["Supply this field"]),
    ]
    assert body["suggestions"][0] == "Send a value greater than 0 at /body/amount"
    assert all({"title", "status", "detail", "is_retriable"} <= part.keys() for part in body["errors"])
    # What the status says is said once, and read back for each part.
    assert not any({"code", "recovery", "actor", "executed"} & part.keys() for part in body["errors"])
    facts = {(part.code, part.recovery, part.executed) for part in decode(body, "problem").errors}
    assert facts == {("VALIDATION_ERROR", "correctable", "no")}
    assert [part.get("details") for part in body["errors"]] == [
        {"rejected": -77123},
        {"rejected": "h4ck"},
        {"rejected": "x"},
        None,
    ]
    jsonschema.validate(body, schema("problem"))


@pytest.mark.parametrize(
    ("path", "options", "field", "step"),
    [
        ("/orders?limit=zzz", {}, "/query/limit", "Send a whole number"),
        (
            "/orders",
            {"content": b"{", "headers": {"content-type": "application/json"}},
            "/body",
            "Send valid JSON of the expected form",
        ),
        ("/orders", {"content": b""}, "/body", "Supply this field"),
    ],
)
async def test_other_places_of_a_request(path, options, field, step):
    """Mistakes in the query, and a body that is empty or not JSON."""
    method = "POST" if options else "GET"
    (part,) = (await send(method, path, **options)).json()["errors"]
    assert (part["field"], part["suggestions"]) == (field, [step])


async def test_http_exceptions_keep_their_headers():
    """A dependency's 401 keeps its challenge, and CORS headers are added."""
    response = await send(
        "POST", "/orders", json={}, headers={"x-token": "expired", "origin": "https://ui.example"}
    )
    assert response.json()["detail"] == "The token has expired"
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert response.headers["access-control-allow-origin"] == "*"


async def test_structured_details_and_waits_of_http_exceptions():
    """`HTTPException(detail={…})` becomes `details`; a Retry-After is also in the body (P3)."""
    app = FastAPI()

    @app.get("/{kind}")
    async def root(kind: str):
        raise HTTPException(503, {"since": "noon"} if kind == "a" else ["x"], headers={"Retry-After": "7"})

    install(app)
    body = (await send("GET", "/a", app=app)).json()
    assert (body["details"], body["retry_after_ms"]) == ({"since": "noon"}, 7000)
    assert (await send("GET", "/b", app=app)).json()["details"] == {"detail": ["x"]}


async def test_a_handler_of_the_application_is_kept():
    """`install` replaces only FastAPI's default handlers."""
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse

    app = FastAPI()

    @app.exception_handler(RequestValidationError)
    async def mine(request, exc):
        return JSONResponse({"mine": True}, 400)

    @app.get("/")
    def root(n: int) -> int:
        return n

    install(app)
    assert (await send("GET", "/", app=app)).json() == {"mine": True}


def test_the_openapi_document_describes_problems():
    """It contains the schema once, each operation's errors with examples, and a default response."""
    app = application()
    document = app.openapi()
    assert document is app.openapi()
    schemas = document["components"]["schemas"]
    assert schemas["Problem"]["properties"]["errors"]["items"] == {"$ref": "#/components/schemas/Problem"}
    assert "HTTPValidationError" not in schemas
    got = document["paths"]["/orders/{id}"]["get"]["responses"]
    assert set(got) == {"200", "404", "422", "429", "default"}
    example = got["404"]["content"]["application/problem+json"]["examples"]["NOT_FOUND"]["value"]
    jsonschema.validate(example, schema("problem"))
    placed = document["paths"]["/orders"]["post"]["responses"]
    assert "FASTAPI_TEST_OUT_OF_STOCK" in placed["409"]["content"]["application/problem+json"]["examples"]


def test_schemathesis_finds_nothing_undocumented():
    """P1, P8: every response to hundreds of generated requests matches the OpenAPI document."""
    checks = "status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method"
    with serve(application()) as url:
        done = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-m", "schemathesis.cli", "run", f"{url}/openapi.json"),
                *("--checks", checks, "--max-examples", "8", "--seed", "1", "--generation-database", "none"),
                *("--phases", "examples,coverage,fuzzing", "--no-color"),
            ],
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout


@pytest.mark.parametrize("count", [400, pytest.param(5000, marks=pytest.mark.soak)])
async def test_poisoned_exceptions_leak_nothing(count):
    """No response contains a secret from the text, arguments, notes or causes of an unhandled exception."""
    rng = random.Random(7)
    pools = (
        ValueError,
        KeyError,
        OSError,
        RuntimeError,
        UnicodeError,
        ZeroDivisionError,
        Exception,
        LookupError,
    )
    current = {}
    app = FastAPI()

    @app.get("/")
    def root() -> None:
        raise current["exc"]

    install(app)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as session:
        for _ in range(count):
            secret = "".join(rng.choices(string.ascii_letters + string.digits, k=24))
            kind = type(f"Odd{secret[:5]}", (rng.choice(pools[:4] + pools[5:]),), {})
            exc = kind(
                rng.choice((f"password={secret}", f"/srv/{secret}/x.py", f"https://u:{secret}@db", secret))
            )
            exc.add_note(secret)
            exc.__cause__ = ValueError(secret)
            current["exc"] = exc
            form = rng.choice(("*/*", "text/html", "text/markdown", "application/json"))
            response = await session.get("/", headers={"accept": form})
            assert response.status_code == 500
            assert secret not in response.text
            assert secret not in str(response.headers)
            assert kind.__name__ not in response.text
