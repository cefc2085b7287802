"""The options of `recover`: checks, defaults, and the arguments of hooks and fallbacks."""

import inspect
from datetime import timedelta

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream, arecover, recover
from amends.core.policy import DEFAULT
from amends.recovery import arecover_stream, attempts, recover_stream, recovering
from amends.recovery.classify import fault_in_response
from amends.recovery.plan import (
    UNKNOWN,
    Options,
    Plan,
    RecoveryOptions,
    fallback_arguments,
    hook_arguments,
    plan_for,
)

FAULT = Fault(code="TIMEOUT")


def test_defaults():
    """Without options: the default policy, an operation without declarations, no hooks."""
    plan = plan_for()
    assert (plan.policy, plan.operation, plan.fallback, plan.raises) == (DEFAULT, UNKNOWN, (), "fault")
    assert plan.direct
    assert plan_for(policy=None).policy is DEFAULT


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"policy": 3}, "Policy"),
        ({"upstream": "payments"}, "Upstream"),
        ({"operation": "search"}, "Operation"),
        ({"read_only": 1}, "read_only"),
        ({"on": 3}, "on"),
        ({"raises": "all"}, "raises"),
        ({"timeout": 0}, "more than 0"),
        ({"timeout": -1}, "more than 0"),
        ({"timeout": "1"}, "timeout"),
        ({"fallback": 3}, "fallback is a function"),
        ({"fallback": [print, 3]}, "fallback is a function"),
        ({"verify": 3}, "verify is a function"),
        ({"on_fix": 3}, "on_fix is a function"),
        ({"refresh": 3}, "refresh is a function"),
        ({"setup": 3}, "setup is a function"),
        ({"examine": 3}, "examine is a function"),
        ({"on_event": 3}, "on_event is a function"),
    ],
)
def test_wrong_options(options, error):
    """A wrong option raises an error that names it."""
    with pytest.raises((TypeError, ValueError), match=error):
        plan_for(**options)


def test_completed_options():
    """Fallbacks become a tuple and make the policy fall back; `examine=True` reads responses; times are seconds."""
    assert plan_for(fallback=print).fallback == (print,)
    assert plan_for(fallback=iter([print, len])).fallback == (print, len)
    assert plan_for(fallback=print).policy.fallback
    assert plan_for(policy=Policy(attempts=2), fallback=print).policy.attempts == 2
    assert not plan_for(fallback=[]).policy.fallback
    assert plan_for(examine=True).examine is fault_in_response
    assert plan_for(examine=False).examine is None
    assert plan_for(examine=len).examine is len
    assert plan_for(timeout=timedelta(seconds=3)).timeout == 3.0
    assert plan_for(timeout=0.5).timeout == 0.5


def test_refresh_of_the_upstream():
    """The refresh of the upstream is used unless the call has its own."""
    upstream = Upstream("a", refresh=len)
    assert plan_for(upstream=upstream).refresh is len
    assert plan_for(upstream=upstream, refresh=print).refresh is print
    assert plan_for(refresh=print).refresh is print
    assert plan_for().refresh is None


def test_read_only():
    """The option is the same as the declaration, and keeps the rest of the operation."""
    operation = plan_for(read_only=True, operation=Operation(name="search")).operation
    assert (operation.name, operation.read_only) == ("search", True)
    assert not plan_for(operation=Operation(name="pay")).operation.read_only


@pytest.mark.parametrize(
    ("options", "direct"),
    [
        ({"examine": True}, False),
        ({"timeout": 1}, False),
        ({"policy": Policy(deadline=1.0)}, False),
        ({"operation": Operation(key="k")}, False),
        ({"operation": Operation(keyed=True)}, False),
        ({"operation": Operation(read_only=True)}, True),
        ({"upstream": Upstream("a")}, True),
    ],
)
def test_direct_first_calls(options, direct):
    """A first call needs a flow if the scope has something for it, or its time or result is looked at."""
    assert plan_for(**options).direct is direct


def test_new_keys():
    """A keyed operation gets a new key per call; one with a key keeps it."""
    plan = plan_for(operation=Operation(keyed=True))
    assert plan.new_operation().key != plan.new_operation().key
    given = Operation(key="k", keyed=True)
    assert Plan(operation=given).new_operation() is given
    assert Plan().new_operation() is UNKNOWN


def test_arguments_of_hooks():
    """A hook gets the fault if it has a required positional parameter."""
    assert hook_arguments(lambda: None, FAULT) == ()
    assert hook_arguments(lambda fault: None, FAULT) == (FAULT,)
    assert hook_arguments(lambda fault=None: None, FAULT) == ()
    assert hook_arguments(lambda *, fault: None, FAULT) == ()
    assert hook_arguments(lambda *rest: None, FAULT) == ()
    assert hook_arguments(lambda fault, /: None, FAULT) == (FAULT,)
    assert hook_arguments(dict, FAULT) == ()


@pytest.mark.parametrize(
    ("fallback", "args", "kwargs"),
    [
        (lambda a, b: None, (1,), {"b": 2}),
        (lambda only: None, (FAULT,), {}),
        (lambda a, b, *, fault: None, (1,), {"b": 2, "fault": FAULT}),
        (lambda *, fault: None, (), {"fault": FAULT}),
        (lambda fault: None, (), {"fault": FAULT}),
        (lambda *args, **kwargs: None, (1,), {"b": 2}),
        (lambda a, b, c, d, e: None, (1,), {"b": 2}),
    ],
)
def test_arguments_of_fallbacks(fallback, args, kwargs):
    """A fallback gets the arguments of the call, and the fault if it takes it."""
    assert fallback_arguments(fallback, (1,), {"b": 2}, FAULT) == (args, kwargs)


def test_a_fault_among_the_arguments():
    """The fault follows the arguments. A call that has an argument `fault` of its own keeps it; a builtin without a signature gets the arguments."""
    assert fallback_arguments(lambda a, b: None, (1,), {}, FAULT) == ((1, FAULT), {})
    mine = {"fault": "mine"}
    assert fallback_arguments(lambda fault: None, (), mine, FAULT) == ((), mine)
    assert fallback_arguments(lambda fault, /: None, (), {}, FAULT) == ((FAULT,), {})
    assert fallback_arguments(dict, (1,), {"a": 2}, FAULT) == ((1,), {"a": 2})


def test_a_plan_without_options():
    """Nothing is read-only, and the first call needs a flow until the options are checked."""
    plan = Plan()
    assert (plan.read_only, plan.direct, plan.raises, plan.timeout) == (False, False, "fault", None)
    assert plan.checked().direct is True


READS = Options(read_only=True, policy=Policy(attempts=2))


def test_every_entry_takes_the_options_as_one_value(clock):
    """An option that is given beside it counts instead, unless it is the default."""

    def lost(*_):
        calls.append(1)
        raise TimeoutError

    def items():
        lost()
        yield 1

    def block():
        for attempt in attempts(options=READS):
            with attempt:
                lost()

    for run in (
        lambda: recover(lost, options=READS),
        lambda: recovering(options=READS)(lost)(),
        block,
        lambda: list(recover_stream(items, options=READS)),
    ):
        calls: list[int] = []
        with pytest.raises(FaultError):
            run()
        assert len(calls) == 2
    for named, made in (({"policy": Policy(attempts=4)}, 4), ({"read_only": False, "raises": "fault"}, 2)):
        calls = []
        with pytest.raises(FaultError):
            recover(lost, options=READS, **named)
        assert len(calls) == made
    shared = Upstream("shared")
    assert recovering(options=Options(upstream=shared))(lost).upstream is shared
    assert recovering(options=READS)(lost).upstream is not None
    assert recovering(options=READS, upstream=None)(lost).upstream is None


async def test_async_entries_take_the_options_as_one_value(clock):
    """The same."""
    calls: list[int] = []

    async def lost():
        calls.append(1)
        raise TimeoutError

    async def items():
        await lost()
        yield 1

    with pytest.raises(FaultError):
        await arecover(lost, options=READS)
    with pytest.raises(FaultError):
        async for _ in arecover_stream(items, options=READS):
            pass
    assert len(calls) == 4


def test_options_are_the_parameters_of_recover():
    """The same names and defaults, so that help and editors show them in both places."""
    shown = inspect.signature(recover).parameters
    for name in Options.__struct_fields__:
        default = shown[name].default
        assert getattr(Options(), name) == (None if default is DEFAULT else default)
    assert set(RecoveryOptions.__annotations__) == set(Options.__struct_fields__)
    for entry in (arecover, recovering, attempts, recover_stream, arecover_stream):
        assert "options" in inspect.signature(entry).parameters


def test_options_of_the_wrong_kind():
    """The message says what to write."""
    with pytest.raises(TypeError, match="options is an Options"):
        plan_for({"read_only": True})
    with pytest.raises(TypeError, match="no option 'retries'"):
        plan_for(retries=3)
    with pytest.raises(ValueError, match="raises is"):
        plan_for(Options(raises="never"))
