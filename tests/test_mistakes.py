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
    Upstream,
    arecover,
    decide,
    encode,
    for_llm,
    losses,
    recover,
    translate,
)
from amends.core.backoff import Backoff
from amends.core.policy import Rule
from amends.errors import RateLimitedError
from amends.process import run
from amends.recovery import recovering
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
    "run('a b')": (lambda: run("ls -l"), r"argv is a list of arguments.*write \['ls', '-l'\]"),
    "run(stdin='')": (lambda: run(["cat"], stdin="x"), "stdin is bytes"),
    "run(timeout='')": (lambda: run(["cat"], timeout="5"), "timeout is a number of seconds"),
}


@each(("call", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_raises_with_the_correct_form(call, message):
    """A wrong argument raises TypeError, and the message shows what to write."""
    with pytest.raises(TypeError, match=message):
        call()


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
