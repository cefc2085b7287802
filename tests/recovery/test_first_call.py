"""Tests of the first call of an operation, which is made without a flow."""

import asyncio

import pytest

from amends import Upstream
from amends.recovery.call_errors import MisuseError
from amends.recovery.first_call import acall_first, call_first
from amends.recovery.process_quota import process_quota


async def reply():
    return 1


def test_a_success_is_reported_once():
    """To the upstream, or else to the quota of the process."""
    before, upstream = process_quota.successes, Upstream("one")
    assert call_first(None, lambda: 1, (), {}) == (1, None)
    assert process_quota.successes == before + 1
    assert call_first(upstream, lambda: 1, (), {}) == (1, None)
    assert asyncio.run(acall_first(upstream, reply, (), {})) == (1, None)
    assert process_quota.successes == before + 1
    assert upstream.snapshot().calls == 2


def test_a_failure_is_the_first_outcome_of_the_flow():
    """It is not reported yet: the flow does that."""
    upstream = Upstream("one")
    result, first = call_first(upstream, lambda: 1 / 0, (), {})
    assert result is None
    assert isinstance(first.error, ZeroDivisionError)
    assert upstream.snapshot().calls == 0


def test_an_interrupted_call_gives_its_place_back():
    """KeyboardInterrupt and cancellation pass through."""

    def interrupted():
        raise KeyboardInterrupt

    upstream = Upstream("one")
    with pytest.raises(KeyboardInterrupt):
        call_first(upstream, interrupted, (), {})
    assert upstream.snapshot().calls == 1


def test_an_awaitable_of_a_plain_function_is_left_to_the_caller():
    """Without `awaitables` it is refused."""
    result, first = call_first(None, reply, (), {}, awaitables=True)
    assert first.fault is None
    assert asyncio.run(result) == 1
    with pytest.raises(MisuseError):
        call_first(None, reply, (), {})
