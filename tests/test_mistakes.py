"""Common mistakes in calls: each raises at once, and the message shows the correct form."""

import asyncio
import subprocess
import sys
from datetime import timedelta

import pytest

from amends import (
    Fault,
    Operation,
    Policy,
    State,
    Upstream,
    arecover,
    decide,
    decode,
    encode,
    extract,
    for_llm,
    losses,
    record,
    recover,
    register,
    translate,
)
from amends.arcp.errors import ARCPError
from amends.bindings.guard import guard, operation
from amends.bindings.httpx import Transport
from amends.bindings.tool_calls import ToolCalls
from amends.core.backoff import Backoff
from amends.core.policy import Rule
from amends.errors import RateLimitedError
from amends.process import run
from amends.recovery import add_hook, recovering
from tests.each import each

FAULT = Fault(code="RATE_LIMITED")


def plain(value="ok"):
    return value


async def promised(value="ok"):
    return value


def arecovered(*args, **options):
    return asyncio.run(arecover(*args, **options))


WRONG = {
    "attempts='3'": (lambda: Policy(attempts="3"), "attempts is a whole number, not str"),
    "attempts=2.5": (lambda: Policy(attempts=2.5), "attempts is a whole number, not float"),
    "attempts=True": (lambda: Policy(attempts=True), "attempts is a whole number, not bool"),
    "uncertain='1'": (lambda: Policy(uncertain="1"), "uncertain is a whole number, not str"),
    "max_wait=timedelta": (
        lambda: Policy(max_wait=timedelta(minutes=5)),
        "max_wait is a number of seconds, not timedelta: write 300",
    ),
    "deadline='5'": (lambda: Policy(deadline="5"), "deadline is a number of seconds, not str"),
    "backoff=2": (lambda: Policy(backoff=2), "backoff is a Backoff, not int: write Backoff"),
    "rules=[]": (lambda: Policy(rules=[]), "rules is a Mapping, not list: write {"),
    "rules of numbers": (
        lambda: Policy(rules={"adcp": 3}),
        r"rules\['adcp'\] is a Rule, not int: write Rule",
    ),
    "rule attempts": (lambda: Rule(attempts="3"), "attempts is a whole number"),
    "first='1'": (lambda: Backoff(first="1"), "first is a number of seconds, not str"),
    "retry_after='5'": (lambda: RateLimitedError("x", retry_after="5"), "retry_after is a number of seconds"),
    "Fault timedelta": (
        lambda: Fault(code="X", retry_after=timedelta(seconds=5)),
        "retry_after is a number of seconds, not timedelta: write 5",
    ),
    "Policy typo": (lambda: Policy(atempts=3), "atempts"),
    "error typo": (lambda: RateLimitedError("x", retry_afer=3), "retry_afer"),
    "Upstream(3)": (lambda: Upstream(3), "name is a str, not int"),
    "policy=3": (lambda: recover(plain, policy=3), r"policy is a Policy, not int: write Policy\("),
    "operation='x'": (
        lambda: recover(plain, operation="search"),
        "operation is an Operation, not str: write Operation",
    ),
    "upstream='x'": (lambda: recover(plain, upstream="x"), "upstream is an Upstream, not str"),
    "fallback=3": (lambda: recover(int, "x", fallback=3), "fallback is a function, or several"),
    "fallback=[3]": (lambda: recover(int, "x", fallback=[3]), "fallback is a function, not int"),
    "verify=3": (lambda: recover(int, "x", verify=3), "verify is a function, not int"),
    "examine=3": (lambda: recover(plain, examine=3), "examine is a function, not int"),
    "recovering typo": (lambda: recovering(polcy=Policy()), "polcy"),
    "recovering type": (lambda: recovering(policy=3), "policy is a Policy, not int"),
    "recover(f())": (lambda: recover(plain()), "the function to call, not str"),
    "recover async": (lambda: recover(promised), "await it with arecover"),
    "recover async, arranged": (lambda: recover(promised, history=[]), "await it with arecover"),
    "recover typo": (lambda: recover(plain, polcy=Policy()), "plain cannot be called like this.*polcy"),
    "recover too much": (lambda: recover(plain, 1, 2, history=[]), "plain cannot be called like this"),
    "arecover plain": (lambda: arecovered(plain), "str, which cannot be awaited"),
    "arecover plain, promising": (
        lambda: arecovered(plain, operation=Operation(read_only=True)),
        "str, which cannot be awaited",
    ),
    "arecover plain, arranged": (lambda: arecovered(plain, history=[]), "str, which cannot be awaited"),
    "arecover plain, shared": (lambda: arecovered(plain, upstream=Upstream("x")), "cannot be awaited"),
    "arecover(f())": (lambda: arecovered(promised()), "the function to call, not coroutine"),
    "arecover too much": (lambda: arecovered(promised, 1, 2), "promised cannot be called like this"),
    "encode(error)": (lambda: encode(RateLimitedError("x"), "adcp"), "encode takes a Fault.*as .fault"),
    "translate(dict)": (lambda: translate({}, to="adcp"), "translate takes a Fault"),
    "losses(error)": (lambda: losses(RateLimitedError("x"), "adcp"), "losses takes a Fault"),
    "decide(error)": (lambda: decide(RateLimitedError("x")), "decide takes a Fault.*as .fault"),
    "for_llm(error)": (lambda: for_llm(RateLimitedError("x")), "for_llm takes a Fault.*as .fault"),
    "read_only='no'": (lambda: Operation(read_only="no"), "read_only is True or False, not str"),
    "keyed='no'": (lambda: Operation(keyed="no"), "keyed is True or False, not str"),
    "name=3": (lambda: Operation(name=3), "name is str, not int"),
    "of_http(None)": (lambda: Operation.of_http(None), "method is a str, not NoneType"),
    "Upstream(keyed='no')": (lambda: Upstream(keyed="no"), "keyed is True or False, not str"),
    "Upstream(refresh=3)": (lambda: Upstream(refresh=3), "refresh is a function, not int"),
    "Transport(keyed='no')": (lambda: Transport(keyed="no"), "keyed is True or False, not str"),
    "Transport(own='no')": (lambda: Transport(own="no"), "own is True or False, not str"),
    "Transport(verify=False)": (lambda: Transport(verify=False), "verify is a function, not bool"),
    "ToolCalls(read_only='search')": (
        lambda: ToolCalls(read_only="search"),
        "read_only is a list of names, not str",
    ),
    "@operation(read_only='no')": (lambda: operation(read_only="no"), "read_only is True or False, not str"),
    "guard(3)": (lambda: guard(3), "guard takes a function, not int"),
    "retryable='no'": (lambda: ARCPError("TIMEOUT", "m", retryable="no"), "retryable is True or False"),
    "spread='x'": (lambda: Backoff(spread="x"), "spread is a share from 0 to 1, not str"),
    "suggestions=None": (lambda: Fault(code="X", suggestions=None), "suggestions are strings in a list"),
    "suggestions={}": (lambda: Fault(code="X", suggestions={"a": 1}), "suggestions are strings in a list"),
    "errors=3": (lambda: Fault(code="X", errors=3), "errors are Faults in a list, not int"),
    "headers='x'": (lambda: RateLimitedError("x", headers="x"), "headers is a mapping of strings, not str"),
    "headers=3": (lambda: RateLimitedError("x", headers=3), "headers is a mapping of strings, not int"),
    "decide(policy=None)": (lambda: decide(FAULT, policy=None), "policy is a Policy, not NoneType"),
    "decide(state=None)": (lambda: decide(FAULT, state=None), "state is a State, not NoneType"),
    "decide(operation='x')": (lambda: decide(FAULT, operation="x"), "operation is an Operation, not str"),
    "decide(State('1'))": (lambda: decide(FAULT, state=State(attempt="1")), "attempt is a whole number"),
    "decide(now='x')": (lambda: decide(FAULT, now="x"), "now is a number of seconds"),
    "for_llm(repeats='x')": (lambda: for_llm(FAULT, repeats="x"), "repeats is a whole number, not str"),
    "for_llm(hosts=None)": (lambda: for_llm(FAULT, hosts=None), "hosts is a collection of strings"),
    "for_llm(hosts=b'')": (lambda: for_llm(FAULT, hosts=b"x"), "hosts is a collection of strings, not bytes"),
    "add_hook(3)": (lambda: add_hook(3), "hook is a function that takes an Event, not int"),
    "record(3)": (lambda: record(3), "a store URL must be a string, not int"),
    "run('a b')": (lambda: run("ls -l"), r"argv is a list of arguments.*write \['ls', '-l'\]"),
    "run(stdin='')": (lambda: run(["cat"], stdin="x"), "stdin is bytes"),
    "run(timeout='')": (lambda: run(["cat"], timeout="5"), "timeout is a number of seconds"),
}


@each(("call", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_raises_with_the_correct_form(call, message):
    """A wrong argument raises TypeError, and the message shows what to write."""
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda value: extract({}, value),
        lambda value: extract({}, vendor=value),
        lambda value: decode({}, value),
        lambda value: encode(FAULT, value),
        lambda value: losses(FAULT, value),
        lambda value: translate(FAULT, to=value),
    ],
)
@pytest.mark.parametrize(
    "value", [3, [], {}, "x" * 1_000_000, 10**5000], ids=["3", "[]", "{}", "long", "big"]
)
def test_an_unknown_name_raises_a_short_error(call, value):
    """A value that is no name raises LookupError with the names, and the message does not repeat all of it."""
    with pytest.raises(LookupError, match=r"there are|choose one of") as caught:
        call(value)
    assert len(str(caught.value)) < 2500


@pytest.mark.parametrize(
    "call",
    [
        lambda: Fault(code=10**5000),
        lambda: Fault(code="X", recovery=[[]] * 100_000),
        lambda: Fault(code="X", retry_after=10**5000),
        lambda: register(KeyError, code="NOT_FOUND", recovery="soon"),
        lambda: decide(FAULT, draw=float("nan")),
        lambda: Backoff(kind=[]),
    ],
)
def test_a_wrong_value_raises_a_short_error(call):
    """A wrong value raises ValueError that names the argument, also if the value has no repr or a long one."""
    with pytest.raises(
        ValueError, match=r"code is|recovery is one of|retry_after is|draw is|kind is"
    ) as caught:
        call()
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("key", ["", 3])
def test_an_invalid_key_raises(key):
    """An empty key raises, because the operation would count as repeatable."""
    with pytest.raises(ValueError, match="key is a non-empty string"):
        Operation(key=key)


def test_functions_accept_a_timedelta():
    """A timedelta is accepted for seconds and converted to a number."""
    assert RateLimitedError("x", retry_after=timedelta(minutes=1)).fault.retry_after == 60
    assert run([sys.executable, "-c", "print(1)"], timeout=timedelta(minutes=1)).exit == 0


def test_a_wrong_call_does_not_count_for_the_upstream():
    """A wrong call is not reported to the shared upstream, and does not start the fallback."""
    shared, taken = Upstream("search"), []
    for call in (
        lambda: recover(plain, 1, 2, upstream=shared, fallback=taken.append),
        lambda: arecovered(plain, upstream=shared),
    ):
        with pytest.raises(TypeError):
            call()
    assert (taken, shared.snapshot().failing, shared.snapshot().state) == ([], 0.0, "open")


def test_a_type_error_inside_the_function_is_a_failure():
    """A TypeError from inside the called function is treated as a failure, not as a wrong call."""
    from amends.errors import InternalError

    def broken():
        return plain(1, 2)

    with pytest.raises(InternalError) as caught:
        recover(broken)
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize("name", ["recove", "Falt"])
def test_a_misspelt_name_gets_a_suggestion(name):
    """The AttributeError has name and obj, so Python suggests the nearest name."""
    done = subprocess.run(
        [sys.executable, "-c", f"import amends; amends.{name}"], capture_output=True, text=True, check=False
    )
    assert "Did you mean: " in done.stderr
