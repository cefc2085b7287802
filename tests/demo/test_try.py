"""`amends try` from end to end: five services, three agents, one score."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "amends", "try"]


@pytest.fixture(scope="module")
def score():
    """Run the demo with --json: stdout is one JSON document."""
    done = subprocess.run([*COMMAND, "--json"], capture_output=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr.decode()
    document = json.loads(done.stdout)
    return {row["agent"]: row for row in document.get("data", document)["agents"]}


def test_amends_finishes_without_waste_or_duplicates(score):
    """All steps, no wasted call, no duplicate effect."""
    ours = score["with amends"]
    assert (ours["finished"], ours["wasted"], ours["duplicates"]) == (6, 0, 0), ours


def test_the_other_agents_do_not_finish(score):
    """Plain clients stop at the first failure; blind retries waste calls and duplicate effects."""
    plain, tenacity = score["plain clients"], score["with tenacity"]
    assert plain["finished"] < 6
    assert tenacity["finished"] < 6
    assert tenacity["wasted"] > 0
    assert tenacity["duplicates"] > 0


def test_the_readme_shows_this_score(score):
    """The same seed gives the same finished steps and duplicates on every machine."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for name, row in score.items():
        shown = re.search(rf"^{name} +(\d) of 6 +\d+ +\d+ +(\d) ", readme, re.MULTILINE)
        assert shown is not None, name
        assert [int(each) for each in shown.groups()] == [row["finished"], row["duplicates"]], row


def test_a_model_reads_less(score):
    """A model does not read failures that amends resolves itself."""
    assert 0 < score["with amends"]["bytes_read"] < score["plain clients"]["bytes_read"] / 4


def test_every_effect_happened_once(score):
    """By the services' record, each effect happened exactly once with amends."""
    services = score["with amends"]["services"]
    assert {name: services[name]["effects"] for name in ("order", "wine", "charge")} == {
        "order": 1,
        "wine": 1,
        "charge": 1,
    }


def test_ctrl_c_leaves_nothing_running(tmp_path):
    """The services stop when the demo is interrupted."""
    process = subprocess.Popen(
        [*COMMAND, "--output", "text"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "call 1" in line:
                break
        children = _children(process.pid)
        assert children
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 130
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    _until(lambda: not any(_alive(pid) for pid in children))


def test_the_host_prints_its_endpoints():
    """The services' process prints its endpoints and exits when stdin closes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "amends.demo.host", "--seed", "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    endpoints = json.loads(process.stdout.readline())["endpoints"]
    assert set(endpoints) == {"http", "mcp", "a2a", "arcp", "token"}
    process.stdin.close()  # as when the parent process ends
    assert process.wait(100) == 0
    process.stdout.close()


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def _until(true):
    for _ in range(2000):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("still running")
