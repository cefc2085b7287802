"""guard: a function without a framework."""

import json
import subprocess
import sys
from pathlib import Path

from tests.bindings.commands import ENV, answer, sample


def ran(program, *words, env=ENV):
    """A program that guards something, as a process of its own."""
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, env=env, timeout=60)


def test_an_async_function_and_its_arguments():
    """An async function is run to its end; our own flags are gone from sys.argv."""
    code, envelope = answer("guard", "later", "x", "--debug")
    assert (code, envelope["data"]) == (0, {"argv": ["later", "x"]})


def test_a_framework_inside():
    """Whatever exits inside is read by its number: argparse's 2 is a bad value."""
    program = (
        "import argparse\nfrom amends.bindings.guard import guard\n"
        "guard(lambda: argparse.ArgumentParser().parse_args())()\n"
    )
    done = ran(program, "--nope", "--output", "json")
    assert done.returncode == 2
    assert b'"VALIDATION_ERROR"' in done.stdout
    assert b"usage:" in done.stderr


def test_a_help_text_of_its_own():
    """What a function prints for --help is the answer; of other calls it goes to stderr, also with a flag called -h."""
    program = "import sys\nfrom amends.bindings.guard import guard\nguard(lambda: print('words'))()\n"
    for words, data in (
        (["--help"], {"text": "words\n"}),
        (["-h"], {"text": "words\n"}),
        (["-h", "db"], None),
    ):
        done = ran(program, *words, "--output", "json")
        assert json.loads(done.stdout)["data"] == data
        assert (b"words" in done.stderr) is (data is None)


def test_results_of_its_own():
    """success="own": the function's JSON is its own, failures are still envelopes."""
    program = (
        "import sys\nfrom amends.bindings.guard import guard\n"
        "def run():\n    print('[1]')\n    sys.exit(int(sys.argv[1]))\n"
        "guard(run, success='own', piped='json')()\n"
    )
    done = ran(program, "0")
    assert (done.returncode, done.stdout) == (0, b"[1]\n")
    done = ran(program, "4")
    assert done.returncode == 4
    assert b'"NOT_FOUND"' in done.stdout


def test_an_application_that_listens_itself():
    """A SIGTERM handler of the application's own is left alone."""
    program = (
        "import os, signal, sys\nfrom amends.bindings.guard import guard\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "guard(lambda: os.kill(os.getpid(), signal.SIGTERM))()\n"
    )
    done = ran(program)
    assert done.returncode == 5


def test_outside_the_main_thread():
    """Without the main thread there are no signals to listen to, and everything else works."""
    program = (
        "import threading\nfrom amends.bindings.guard import guard\n"
        "threading.Thread(target=guard(lambda: {'a': 1})).start()\n"
    )
    done = ran(program, "--output", "json")
    assert b'"data": {"a": 1}' in done.stdout


def test_texts_that_a_terminal_cannot_show():
    """A message outside the terminal's alphabet is shown as well as it can be."""
    program = (
        "from amends.bindings.guard import guard\nfrom amends.errors import NotFoundError\n"
        "def run():\n    raise NotFoundError('\\u2603 gone')\nguard(run)()\n"
    )
    env = {**ENV, "PYTHONIOENCODING": "ascii:strict"}
    done = ran(program, env=env)
    assert (done.returncode, b"gone" in done.stderr) == (4, True)
    assert sample("guard", "fail", "missing", env={"FORCE_COLOR": "1"}).stderr.startswith(b"\x1b[1m")


def test_words_kept_for_help_are_not_lost_when_it_fails():
    """A command that prints and fails under --help: its words go to stderr."""
    program = (
        "import sys\nfrom amends.bindings.guard import guard\n"
        "def run():\n    print('words')\n    sys.exit(4)\nguard(run)()\n"
    )
    done = ran(program, "--help", "--output", "json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "NOT_FOUND")
    assert b"words" in done.stderr


def test_an_exception_that_cannot_be_looked_at():
    """However hostile an exception is, it ends in an answer."""
    program = (
        "from amends import FaultError\nfrom amends.bindings.guard import guard\n"
        "def run():\n    error = FaultError('x')\n    error.fault = None\n    raise error\nguard(run)()\n"
    )
    done = ran(program, "--output", "json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "INTERNAL_ERROR")


def test_without_stderr():
    """Nobody listens on stderr: the exit code still says it."""
    program = (
        "from amends.bindings.guard import guard\nfrom amends.errors import RateLimitedError\n"
        "def run():\n    raise RateLimitedError('x', retry_after=3)\nguard(run)()\n"
    )
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" 2>&-', sys.executable, program], capture_output=True, env=ENV, timeout=60
    )
    assert (done.returncode, done.stdout) == (9, b"")


def test_a_stdout_closed_behind_our_back():
    """Descriptor 1 is gone although Python still has a stdout: said on stderr, and a success is no success then."""
    program = "import os\nfrom amends.bindings.guard import guard\nos.close(1)\nguard(lambda: {'a': 1})()\n"
    done = ran(program, "--output", "json")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"could not be written" in done.stderr


def test_a_stderr_that_is_full():
    """What cannot be said to a person is still said by the exit code."""
    program = (
        "from amends.bindings.guard import guard\nfrom amends.errors import NotFoundError\n"
        "def run():\n    raise NotFoundError('gone')\nguard(run)()\n"
    )
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", program], stderr=full, env=ENV, timeout=60)
    assert done.returncode == 4


def test_signals_are_as_before_afterwards():
    """A program that calls a command of its own goes on, and can be interrupted."""
    program = (
        "import signal\nfrom amends.bindings.guard import guard\n"
        "def now(): return [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]\n"
        "before = now()\n"
        "for work in (lambda: None, lambda: 1 / 0):\n"
        "    try: guard(work)()\n"
        "    except SystemExit: pass\n"
        "assert now() == before, now()\n"
    )
    done = ran(program)
    assert done.returncode == 0, done.stderr
