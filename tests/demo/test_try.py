"""`amends try`: three agents, the same failures, one score."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amends.demo.comparison import FAILURES, Observer, compare

COMMAND = [sys.executable, "-m", "amends", "try"]
FEW = [each for each in FAILURES if each.id in {"openai/quota", "orders/lost", "orders/html", "mcp/rate"}]


@pytest.fixture(scope="module")
def results():
    """Four of the failures, with all agents."""
    return {each.agent: each for each in compare(7, failures=FEW).results}


def test_amends_handles_every_failure(results):
    """The best score for each: the demo client has no limit to document here."""
    ours = results["with amends"]
    assert {row.id: ([each.rule for each in row.findings], row.score) for row in ours.rows} == {
        each.id: ([], 3) for each in FEW
    }


def test_tenacity_is_configured_as_well_as_it_can_be(results):
    """Waits are kept, the key makes lost answers harmless; what it cannot know is the quota, and a failure inside a success."""
    found = {row.id: [each.rule for each in row.findings] for row in results["with tenacity"].rows}
    assert found == {
        "openai/quota": ["exhausted-repeated"],
        "orders/lost": [],
        "orders/html": [],
        "mcp/rate": ["gave-up"],
    }


def test_plain_clients_stop_and_pass_internals_on(results):
    """The whole answer reaches the model."""
    found = {row.id: [each.rule for each in row.findings] for row in results["plain clients"].rows}
    assert found["orders/html"] == ["leaked"]
    assert found["mcp/rate"] == ["gave-up"]
    assert found["openai/quota"] == []


@pytest.mark.soak
def test_the_figures_of_a_seed_are_the_same_each_time():
    """Calls, too."""
    again = {each.agent: each for each in compare(7, Observer(), FEW[:2]).results}
    first_two = {each.agent: each for each in compare(7, Observer(), FEW[:2]).results}
    for name, first in first_two.items():
        second = again[name]
        assert (first.calls, first.handled, first.finished) == (second.calls, second.handled, second.finished)
        assert [(row.id, row.score, row.calls, row.sent.call) for row in first.rows] == [
            (row.id, row.score, row.calls, row.sent.call) for row in second.rows
        ]


@pytest.mark.soak
def test_the_readme_shows_these_figures():
    """The same seed gives the same table on every machine."""
    done = subprocess.run([*COMMAND, "--json"], capture_output=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr.decode()
    document = json.loads(done.stdout)
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for row in document.get("data", document)["agents"]:
        shown = re.search(
            rf"^{row['agent']} +(\d+) of {row['of']} +(\d+) of {row['of']} +(\d+) ", readme, re.MULTILINE
        )
        assert shown is not None, row["agent"]
        assert [int(each) for each in shown.groups()] == [row["handled"], row["finished"], row["calls"]], row


def test_ctrl_c_ends_it(tmp_path):
    """The exit code is that of an interrupted command, and nothing is left running."""
    process = subprocess.Popen(
        [*COMMAND, "--output", "text"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "plain clients" in line:
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 130
        assert not _children(process.pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_services_can_be_kept():
    """`--keep` prints their addresses; they fail as planned."""
    code = (
        "import sys; from amends.commands import try_; from rich.console import Console; "
        "try_._keep_services(7, Console(force_terminal=False, width=200))"
    )
    process = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        seen = ""
        for _ in range(7):
            seen += process.stdout.readline()
        for name in ("openai", "orders", "mcp", "a2a"):
            assert re.search(rf"{name} +http://127\.0\.0\.1:\d+", seen), seen
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()


def _children(pid: int) -> list[int]:
    time.sleep(0)
    place = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in place.read_text().split()] if place.exists() else []
