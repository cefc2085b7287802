"""Tests of the hooks that receive the events of recovery."""

from contextlib import contextmanager

from amends import Operation, recover
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import add_hook, remove_hook, set_hooks
from amends.recovery.hooks import only_hooks
from amends.testing import FakeClock, Script

READ = Operation(name="read", read_only=True)


def test_hooks_can_be_set_added_and_removed(clock):
    """`set_hooks` replaces all hooks; without arguments no event is sent."""
    one, two = [], []
    set_hooks(one.append)
    add_hook(two.append)
    add_hook(two.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert len(one) == len(two) == 2
    remove_hook(two.append)
    remove_hook(two.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert (len(one), len(two)) == (4, 2)
    set_hooks()
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert len(one) == 4


def test_a_hook_may_cover_the_wait(clock):
    """A context manager that a hook returns is open during the wait."""
    order = []

    @contextmanager
    def covering():
        order.append(clock.now())
        yield
        order.append(clock.now())

    set_hooks(lambda event: covering() if event.kind == "retry" else None)
    recover(Script(RateLimitedError(retry_after=7), "x"))
    assert order[1] - order[0] == 7


def test_a_hook_that_fails_changes_nothing(clock, caplog):
    """An exception of a hook is logged, and the operation goes on."""

    def broken(event):
        raise RuntimeError

    set_hooks(broken)
    assert recover(Script(RateLimitedError(retry_after=1), "x")) == "x"
    assert "hook failed" in caplog.text


def test_a_hook_of_one_call(clock, seen):
    """`on_event` gets the events of its own operation only, before the hooks of the process."""
    own = []
    recover(Script(RateLimitedError(retry_after=1), "x"), on_event=own.append)
    recover(Script(RateLimitedError(retry_after=1), "x"))
    assert [event.kind for event in own] == ["retry", "recovered"]
    assert seen[:2] == own
    assert len(seen) == 4
    set_hooks()
    recover(Script(RateLimitedError(retry_after=1), "x"), on_event=own.append)
    assert len(own) == 4


def test_hooks_of_a_block():
    """`only_hooks` replaces the hooks in a block, and the others are back after it."""
    seen, kept = [], []
    with FakeClock(), only_hooks(kept.append):
        with only_hooks(seen.append):
            recover(Script(ServiceUnavailableError("later", retry_after=1), 1), operation=READ)
        assert [event.kind for event in seen] == ["retry", "recovered"]
        assert kept == []
        recover(Script(ServiceUnavailableError("later", retry_after=1), 1), operation=READ)
    assert [event.kind for event in kept] == ["retry", "recovered"]
