"""`amends trace` and `amends watch` as real processes."""

import json
import os
import subprocess

import amends as package
from amends import Fault
from amends.core import recording
from tests.commands.test_decode import AMENDS, amends

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def recorded(tmp_path):
    url = f"sqlite:///{tmp_path}/failures.db"
    with package.record(url):
        fault = Fault(
            code="RATE_LIMITED", message="Slow\x1b[31m down", suggestions=("Send fewer",), retry_after=5
        )
        recording.emit(
            "http client",
            "retry",
            fault,
            trace_id=TRACE,
            name="GET shop.test",
            decision=package.decide(fault),
        )
        recording.emit("http client", "recovered", fault, trace_id=TRACE, attempt=2, elapsed=5.1)
        recording.emit("command line", "sent", Fault(code="NOT_FOUND"), trace_id="feed")
    return url


def test_trace_prints_one_timeline(tmp_path):
    """By the beginning of the id; the store from the environment or the option; text and JSON."""
    url = recorded(tmp_path)
    text = amends("trace", TRACE[:16], "--store", url, "--output", "text").stdout.decode()
    assert "RATE_LIMITED, try 1; retry in 5 s" in text
    assert "fix Send fewer" in text
    assert "\x1b[31m" not in text
    done = amends("trace", TRACE, "--json", env={**os.environ, "AMENDS_RECORD": url})
    (trace,) = json.loads(done.stdout)["traces"]
    assert (trace["id"], trace["outcome"], trace["tries"]) == (TRACE, "recovered", 2)
    assert [line["outcome"] for line in trace["timeline"]] == ["retry", "recovered"]


def test_unknown_ids_and_missing_stores(tmp_path):
    """Both are errors that name the fix, and no file is created."""
    done = amends("trace", "nothing", "--store", recorded(tmp_path))
    assert json.loads(done.stdout)["error"]["code"] == "NOT_FOUND"
    missing = tmp_path / "missing.db"
    for arguments in (("trace", "x"), ("watch", "--no-follow")):
        done = amends(*arguments, "--store", f"sqlite:///{missing}")
        assert done.returncode
        assert "amends.record" in json.loads(done.stdout)["error"]["fix_required"]
    assert not missing.exists()
    assert amends("watch", "--no-follow", "--last", "-1").returncode


def test_watch_filters_the_last_events(tmp_path):
    """One line per event; JSON lines in a pipe."""
    url = recorded(tmp_path)
    lines = amends("watch", "--no-follow", "--store", url).stdout.splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["retry", "recovered", "sent"]
    for option in (
        ("--where", "http", "--outcome", "retry"),
        ("--trace", TRACE[:8], "--last", "1"),
        ("--code", "NOT_FOUND"),
    ):
        done = amends("watch", "--no-follow", "--store", url, "--output", "text", *option)
        assert len(done.stdout.splitlines()) == 1


def test_watch_follows(tmp_path):
    """It prints an event that is recorded while it runs, and ends when it is interrupted."""
    url = recorded(tmp_path)
    with subprocess.Popen(
        [*AMENDS, "watch", "--json", "--last", "1", "--store", url], stdout=subprocess.PIPE, cwd=tmp_path
    ) as watching:
        assert json.loads(watching.stdout.readline())["trace_id"] == "feed"
        with package.record(url):
            recording.emit("tasks", "failed", Fault(code="CONFLICT"), trace_id="42")
        assert json.loads(watching.stdout.readline())["fault"]["code"] == "CONFLICT"
        watching.terminate()
        assert watching.wait(20) == 143


def test_watch_says_what_it_waits_for(tmp_path):
    """On stderr, so that stdout has events only; a store that does not exist yet is named."""
    missing = tmp_path / "missing.db"
    with subprocess.Popen(
        [*AMENDS, "watch", "--json", "--store", f"sqlite:///{missing}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as watching:
        said = watching.stderr.readline().decode()
        watching.terminate()
        assert watching.stdout.read() == b""
    assert said == (
        f"watching sqlite:///{missing}; nothing records into it yet (amends.record or AMENDS_RECORD); Ctrl-C ends\n"
    )
