"""Hostile responses: no reader raises or hangs, whatever is at the members that it knows."""

import enum
import json
from collections import OrderedDict
from types import MappingProxyType

import pytest

from amends import extract
from amends.carriers.headers import lower_names
from amends.vendors import NAMES
from amends.vendors.evidence import _MEMBERS
from amends.vendors.successes import read_success


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    LIMIT = "rate_limit_exceeded"


class Sized(dict):
    """A mapping that counts nothing right."""

    def __len__(self):
        return 10**6


class Textual(str):
    __slots__ = ()

    def __hash__(self):
        return 7


def deep(levels: int) -> object:
    value: object = "x"
    for level in range(levels):
        value = {"error": value} if level % 2 else [value]
    return value


VALUES: list[object] = [
    *(None, True, False, 0, -1, 429, 10**400, -(10**400), 1e308, float("nan"), float("inf")),
    *(
        "",
        " ",
        "\ud800",
        "\x00",
        "x" * 100_000,
        "1e400",
        "-5",
        "99999999999999999999",
        "[" * 10_000,
        "{" * 10_000,
    ),
    *([], {}, [[]], [None], [{}], [[[]]], {"": ""}, {"a": [{}]}, {"seconds": "x", "nanos": []}),
    *(b"\xff\xfe", bytearray(b"{"), Colour.RED, Word.LIMIT, Textual("code"), object(), (1, 2), {1, 2}),
    *(Sized(code=1), OrderedDict(code="x"), MappingProxyType({"code": "x"}), {1: 2, None: 3, (): 4}),
    deep(100),
]
MEMBERS = sorted(_MEMBERS)
HEADERS = (
    *("retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining", "ratelimit", "date"),
    *("www-authenticate", "payment-required", "grpc-status", "grpc-status-details-bin", "x-github-sso"),
    *("x-amzn-errortype", "x-business-use-case-usage", "grpc-retry-pushback-ms", "content-type"),
)


@pytest.mark.parametrize("status", [200, 429])
def test_wrong_types_at_every_known_member(status):
    for name in MEMBERS:
        for value in VALUES:
            for body in (
                {name: value},
                {"error": {name: value}},
                {"errors": [{name: value}]},
                [{name: value}],
            ):
                extract({"status": status, "headers": {}, "body": body}, in_success=True)


def test_wrong_types_with_every_vendor():
    for vendor in NAMES:
        for name in ("error", "errors", "code", "details", "message", "Response", "Records", "responses"):
            for value in VALUES:
                for status in (200, 429):
                    response = {"status": status, "headers": {}, "body": {name: value, "success": False}}
                    extract(response, vendor=vendor, in_success=True)


@pytest.mark.parametrize("name", HEADERS)
def test_wrong_values_of_headers(name):
    for value in VALUES:
        for status in (200, 401, 402, 429, 503):
            extract({"status": status, "headers": {name: value}, "body": {}}, in_success=True)
            extract({"status": status, "headers": [(name, value)], "body": ""}, in_success=True)


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"error":' * 10_000,
        '{"message":"' + '{\\"message\\":' * 5_000,
        "data: " + "{" * 50_000,
        "<Error>" * 10_000,
        "<DeleteResult>" + "<Error>" * 10_000,
        "event: error\n" * 20_000,
        "HTTP/1.1 429\n" * 5_000,
        "--b\r\nHTTP/1.1 404 x\r\n{" * 3_000,
    ],
)
@pytest.mark.parametrize("status", [200, 429])
def test_long_and_deep_texts(body, status):
    for kind in ("application/json", "text/event-stream", "multipart/mixed; boundary=b", "application/xml"):
        extract({"status": status, "headers": {"content-type": kind}, "body": body}, in_success=True)
        extract({"status": status, "headers": {"content-type": kind}, "body": body.encode()}, in_success=True)
    extract(body)


def test_a_body_of_50_megabytes():
    large = b'{"error": {"code": "rate_limit_exceeded", "message": "' + b"x" * 50_000_000 + b'"}}'
    assert extract({"status": 429, "headers": {}, "body": large}).code == "RATE_LIMITED"
    extract({"status": 200, "headers": {}, "body": large}, in_success=True)
    extract(large)


def test_many_members_and_items():
    many = {f"member{number}": {"code": number} for number in range(5_000)}
    for body in (many, {"error": many}, {"errors": [many] * 100}, [many] * 50, {"responses": [many] * 100}):
        for status in (200, 429):
            extract({"status": status, "headers": {}, "body": body}, in_success=True)
    headers = {f"x-ratelimit-remaining-{number}": "0" for number in range(2_000)}
    extract({"status": 429, "headers": headers, "body": ""})


def test_values_that_are_no_response():
    for value in (*VALUES, json.dumps({"status": 429})):
        extract(value, via="http", in_success=True)
        extract({"status": value, "headers": value, "body": value}, in_success=True)
        lower_names(value)
        read_success({}, value)
