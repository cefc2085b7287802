"""Tests of the guard binding: functions without a command-line framework."""

import json
import subprocess
import sys
from pathlib import Path

from tests.bindings.commands import ENV, run_json, run_sample


def run_program(program, *arguments, env=ENV):
    """Run a program that uses guard in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, env=env, timeout=60
    )


def test_an_async_function_and_its_arguments():
    """An async function runs to its end, and the common options are removed from sys.argv."""
    code, envelope = run_json("guard", "echo", "x", "--debug")
    assert (code, envelope["data"]) == (0, {"argv": ["echo", "x"]})


def test_an_exit_of_a_framework_inside_the_function():
    """argparse exits with 2 for wrong arguments; the same number of the program itself does not say that."""
    program = (
        "import argparse\nfrom amends.bindings.guard import guard\n"
        "guard(lambda: argparse.ArgumentParser().parse_args())()\n"
    )
    done = run_program(program, "--nope", "--output", "json")
    assert done.returncode == 2
    assert b'"VALIDATION_ERROR"' in done.stdout
    assert b"usage:" in done.stderr
    done = run_program(
        "import sys\nfrom amends.bindings.guard import guard\nguard(lambda: sys.exit(2))()\n",
        "--output",
        "json",
    )
    assert done.returncode == 2
    assert b'"INTERNAL_ERROR"' in done.stdout


def test_printed_help_is_the_data():
    """Text printed for --help becomes the data; other printed text goes to stderr, also if a flag is called -h."""
    program = "import sys\nfrom amends.bindings.guard import guard\nguard(lambda: print('text'))()\n"
    for arguments, data in (
        (["--help"], {"text": "text\n"}),
        (["-h"], {"text": "text\n"}),
        (["-h", "db"], None),
    ):
        done = run_program(program, *arguments, "--output", "json")
        assert json.loads(done.stdout)["data"] == data
        assert (b"text" in done.stderr) is (data is None)


def test_success_own():
    """success="own": the function writes its own JSON, and failures are still envelopes."""
    program = (
        "import sys\nfrom amends.bindings.guard import guard\n"
        "def run():\n    print('[1]')\n    sys.exit(int(sys.argv[1]))\n"
        "guard(run, success='own', piped='json')()\n"
    )
    done = run_program(program, "0")
    assert (done.returncode, done.stdout) == (0, b"[1]\n")
    done = run_program(program, "4")
    assert done.returncode == 4
    assert b'"INTERNAL_ERROR"' in done.stdout


def test_the_applications_sigterm_handler_stays():
    """A SIGTERM handler of the application is not replaced."""
    program = (
        "import os, signal, sys\nfrom amends.bindings.guard import guard\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "guard(lambda: os.kill(os.getpid(), signal.SIGTERM))()\n"
    )
    done = run_program(program)
    assert done.returncode == 5


def test_outside_the_main_thread():
    """Outside the main thread no signal handlers are installed, and everything else works."""
    program = (
        "import threading\nfrom amends.bindings.guard import guard\n"
        "threading.Thread(target=guard(lambda: {'a': 1})).start()\n"
    )
    done = run_program(program, "--output", "json")
    assert b'"data": {"a": 1}' in done.stdout


def test_messages_with_characters_outside_the_encoding():
    """A character that the terminal's encoding lacks is replaced."""
    program = (
        "from amends.bindings.guard import guard\nfrom amends.errors import NotFoundError\n"
        "def run():\n    raise NotFoundError('\\u2603 gone')\nguard(run)()\n"
    )
    env = {**ENV, "PYTHONIOENCODING": "ascii:strict"}
    done = run_program(program, env=env)
    assert (done.returncode, b"gone" in done.stderr) == (4, True)
    assert run_sample("guard", "fail", "missing", env={"FORCE_COLOR": "1"}).stderr.startswith(b"\x1b[1;31m")


def test_text_printed_for_help_goes_to_stderr_on_failure():
    """If a command prints and fails under --help, its printed text goes to stderr."""
    program = (
        "import sys\nfrom amends.bindings.guard import guard\n"
        "def run():\n    print('text')\n    sys.exit(4)\nguard(run)()\n"
    )
    done = run_program(program, "--help", "--output", "json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "INTERNAL_ERROR")
    assert b"text" in done.stderr


def test_an_exception_whose_attributes_are_broken():
    """A FaultError without a usable fault is reported as INTERNAL_ERROR."""
    program = (
        "from amends import FaultError\nfrom amends.bindings.guard import guard\n"
        "def run():\n    error = FaultError('x')\n    error.fault = None\n    raise error\nguard(run)()\n"
    )
    done = run_program(program, "--output", "json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "INTERNAL_ERROR")


def test_without_stderr():
    """With a closed stderr the exit code still reports the failure."""
    program = (
        "from amends.bindings.guard import guard\nfrom amends.errors import RateLimitedError\n"
        "def run():\n    raise RateLimitedError('x', retry_after=3)\nguard(run)()\n"
    )
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" 2>&-', sys.executable, program], capture_output=True, env=ENV, timeout=60
    )
    assert (done.returncode, done.stdout) == (9, b"")


def test_a_stdout_that_was_closed_by_number():
    """If descriptor 1 is closed although Python still has a stdout, the exit code is 141."""
    program = "import os\nfrom amends.bindings.guard import guard\nos.close(1)\nguard(lambda: {'a': 1})()\n"
    done = run_program(program, "--output", "json")
    assert (done.returncode, done.stdout, done.stderr) == (141, b"", b"")


def test_a_stderr_that_is_full():
    """If stderr cannot be written, the exit code still reports the failure."""
    program = (
        "from amends.bindings.guard import guard\nfrom amends.errors import NotFoundError\n"
        "def run():\n    raise NotFoundError('gone')\nguard(run)()\n"
    )
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", program], stderr=full, env=ENV, timeout=60)
    assert done.returncode == 4


def test_signal_handlers_are_restored():
    """A program that runs a guarded function keeps its signal handlers."""
    program = (
        "import signal\nfrom amends.bindings.guard import guard\n"
        "def now(): return [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]\n"
        "before = now()\n"
        "for work in (lambda: None, lambda: 1 / 0):\n"
        "    try: guard(work)()\n"
        "    except SystemExit: pass\n"
        "assert now() == before, now()\n"
    )
    done = run_program(program)
    assert done.returncode == 0, done.stderr
