"""`amends run` passes a command's output on unchanged: any size, slow and closed readers, interrupts and retries."""

import hashlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from amends.process.child import run_once
from amends.process.passthrough import MAX_HELD, Passthrough
from amends.schemas import schema
from tests.process.alive import TIMEOUT, all_gone, read_pids

AMENDS = [sys.executable, "-m", "amends", "run"]
LIMITED = '{"ok":false,"error":{"code":"RATE_LIMITED","message":"x","retryable":true,"retry_after_ms":10}}'
MEBI = 1024 * 1024

# Writes argv[1] MiB to stdout and argv[2] MiB to stderr, alternately, and exits with argv[3].
WRITER = """
import hashlib, os, sys
def block(seed, n):
    return hashlib.sha256(b"%s %d" % (seed, n)).digest() * 32768
def write(fd, data):
    while data:
        data = data[os.write(fd, data):]
out, err = int(sys.argv[1]), int(sys.argv[2])
for n in range(max(out, err)):
    if n < out:
        write(1, block(b"out", n))
    if n < err:
        write(2, block(b"err", n))
sys.exit(int(sys.argv[3]))
"""


def digest(seed, blocks):
    """Return the digest of what WRITER writes to one stream."""
    whole = hashlib.sha256()
    for n in range(blocks):
        whole.update(hashlib.sha256(b"%s %d" % (seed, n)).digest() * 32768)
    return whole.hexdigest()


def read_all(pipe, found, name):
    whole, size = hashlib.sha256(), 0
    while piece := pipe.read1(MEBI):
        whole.update(piece)
        size += len(piece)
    found[name] = (whole.hexdigest(), size)


def run_and_hash(command):
    """Run a command; return its exit code, its peak memory in KiB, and digest and size of both streams."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    found = {}
    threads = [
        threading.Thread(target=read_all, args=(pipe, found, name))
        for name, pipe in (("out", process.stdout), ("err", process.stderr))
    ]
    for thread in threads:
        thread.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    for thread in threads:
        thread.join()
    process.stdout.close()
    process.stderr.close()
    return process.returncode, usage.ru_maxrss, found


@pytest.mark.parametrize("attempts", ["1", "3"])
def test_100_mb_pass_through_in_constant_memory(attempts):
    """Both streams arrive byte for byte at any size, and the memory does not grow with them."""
    writer = [sys.executable, "-c", WRITER]
    *_, small, _ = run_and_hash([*AMENDS, "--max-attempts", attempts, "--", *writer, "1", "1", "0"])
    code, memory, found = run_and_hash([*AMENDS, "--max-attempts", attempts, "--", *writer, "100", "40", "0"])
    assert code == 0
    assert found == {
        "out": (digest(b"out", 100), 100 * MEBI),
        "err": (digest(b"err", 40), 40 * MEBI),
    }
    assert memory - small < 40 * 1024, (memory, small)


def test_a_failure_after_100_mb_keeps_output_and_exit_code():
    """Output that was passed on cannot be taken back, so the command is not repeated; the reason is printed."""
    tail = f"import sys; sys.stdout.buffer.write(b'x' * {20 * MEBI} + b'\\n' + {LIMITED.encode()!r}); sys.exit(9)"
    done = subprocess.run([*AMENDS, "--", sys.executable, "-c", tail], capture_output=True, timeout=60)
    assert done.returncode == 9
    assert done.stdout == b"x" * (20 * MEBI) + b"\n" + LIMITED.encode()
    assert b"RATE_LIMITED, 1 try" in done.stderr
    assert b"passed on" in done.stderr


def test_a_repeated_attempt_leaves_only_its_stderr(tmp_path):
    """The stdout of a run that is repeated is dropped, up to the limit; stdout is that of the last run alone."""
    script = f"""
echo run >> {tmp_path}/runs; n=$(wc -l < {tmp_path}/runs); echo "note $n" >&2
head -c 6000000 /dev/zero | tr '\\0' $n
if [ $n -lt 3 ]; then echo; echo '{LIMITED}'; exit 9; fi
"""
    done = subprocess.run([*AMENDS, "--", "sh", "-c", script], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"3" * 6_000_000)
    assert [line for line in done.stderr.splitlines() if b"note" in line] == [b"note 1", b"note 2", b"note 3"]


def test_the_last_possible_run_streams_at_once(tmp_path):
    """The last run that is allowed cannot be repeated, so its output is not held."""
    script = f"""
echo run >> {tmp_path}/runs; n=$(wc -l < {tmp_path}/runs); echo $$ > {tmp_path}/up
echo "run $n"
if [ $n = 1 ]; then echo '{LIMITED}'; exit 9; fi
exec sleep 60
"""
    with subprocess.Popen(
        [*AMENDS, "--max-attempts", "2", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"run 2\n"
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 143
    assert all_gone(read_pids(tmp_path / "up"))


class Blocked:
    """`amends run` of an endless writer whose reader does not read. The writer records how much it wrote."""

    def __init__(self, tmp_path, *options):
        self.progress = tmp_path / "progress"
        writer = (
            "import os\nn = 0\nwhile True:\n"
            "    n += os.write(1, b'%065535d\\n' % (n // 65536))\n"
            f"    open({str(self.progress)!r}, 'a').write(f'{{os.getpid()}} {{n}}\\n')\n"
        )
        self.process = subprocess.Popen(
            [*AMENDS, *options, "--", sys.executable, "-c", writer],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def until_blocked(self):
        """Wait until the writer sleeps in a write; return its process id and the bytes it wrote."""
        end = time.monotonic() + TIMEOUT
        last = None
        while time.monotonic() < end:
            lines = self.progress.read_text().split("\n") if self.progress.exists() else []
            if len(lines) > 1:
                pid, size = map(int, lines[-2].split())
                sleeps = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
                if sleeps and size == last and size > MAX_HELD // 2:
                    return pid, size
                last = size
            time.sleep(0.3)
        raise AssertionError("the writer never blocked")


def test_a_reader_that_does_not_read_stops_the_writer(tmp_path):
    """Back-pressure: the writer waits for the reader, and everything arrives when the reader goes on."""
    blocked = Blocked(tmp_path)
    pid, size = blocked.until_blocked()
    assert size < MAX_HELD + 2 * MEBI
    for n in range(size // 65536 + 50):
        assert blocked.process.stdout.read(65536) == b"%065535d\n" % n
    blocked.process.terminate()
    _, errors = blocked.process.communicate(timeout=30)
    assert blocked.process.returncode == 143, errors
    assert all_gone([pid])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_while_the_reader_does_not_read(number, code, tmp_path):
    """A blocked reader delays neither an interrupt nor the end of the command by more than a bound."""
    blocked = Blocked(tmp_path)
    pid, _ = blocked.until_blocked()
    blocked.process.send_signal(number)
    assert blocked.process.wait(30) == code
    assert all_gone([pid])
    blocked.process.stdout.close()
    blocked.process.stderr.close()


def test_a_timeout_while_the_reader_does_not_read(tmp_path):
    """The timeout ends the run although its output cannot be passed on."""
    blocked = Blocked(tmp_path, "--timeout", "5")
    pid, _ = blocked.until_blocked()
    assert blocked.process.wait(60) == 1  # in doubt, not 7: that invites a repeat
    assert all_gone([pid])
    assert b"TIMEOUT" in blocked.process.stderr.read()
    blocked.process.stdout.close()
    blocked.process.stderr.close()


def test_a_blocked_stderr_does_not_hold_up_stdout(tmp_path):
    """The two streams are passed on independently."""
    script = (
        f"echo begun; head -c 10000000 /dev/zero >&2 & echo $! > {tmp_path}/pid; sleep 1; echo later; wait"
    )
    with subprocess.Popen(
        [*AMENDS, "--max-attempts", "1", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"begun\n"
        assert process.stdout.readline() == b"later\n"
        assert len(process.stderr.read()) == 10_000_000
    assert process.returncode == 0


# A closed stdout -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--read-only"], ["--max-attempts", "1"]])
def test_a_closed_stdout_is_141(options, tmp_path):
    """The reader closed the pipe: the command is terminated, not repeated, and the exit code is 141."""
    script = f"echo $$ >> {tmp_path}/pids; exec yes"
    process = subprocess.Popen(
        [*AMENDS, *options, "--", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 141
    assert len(read_pids(tmp_path / "pids")) == 1
    assert all_gone(read_pids(tmp_path / "pids"))


@pytest.mark.parametrize("output", ["text", "json", "problem"])
@pytest.mark.parametrize("command", ["echo hi", "echo hi; exit 3"])
def test_a_stdout_that_was_closed_from_the_beginning(output, command):
    """A success and a failure whose output has no reader exit with 141."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            [*AMENDS, "--output", output, "--", "sh", "-c", command],
            stdout=pipe,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr
    line = " ".join([*AMENDS, "--output", output, "--", "sh", "-c", f"'{command}'"])
    done = subprocess.run(["sh", "-c", f"{line} >&-"], capture_output=True, timeout=60)
    assert done.returncode == 141


def test_a_full_disk_is_not_a_success():
    """Output that cannot be written is reported, and the exit code is 1."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*AMENDS, "--", "echo", "hi"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1
    assert b"could not be written" in done.stderr


# Documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("output", ["json", "problem"])
def test_an_interrupt_still_prints_the_document(output, number, code, tmp_path):
    """An interrupted run prints its document: what happened, what the command wrote, and that it may have had an effect."""
    script = f"echo begun; echo $$ > {tmp_path}/up; exec sleep 60"
    process = subprocess.Popen(
        [*AMENDS, "--output", output, "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pids = read_pids(tmp_path / "up")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, b"")
    document = json.loads(out)
    Draft202012Validator(schema("envelope" if output == "json" else "problem")).validate(document)
    assert document["data"]["stdout"] == "begun\n"
    if output == "json":
        assert (document["ok"], document["error"]["retryable"], document["meta"]["attempt"]) == (
            False,
            False,
            1,
        )
    else:
        assert document["is_retriable"] is False
    assert all_gone(pids)


def test_an_interrupt_during_a_wait_prints_the_document(tmp_path):
    """The document has the run that was made before the wait."""
    slow = LIMITED.replace("10}", "60000}")
    process = subprocess.Popen(
        [*AMENDS, "--output", "json", "--", "sh", "-c", f"echo '{slow}'; exit 9"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert b"next in" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    document = json.loads(out)
    assert document["data"]["exit"] == 9
    assert [(run["exit"], run["code"]) for run in document["meta"]["runs"]] == [(9, "RATE_LIMITED")]


def test_an_interrupt_of_a_second_run_prints_both(tmp_path):
    """The document counts the run that was interrupted, and has what is known about the first."""
    ran, again = tmp_path / "ran", tmp_path / "again"
    os.mkfifo(again)
    script = f"test -e {ran} && {{ echo > {again}; exec sleep 60; }}; touch {ran}; echo '{LIMITED}'; exit 9"
    process = subprocess.Popen(
        [*AMENDS, "--output", "json", "--", "sh", "-c", script], stdout=subprocess.PIPE
    )
    again.read_text()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    meta = json.loads(out)["meta"]
    assert (process.returncode, meta["attempt"], [run["exit"] for run in meta["runs"]]) == (130, 2, [9])


def test_an_interrupt_in_text_passes_on_what_was_held(tmp_path):
    """What the command wrote before the interrupt is not lost."""
    process = subprocess.Popen(
        [*AMENDS, "--", "sh", "-c", f"echo begun; echo $$ > {tmp_path}/up; exec sleep 60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    read_pids(tmp_path / "up")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == b"begun\n"
    assert process.returncode == 130


def test_problem_documents():
    """--output problem: a failure is one problem document with the decision and the run, with the same exit code."""
    done = subprocess.run(
        [*AMENDS, "--output", "problem", "--", "sh", "-c", f"echo '{LIMITED}'; exit 9"],
        capture_output=True,
        timeout=60,
    )
    document = json.loads(done.stdout)
    assert (done.returncode, document["code"], document["decision"]["reason"]) == (
        9,
        "RATE_LIMITED",
        "attempts",
    )
    assert document["data"]["exit"] == 9
    done = subprocess.run(
        [*AMENDS, "--", "echo", "hi"],
        capture_output=True,
        timeout=60,
        env={**os.environ, "AMENDS_OUTPUT": "problem"},
    )
    assert (done.returncode, json.loads(done.stdout)["data"]["stdout"]) == (0, "hi\n")


class Arrived(BaseException):
    """Raised by a handler, as Ctrl-C is."""


def test_a_signal_between_two_steps_of_a_transfer(monkeypatch):
    """A handler that raises while a descriptor is exchanged for another: the run ends with that, not with a KeyError."""
    reader, writer = os.pipe()
    sent = []

    def arrive(*_):
        raise Arrived

    unregister = selectors.PollSelector.unregister

    def interrupted(self, fd):
        key = unregister(self, fd)
        if not sent:
            sent.append(fd)
            signal.raise_signal(signal.SIGTERM)
        return key

    monkeypatch.setattr(selectors.PollSelector, "unregister", interrupted)
    before = signal.signal(signal.SIGTERM, arrive)
    try:
        with pytest.raises(Arrived):
            run_once(
                [sys.executable, "-c", "while True: print('x' * 100)"], passthrough=Passthrough(writer, None)
            )
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(reader)
        os.close(writer)


def test_the_attempt_of_a_success():
    """A command that succeeds in its first run is attempt 1."""
    done = subprocess.run([*AMENDS, "--output", "json", "--", "true"], capture_output=True, timeout=60)
    meta = json.loads(done.stdout)["meta"]
    assert (meta["attempt"], len(meta["runs"])) == (1, 1)


def test_the_only_run_is_not_said_to_be_passed_on_too_early():
    """With --max-attempts 1 there is no repeat that the output could prevent."""
    done = subprocess.run(
        [*AMENDS, "--max-attempts", "1", "--", "sh", "-c", "exit 3"], capture_output=True, timeout=60
    )
    assert b"the command failed (exit 3): INTERNAL_ERROR, 1 try\n" in done.stderr
