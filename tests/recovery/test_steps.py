"""The steps that a flow asks its runner for."""

import pytest

from amends.recovery.async_library import ThreadWaiter
from amends.recovery.steps import Do, Finish, Park, Send, Wait


def test_defaults():
    """A call is the original one and has no time limit; a hook has no arguments."""
    send = Send(print, (1,), {"a": 2}, None)
    assert (send.changed, send.timeout) == (False, None)
    do = Do(print)
    assert (do.args, do.kwargs) == ((), {})
    assert Do(print).kwargs is not Do(print).kwargs


def test_steps_are_values():
    """Steps are compared by value and cannot be changed."""
    waiter = ThreadWaiter()
    assert (Wait(1.0), Park(waiter, 2.0), Finish(3)) == (Wait(1.0), Park(waiter, 2.0), Finish(3))
    with pytest.raises(AttributeError):
        Wait(1.0).seconds = 2.0
