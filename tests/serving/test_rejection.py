"""Checks that reject requests: what they return or raise, and the numbers of the JSON-RPC errors."""

import logging

import pytest

from amends import Fault
from amends.core.enums import Executed
from amends.errors import RateLimitedError
from amends.errors.adcp import PermissionDeniedError
from amends.serving.rejection import number_for, rejection_for

LOG = logging.getLogger("amends.test")


async def fault_of(check):
    return await rejection_for(check, "request", log=LOG)


def raising(error):
    def check(request):
        raise error

    return check


async def test_a_check_that_returns_none_lets_the_request_pass():
    """It is called with the request, and may be async."""
    requests = []

    async def check(request):
        requests.append(request)

    assert await fault_of(check) is None
    assert await fault_of(requests.append) is None
    assert requests == ["request", "request"]


@pytest.mark.parametrize(
    "check",
    [
        lambda request: Fault(code="RATE_LIMITED", retry_after=7),
        lambda request: RateLimitedError(retry_after=7),
        raising(RateLimitedError(retry_after=7)),
    ],
)
async def test_the_reason_is_returned_or_raised(check):
    """A Fault, a FaultError, or a raised FaultError; translated to AdCP, and nothing has been executed."""
    fault = await fault_of(check)
    assert (fault.vocabulary, fault.code, fault.retry_after) == ("adcp", "RATE_LIMITED", 7)
    assert fault.executed is Executed.NO


async def test_a_check_that_breaks_rejects_the_request(caplog):
    """The exception is logged under the trace id of the fault, and none of its text is in the fault."""
    fault = await fault_of(raising(OSError("limiter.acme.internal")))
    assert (fault.code, fault.executed) == ("SERVICE_UNAVAILABLE", Executed.NO)
    assert "acme" not in repr(fault)
    (record,) = caplog.records
    assert fault.trace_id in record.getMessage()


async def test_rejections_are_logged_at_info(caplog):
    """One line, without a traceback."""
    caplog.set_level(logging.INFO, "amends.test")
    await fault_of(lambda request: PermissionDeniedError("Not you"))
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (logging.INFO, None)
    assert record.getMessage().startswith("request rejected: PERMISSION_DENIED")


def test_json_rpc_numbers():
    """A3: three codes have a number of their own, which MCP 2026-07-28 moved."""
    assert number_for("RATE_LIMITED") == -32029
    assert number_for("RATE_LIMITED", protocol="2026-07-28") == -31029
    assert number_for("RATE_LIMITED", collapse=True) == -32000
    assert number_for("RATE_LIMITED", collapse=True, protocol="2026-07-28") == -31000
    assert number_for("PERMISSION_DENIED", protocol="2026-07-28") == -31000
    assert number_for("PERMISSION_DENIED", protocol="2025-11-25") == -32000
    assert number_for("PERMISSION_DENIED") == -32000
