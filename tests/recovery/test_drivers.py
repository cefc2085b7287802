"""`recover` and `arecover`: a direct first call, and what makes them use a flow from the start."""

import asyncio

import pytest

from amends import FaultError, Operation, Policy, Upstream, arecover, recover
from amends.errors import ServiceUnavailableError
from amends.recovery import current_operation, time_left
from amends.recovery.call_errors import MisuseError
from amends.recovery.process_quota import process_quota
from amends.testing import Script


def both(call, *args, **options):
    """Return what both drivers return; the async one gets an async function."""

    async def acall(*args, **kwargs):
        return call(*args, **kwargs)

    return recover(call, *args, **options), asyncio.run(arecover(acall, *args, **options))


def test_arguments_and_result(clock):
    """The call gets its arguments, and its result is returned."""
    assert both(lambda a, *, b: (a, b), 1, b=2) == ((1, 2), (1, 2))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": None},
        {"policy": Policy(attempts=3)},
        {"operation": Operation(name="a")},
        {"timeout": 9},
    ],
)
def test_successes_are_counted(clock, options):
    """Every success without an upstream adds to the quota of the process, with and without a flow."""
    before = process_quota.successes
    both(lambda: 1, **options)
    assert process_quota.successes == before + 2


def test_an_upstream_hears_of_every_outcome(clock):
    """A success and an interrupt of a direct call are reported."""
    upstream, outcomes = Upstream("a"), []
    upstream.succeeded = lambda now, sent, **_: outcomes.append("succeeded")
    upstream.abandoned = lambda now, sent: outcomes.append("abandoned")
    both(lambda: 1, upstream=upstream)
    assert outcomes == ["succeeded"] * 2

    def interrupt():
        raise asyncio.CancelledError

    async def ainterrupt():
        interrupt()

    with pytest.raises(asyncio.CancelledError):
        recover(interrupt, upstream=upstream)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(arecover(ainterrupt, upstream=upstream))
    assert outcomes[2:] == ["abandoned"] * 2


@pytest.mark.parametrize("options", [{"operation": Operation(key="k")}, {"operation": Operation(keyed=True)}])
def test_a_key_needs_a_scope(clock, options):
    """A call with a key runs in its scope from the first attempt."""
    for found in both(current_operation, **options):
        assert found.key


def test_options_that_need_a_flow(clock):
    """History, examine, timeout and deadline hold for the first call too."""
    history = []
    both(lambda: 1, history=history)
    assert [attempt.number for attempt in history] == [1, 1]
    failed = Script(*[{"status": 503, "headers": {}}, {"status": 200, "headers": {}}] * 2)
    assert [each["status"] for each in both(failed, examine=True, read_only=True)] == [200, 200]
    assert both(time_left, policy=Policy(deadline=5.0)) == (5.0, 5.0)
    assert recover(time_left, timeout=3) == 3.0


def test_a_failure_is_repeated_with_the_options(clock):
    """After a direct first call that failed, all options hold."""
    seen = []
    script = Script(ServiceUnavailableError(), "done", ServiceUnavailableError(), "done")
    assert both(script, read_only=True, on_event=lambda event: seen.append(event.kind)) == ("done", "done")
    assert seen == ["retry", "recovered"] * 2
    with pytest.raises(KeyError):
        recover(Script(KeyError("a")), raises="original")
    with pytest.raises(FaultError):
        recover(Script(ServiceUnavailableError(), ServiceUnavailableError()), policy=Policy(attempts=2))


def test_wrong_options_are_found_at_the_first_failure(clock):
    """Options are checked after a direct call has failed, and before a flow."""
    with pytest.raises(TypeError, match="Policy"):
        recover(lambda: 1, policy=3)
    with pytest.raises(TypeError, match="Upstream"):
        recover(lambda: 1, upstream="a")
    with pytest.raises(TypeError, match="Operation"):
        recover(lambda: 1, operation="a")


def test_plain_functions_are_refused_by_arecover():
    """A plain function raises MisuseError; a function that returns an awaitable is fine."""
    with pytest.raises(MisuseError):
        asyncio.run(arecover(lambda: 1))

    async def later():
        async def work():
            return 1

        return await arecover(lambda: asyncio.ensure_future(work()))

    assert asyncio.run(later()) == 1
