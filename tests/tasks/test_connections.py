"""The MCP servers of an agent: opened when needed, dropped when broken, failures in the task vocabulary."""

import pytest

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.errors import FaultError
from amends.errors import task as errors
from amends.tasks.connections import Connections


class Client:
    """A client whose calls raise the given errors."""

    def __init__(self, opened, failure=None):
        self._opened, self._failure = opened, failure
        self.title = "a plain attribute"

    async def __aenter__(self):
        self._opened.append(self)
        if self._failure is not None:
            raise self._failure
        return self

    async def __aexit__(self, *_):
        pass

    async def call_tool(self, failure=None):
        if failure is not None:
            raise failure
        return "result"


@pytest.fixture
async def connected():
    opened = []
    connections = Connections("worker", {"notion": lambda: Client(opened)})
    yield connections, opened
    await connections.close()


def failing(code, vocabulary="http", **more):
    return FaultError.from_fault(Fault(code=code, vocabulary=vocabulary, **more))


async def test_one_client_until_it_is_dropped(connected):
    connections, opened = connected
    for _ in range(2):
        connection = await connections.connect("notion", "write")
        assert await connection.call_tool() == "result"
    assert (len(opened), connection.title) == (1, "a plain attribute")
    connections.drop("notion")
    connections.drop("unknown")
    await connections.connect("notion", "write")
    assert len(opened) == 2


async def test_a_connection_that_breaks_is_opened_again(connected):
    """Not after a failure of the tool."""
    connections, opened = connected
    for failure, count in ((failing("NOT_FOUND"), 1), (failing("SERVICE_UNAVAILABLE"), 2)):
        connection = await connections.connect("notion", "write")
        with pytest.raises(FaultError):
            await connection.call_tool(failure)
        await connections.connect("notion", "write")
        assert len(opened) == count


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (OSError("secret"), "MCP_NOT_CONNECTED"),
        (failing("UNAUTHENTICATED"), "MCP_AUTH_FAILED"),
        (failing("PERMISSION_DENIED"), "MCP_AUTH_FAILED"),
        (failing("RATE_LIMITED", retry_after=3.0), "MCP_RATE_LIMITED"),
        (failing("INTERNAL_ERROR", errors=(failing("UNAUTHENTICATED").fault,)), "MCP_AUTH_FAILED"),
    ],
)
async def test_a_server_that_cannot_be_connected(failure, code):
    """Nothing was called, so nothing happened; the text of the failure is not passed on."""
    connections = Connections("worker", {"notion": lambda: Client([], failure)})
    with pytest.raises(FaultError) as raised:
        await connections.connect("notion", "write")
    fault = raised.value.fault
    assert (fault.code, fault.details["mcp"], fault.details["capability"]) == (code, "notion", "write")
    assert fault.executed in {Executed.NO, None}
    assert "secret" not in repr(fault)
    assert fault.retry_after == (3.0 if code == "MCP_RATE_LIMITED" else None)


@pytest.mark.parametrize(
    ("failure", "code", "recovery"),
    [
        (failing("NOT_FOUND"), "MCP_ERROR", Recovery.CORRECTABLE),
        (failing("RATE_LIMITED"), "MCP_RATE_LIMITED", Recovery.TRANSIENT),
        (failing("KNOWLEDGE_NOT_FOUND", "cli"), "KNOWLEDGE_NOT_FOUND", None),
        (errors.AgentBusyError(), "AGENT_BUSY", Recovery.TRANSIENT),
        (failing("SERVICE_UNAVAILABLE", executed=Executed.NO), "MCP_NOT_CONNECTED", Recovery.CORRECTABLE),
        (failing("SERVICE_UNAVAILABLE", executed=Executed.MAYBE), "MCP_ERROR", None),
    ],
)
async def test_a_call_that_fails(connected, failure, code, recovery):
    """Codes of the contract are kept; others become MCP codes, with the original one as the cause."""
    connections, _ = connected
    connection = await connections.connect("notion", "write")
    with pytest.raises(FaultError) as raised:
        await connection.call_tool(failure)
    fault = raised.value.fault
    assert (fault.code, fault.vocabulary, fault.details["requiredBy"]) == (code, "task", "worker")
    assert recovery in {None, fault.recovery}
    if code == "MCP_ERROR":
        assert fault.details["cause"]["code"] == failure.fault.code
