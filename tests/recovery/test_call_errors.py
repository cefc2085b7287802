"""Errors of the program that calls `recover`."""

import warnings

import pytest

from amends.recovery.call_errors import (
    LoopCheck,
    MisuseError,
    refuse_coroutine,
    refuse_misuse,
    refuse_plain,
    refuse_source,
)


async def work():
    return 1


def test_coroutines_are_closed():
    """A coroutine where nothing awaits it is closed, so that Python does not warn about it."""
    for refuse in (
        refuse_coroutine,
        lambda coroutine: refuse_source(coroutine, "__iter__", "use async"),
        lambda coroutine: refuse_misuse(coroutine, (), {}, TypeError()),
    ):
        coroutine = work()
        with pytest.raises(MisuseError):
            refuse(coroutine)
        assert coroutine.cr_frame is None


async def test_plain_results():
    """A result that cannot be awaited is refused by `arecover`."""
    coroutine = work()
    refuse_plain(coroutine)
    assert await coroutine == 1
    with pytest.raises(MisuseError, match="returned int"):
        refuse_plain(3)


def test_sources():
    """A source of items has to return an iterable; what cannot be awaited is not closed."""
    refuse_source([1], "__iter__", "advice")
    with pytest.raises(MisuseError, match="the source returned int: advice"):
        refuse_source(3, "__iter__", "advice")

    class Open:
        closed = False

        def close(self):
            self.closed = True

    opened = Open()
    with pytest.raises(MisuseError):
        refuse_source(opened, "__iter__", "advice")
    assert not opened.closed
    with pytest.raises(MisuseError):
        refuse_misuse(opened, (), {}, TypeError())
    assert not opened.closed


def test_a_type_error_of_the_call_itself():
    """An error raised inside the function is its own; builtins without a signature are not judged."""

    def raised_here(call, *args):
        try:
            call(*args)
        except TypeError as error:
            return error

    refuse_misuse(len, (3,), {}, raised_here(len, 3))
    refuse_misuse(print, (), {}, TypeError("no traceback"))


async def test_a_plain_call_in_an_event_loop_warns_once():
    """The warning comes once; the counter of cheap checks ends with it."""
    check = LoopCheck()
    assert (check.left, check.warned) == (1000, False)
    with pytest.warns(RuntimeWarning, match="inside a running event loop") as found:
        check.check()
    assert (check.left, check.warned) == (0, True)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check.check()
    assert check.left == 0


def test_outside_of_an_event_loop():
    """Nothing is warned about, and each check is counted, down to 0."""
    check = LoopCheck()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check.check()
        check.check(succeeded=True)
    assert (check.left, check.warned) == (998, False)


async def test_a_success_of_our_own_client_is_not_warned_about():
    """A client of amends that succeeded at once has not waited; one that failed is warned about."""
    namespace = {"__name__": "amends.bindings.client"}
    exec("def call(check, succeeded): check.check(succeeded=succeeded)", namespace)
    check = LoopCheck()
    namespace["call"](check, True)
    assert not check.warned
    with pytest.warns(RuntimeWarning):
        namespace["call"](check, False)
    other = LoopCheck()
    with pytest.warns(RuntimeWarning):
        other.check(succeeded=True)
