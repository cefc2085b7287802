"""What a chain hands down beside its failure: the time of the outermost caller, and its trace."""

import logging

import pytest

from amends import FaultError, Policy
from amends.recovery import arecover
from amends.serving.tracing import handling
from amends.testing import FakeClock
from tests.hops.chains import PARENT, TRACE, _call
from tests.hops.failures import COUNTS, NOTES
from tests.hops.formats import FORMATS, MORE
from tests.hops.zygote import zygote

SECONDS = 40.0
CHAINS = [
    *(f"{name}:both" for name in (*FORMATS, "fastmcp", "a2a-0.3-stream", "mcp-gateway")),
    *(pytest.param(f"{name}:both", marks=pytest.mark.soak) for name in MORE),
    "http:both,mcp:both,arcp:both",
    "task:both,cli:both,http:both",
    "a2a:both,task:both,mcp:both",
    "cli:both,gateway:both,jsonrpc:both",
]


@pytest.fixture(scope="module", autouse=True)
def commands():
    with zygote():
        yield


@pytest.fixture
def notes(tmp_path, monkeypatch):
    path = tmp_path / "notes"
    monkeypatch.setenv(NOTES, str(path))
    monkeypatch.setenv(COUNTS, str(tmp_path / "counts"))
    return path


async def call(chain, end):
    hops = [tuple(each.split(":")) for each in chain.split(",")]
    with pytest.raises(FaultError) as raised:
        await arecover(lambda: _call(hops, end, "own", True), policy=Policy(deadline=SECONDS))
    return raised.value


@pytest.mark.parametrize("chain", CHAINS)
async def test_the_last_server_knows_how_long_its_caller_waits(chain, notes):
    """Each hop keeps a part for its own answer, so less is left at every hop. A task goes on without its submitter."""
    hops = chain.count(",") + 1
    with FakeClock():
        await call(chain, "time")
    told = notes.read_text()
    if "task" not in chain:
        assert told != "None"
        assert 0 < float(told) <= SECONDS * 0.951**hops
    else:
        assert told == "None" or float(told) > 0


@pytest.mark.parametrize("chain", CHAINS)
async def test_a_trace_that_begins_below_is_logged_beside_the_callers(chain, notes, caplog):
    """A span without a parent in the last server: the caller reads its own id, and the log of the server has both."""
    caplog.set_level(logging.INFO, "amends")
    with FakeClock(), handling(PARENT):
        error = await call(chain, "own-trace")
    assert error.fault.trace_id == TRACE
    other = notes.read_text()
    assert other != TRACE
    told = [record.getMessage() for record in caplog.records if TRACE in record.getMessage()]
    if "cli" not in chain and "run" not in chain:
        assert any(f"upstream_trace_id={other}" in line for line in told), chain
