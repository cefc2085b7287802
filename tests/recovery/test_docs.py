"""docs/recovery.md: every Python block runs, in order, as one program, without sleeping; its table of repeats is true."""

import re
import ssl
from pathlib import Path
from socket import gaierror

import pytest
import requests

from amends import FaultError, extract, recover
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.foreign import registry
from amends.testing import FakeClock, Script

PAGE = Path(__file__).parents[2] / "docs" / "recovery.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_examples_run(monkeypatch):
    """The examples work as a reader would copy them."""
    monkeypatch.setattr(registry, "_REGISTERED", {})
    assert len(BLOCKS) > 10
    names = {"__name__": "recipes"}
    with FakeClock():
        for number, block in enumerate(BLOCKS, 1):
            exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)


def status(*codes):
    return [extract({"status": code, "headers": {}, "body": ""}, "http") for code in codes]


ROWS = {
    "connection refused, name not resolved, connect or pool time-out": [
        ConnectionRefusedError(),
        gaierror(),
        requests.exceptions.ConnectTimeout(),
    ],
    "429, RATE_LIMITED": [*status(429), RateLimitedError()],
    "a typed error that is transient and names a wait": [ServiceUnavailableError(retry_after=2)],
    "503": status(503),
    "read time-out, connection reset, 408, 502, 504": [
        TimeoutError(),
        requests.exceptions.ReadTimeout(),
        ConnectionResetError(),
        *status(408, 502, 504),
    ],
    "500, an exception of an unknown class, ValueError": [*status(500), RuntimeError(), ValueError()],
    "KeyError, TypeError, AttributeError, AssertionError and their like": [
        KeyError(),
        TypeError("x"),
        AttributeError(),
        AssertionError(),
        NotImplementedError(),
    ],
    "400, 404, 409, 422": status(400, 404, 409, 422),
    "401": status(401),
    "402, 403, 451, an untrusted certificate": [
        *status(402, 403, 451),
        ssl.SSLCertVerificationError(),
    ],
    "KeyboardInterrupt, cancellation, SystemExit": [KeyboardInterrupt(), SystemExit()],
}


def test_the_table_of_repeats_is_true():
    """Each row has the number of calls that `recover` makes if the failure persists."""
    section = PAGE.read_text().partition("## What is repeated by default")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (.+?) \| (\d) \| (\d) \|", section, re.MULTILINE)
    assert {name for name, _, _ in table} == set(ROWS)
    for name, undeclared, read_only in table:
        for failure in ROWS[name]:
            for options, calls in (({}, undeclared), ({"read_only": True}, read_only)):
                script = Script(failure, repeat=True)
                # A clock for each case: the quota of repeats starts again with it.
                with FakeClock(), pytest.raises((FaultError, KeyboardInterrupt, SystemExit)):
                    recover(script, **options)
                assert script.count == int(calls), (name, failure, options)
