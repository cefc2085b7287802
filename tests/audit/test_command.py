"""C11: `amends audit cli`, run as a program in a pipe and in CI."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from amends.audit.sandbox import ENFORCED

APPS = Path(__file__).parent / "apps"
AMENDS = [sys.executable, "-m", "amends", "audit", "cli"]
SRC = str(Path(__file__).parents[2] / "src")
TOOL = [sys.executable, str(APPS / "argparse_app.py")]
ENV = ["--env", f"PYTHONPATH={SRC}{os.pathsep}{APPS}"]


def audit(*arguments):
    return subprocess.run([*AMENDS, *arguments], capture_output=True, timeout=100)


def test_a_full_audit(tmp_path):
    """Score, evidence, HTML page and exit code; the report has whether the network was cut off."""
    page = tmp_path / "report.html"
    arguments = [
        "--fixture",
        "--call",
        "get {url}",
        "--env",
        "BOUND=1",
        *ENV,
        "--html",
        page,
        "--min",
        "3",
        "--",
        *TOOL,
    ]
    done = audit(*arguments)
    report = json.loads(done.stdout)
    assert (done.returncode, report["score"]) == (0, 3), done.stderr
    network = report["evidence"]["network"]
    assert network == ENFORCED or network.startswith("not enforced: ")
    assert "retry_after_ms" in page.read_text()
    assert (report["because"], report["warnings"]) == ("all conditions are met", [])
    costs = {each["probe"]: each for each in report["reading_costs"]}
    assert costs["429"]["bytes"] > 100
    assert costs["total"]["bytes"] == sum(each["bytes"] for name, each in costs.items() if name != "total")
    assert all(each["tokens"] == -(-each["bytes"] // 4) for each in costs.values())
    assert "tokens" in page.read_text()


def test_min_exits_with_1():
    """--min: exit 1 if the certain score is lower; --keep-network leaves the network alone."""
    done = audit("--min", "1", "--keep-network", "--output", "text", *ENV, "--", *TOOL)
    assert done.returncode == 1
    assert b"not enforced: --keep-network" in done.stdout
    assert done.stdout.startswith(b"? (0 to 1 of 3)")


def test_relative_paths(tmp_path):
    """Probes run in another directory; a script next to the caller is found all the same."""
    (tmp_path / "sub").mkdir()
    for name in ("tool.py", "sub/tool.py"):
        (tmp_path / name).write_text(
            "import sys\nprint('usage: tool')\nsys.exit(0 if '--help' in sys.argv else 2)\n"
        )
        done = subprocess.run(
            [*AMENDS, "--keep-network", "--", sys.executable, name],
            capture_output=True,
            timeout=100,
            cwd=tmp_path,
        )
        report = json.loads(done.stdout)
        assert report["evidence"]["observations"][0]["stdout"] == "usage: tool\n"
        assert report["command"] == [sys.executable, str(tmp_path / name)]
        assert report["warnings"] == []


def test_a_command_whose_help_fails():
    """If even --help fails, the report says so before the scores."""
    done = audit("--keep-network", "--output", "text", "--", sys.executable, "no-such-script.py")
    assert b"even --help failed with exit 2" in done.stdout
    assert b"not met" in done.stdout or b"unknown" in done.stdout


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rn", "true"], check=False).returncode != 0, reason="no namespaces"
)
def test_no_network_but_loopback(tmp_path):
    """A probe cannot reach an address other than loopback."""
    tool = tmp_path / "tool.py"
    tool.write_text(
        "import socket\n"
        "for address in ('127.0.0.1', 9), ('192.0.2.1', 9):\n"
        "    try:\n        socket.create_connection(address, timeout=3)\n"
        "    except OSError as error:\n        print(type(error).__name__, error.errno)\n"
    )
    done = audit("--timeout", "20", "--", sys.executable, str(tool))
    report = json.loads(done.stdout)
    assert report["evidence"]["network"] == ENFORCED
    assert report["evidence"]["observations"][0]["stdout"].split() == [
        "ConnectionRefusedError",
        "111",
        "OSError",
        "101",
    ]


@pytest.mark.parametrize(
    ("arguments", "exit"),
    [
        (["tool"], 3),
        (["--"], 3),
        (["--fixture", "--", "true"], 3),
        (["--call", "x", "--", "true"], 3),
        (["--env", "novalue", "--", "true"], 2),
        (["--min", "7", "--", "true"], 2),
        (["--", "no-such-tool-at-all"], 4),
    ],
)
def test_mistakes(arguments, exit):
    """C7: mistakes in the arguments are reported as envelopes."""
    done = audit(*arguments)
    assert done.returncode == exit
    assert json.loads(done.stdout)["ok"] is False
