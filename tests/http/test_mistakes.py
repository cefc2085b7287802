"""Mistakes of the calling program are raised as they are; failures of a service are not mistakes."""

import ssl

import pytest

from amends import FaultError
from amends.errors import RateLimitedError
from amends.http.mistakes import mistakes_pass, raise_if_mistake


class MineError(Exception):
    """An exception of a client's library."""


@pytest.mark.parametrize(
    "error", [ValueError("a"), TypeError("a"), KeyError("a"), AssertionError(), MineError()]
)
def test_a_mistake_passes_through_every_handler_of_exceptions(error):
    """`except Exception` around the attempt does not handle it; the block raises it as it is."""
    with pytest.raises(type(error)) as caught, mistakes_pass():
        try:
            raise_if_mistake(error, (MineError,))
        except Exception:
            pytest.fail("the mistake was handled")
    assert caught.value is error


class RefusedError(FaultError, ValueError):
    """An error of the application that is a ValueError too."""


@pytest.mark.parametrize(
    "error",
    [OSError(), ssl.SSLCertVerificationError(), RateLimitedError(), RefusedError("no", code="CONFLICT")],
)
def test_a_failure_is_no_mistake(error):
    """A failed connection, a bad certificate and typed errors are left to recovery."""
    with mistakes_pass():
        raise_if_mistake(error)
