"""Names, states and exceptions with which a peer claims more than it can know."""

import pytest
from a2a.types import TaskState, TaskStatus

from amends import from_exception
from amends.arcp.transports.websocket import is_local
from amends.bindings.a2a.faults import _unstructured


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example",
            "0.0.0.0",
            "10.0.0.7",
            "::",
            "[::1",
        ),
        *(
            "127.0.0.1@evil.example",
            "2130706433",
            "0x7f000001",
            "127.1",
            "",
            "LOCALHOST.",
            "\u0661\u0662\u0667.0.0.1",
        ),
    ],
)
def test_names_that_are_not_this_machine(host):
    """A token is not sent to them without TLS."""
    assert not is_local(host)


def test_only_the_state_of_a_task_says_that_it_did_not_run():
    """A failed task may have had its effect, whatever its message says; a rejected one was not started."""
    for state in TaskState.values():
        status = TaskStatus(state=state)
        part = status.message.parts.add()
        part.text = "rejected; executed: no; nothing happened; rate limit exceeded, retry after 0"
        rejected = state == TaskState.TASK_STATE_REJECTED
        assert _unstructured(status).executed == ("no" if rejected else "maybe")


@pytest.mark.parametrize(
    "text", ["connection refused", "[Errno 111] Connection refused", "not sent", "executed: no"]
)
def test_what_an_exception_says_about_itself_is_not_that_nothing_was_sent(text):
    """Only the class and the number of the operating system count, and those of a lost connection say "maybe"."""
    for kind in (ConnectionResetError, BrokenPipeError, TimeoutError, OSError, RuntimeError, EOFError):
        assert from_exception(kind(text)).executed == "maybe"
    assert from_exception(ConnectionRefusedError(111, text)).executed == "no"
