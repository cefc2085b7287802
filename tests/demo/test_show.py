"""`amends try`, end to end: five services, three agents, one score."""

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
    """One evening in a pipe: one JSON document, and nothing else."""
    done = subprocess.run(COMMAND, capture_output=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answer = json.loads(done.stdout)
    return {row["agent"]: row for row in answer.get("data", answer)["agents"]}


def test_amends_finishes_the_job_without_waste_or_harm(score):
    """Issue 11: all of it, no call that had been announced to fail, nothing twice."""
    ours = score["with amends"]
    assert (ours["finished"], ours["wasted"], ours["duplicates"]) == (6, 0, 0), ours


def test_the_others_visibly_do_not(score):
    """Plain clients stop at the first failure; repeating blindly wastes calls and does things twice."""
    plain, tenacity = score["plain clients"], score["with tenacity"]
    assert plain["finished"] < 6
    assert tenacity["finished"] < 6
    assert tenacity["wasted"] > 0
    assert tenacity["duplicates"] > 0


def test_the_readme_shows_this_score(score):
    """The same seed, the same outcome: what is finished, and what was done twice, however fast the machine is."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for name, row in score.items():
        told = re.search(rf"^{name} +(\d) of 6 +\d+ +\d+ +(\d) ", readme, re.MULTILINE)
        assert told is not None, name
        assert [int(each) for each in told.groups()] == [row["finished"], row["duplicates"]], row


def test_a_model_reads_less(score):
    """Of what amends settles itself, a model reads nothing."""
    assert 0 < score["with amends"]["bytes_read"] < score["plain clients"]["bytes_read"] / 4


def test_every_effect_is_the_services_own_word(score):
    """With amends each thing that should happen once did."""
    services = score["with amends"]["services"]
    assert {name: services[name]["effects"] for name in ("order", "wine", "charge")} == {
        "order": 1,
        "wine": 1,
        "charge": 1,
    }


def test_ctrl_c_leaves_nothing_running(tmp_path):
    """The services end with the show, however it ends."""
    show = subprocess.Popen(
        [*COMMAND, "--output", "text"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert show.stdout is not None
        for line in show.stdout:
            if "call 1" in line:
                break
        children = _children(show.pid)
        assert children
        show.send_signal(signal.SIGINT)
        assert show.wait(100) == 130
    finally:
        show.kill()
        show.wait()
        show.stdout.close()
    _until(lambda: not any(_alive(pid) for pid in children))


def test_kept_services_say_where_they_are():
    """`--keep` leaves them up to play with, until Ctrl-C."""
    show = subprocess.Popen(
        [sys.executable, "-m", "amends.demo.host", "--seed", "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert show.stdin is not None
    assert show.stdout is not None
    places = json.loads(show.stdout.readline())["places"]
    assert set(places) == {"http", "mcp", "a2a", "arcp", "token"}
    show.stdin.close()  # whoever started them is gone
    assert show.wait(100) == 0
    show.stdout.close()


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
