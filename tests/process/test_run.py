"""The runner with scripted commands: real processes, the exact number of runs, and no processes left behind."""

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time

import pytest

from amends import FaultError, Policy
from amends.process import Feed, arun, child, run
from amends.process.termination import SIGNALS, DeferredSignals, terminate_group
from amends.testing import FakeClock
from tests.process.alive import JumpingClock, alive, all_gone, read_pids

ERROR = {"code": "X", "message": "scripted"}


def envelope(ok=False, meta=None, **error):
    return json.dumps({"ok": ok, "error": {**ERROR, **error}, "meta": meta or {}})


@pytest.fixture
def script(tmp_path):
    """Create a command that counts its runs: script(stdout, exit, before=shell code)."""

    class Script:
        count = tmp_path / "runs"

        def __call__(self, stdout="", exit=1, before=":", after=":"):
            (tmp_path / "out").write_bytes(stdout if isinstance(stdout, bytes) else stdout.encode())
            return [
                "sh",
                "-c",
                f"echo run >> {self.count}\n{before}\ncat {tmp_path / 'out'}\n{after}\nexit {exit}",
            ]

        @property
        def runs(self):
            return len(self.count.read_text().splitlines()) if self.count.exists() else 0

    return Script()


def outcome(argv, **options):
    """Run a command without waiting; return (runs, fault code, decision, waits)."""
    history = []
    with FakeClock() as clock:
        try:
            run(argv, history=history, **options)
        except FaultError as error:
            return len(history), error.fault.code, error.decision.action.value, clock.waits
    return len(history), None, None, clock.waits


UNDECLARED, READ_ONLY, MUTATING = {}, {"read_only": True}, {"mutating": True}

# (name, stdout, exit, runs without a declaration, runs if read-only, runs if mutating)
MATRIX = [
    ("success", "fine", 0, 1, 1, 1),
    ("success with an envelope", '{"ok": true, "data": 1, "meta": {}}', 0, 1, 1, 1),
    ("a list", "[1, 2]", 0, 1, 1, 1),
    ("exit 0 and no envelope", '{"error": "text"}', 0, 1, 1, 1),
    ("retryable true", envelope(retryable=True), 1, 3, 3, 1),
    ("retryable false", envelope(retryable=False), 1, 1, 1, 1),
    ("retryable maybe", envelope(retryable="maybe"), 1, 1, 2, 1),
    ("retryable absent", envelope(), 1, 1, 2, 1),
    ("retryable of another type", envelope(retryable="yes"), 1, 1, 2, 1),
    ("retryable null", envelope(retryable=None), 1, 1, 2, 1),
    ("a rate limit", envelope(code="RATE_LIMITED", retryable=True, retry_after_ms=10), 9, 3, 3, 3),
    ("it may have run", envelope(retryable=True, retry_after_ms=10, executed="maybe"), 1, 1, 3, 1),
    ("it ran", envelope(code="RATE_LIMITED", retryable=True, executed="yes"), 9, 1, 3, 1),
    ("it did not run", envelope(code="INTERNAL_ERROR", retryable=True, executed="no"), 1, 3, 3, 3),
    ("an internal error", envelope(code="INTERNAL_ERROR", retryable=True, retry_after_ms=10), 1, 1, 3, 1),
    ("an unknown effect", envelope(code="EFFECT_UNKNOWN", retryable=True, retry_after_ms=10), 1, 1, 3, 1),
    ("a time-out that may have run", envelope(code="TIMEOUT", retryable=True, executed="maybe"), 7, 1, 3, 1),
    ("a rate limit that is not retryable", envelope(code="RATE_LIMITED", retryable=False), 9, 1, 1, 1),
    ("exit 0 with a failure inside", envelope(retryable=True), 0, 3, 3, 1),
    ("exit 0 with a permanent failure inside", envelope(retryable=False), 0, 1, 1, 1),
    ("ok true with exit 1", '{"ok": true, "data": 1, "meta": {}}', 1, 1, 2, 1),
    ("null error", '{"ok": false, "error": null}', 1, 1, 2, 1),
    ("a list of errors", '{"ok": false, "error": [1]}', 1, 1, 2, 1),
    ("a list and exit 1", "[1, 2]", 1, 1, 2, 1),
    ("text and exit 1", "it broke, please retry", 1, 1, 2, 1),
    ("text and exit 9", "", 9, 1, 2, 1),
    ("nothing and exit 127", "", 127, 2, 2, 2),
    ("binary", bytes(range(256)), 1, 1, 2, 1),
    ("the tool tried three times", envelope(retryable=True, meta={"attempt": 3}), 1, 1, 1, 1),
    ("the tool tried twice", envelope(retryable=True, meta={"attempt": 2}), 1, 2, 2, 1),
    ("max_retries is one", envelope(retryable=True, max_retries=1), 1, 2, 2, 1),
    ("max_retries is zero", envelope(retryable=True, max_retries=0), 1, 1, 1, 1),
    ("failed in validation", envelope(retryable="maybe", phase="validation"), 1, 2, 2, 2),
    ("log lines after the envelope", envelope(retryable=True) + "\nclosing\ndone {}\n", 1, 3, 3, 1),
    ("a log line of JSON after it", envelope(retryable=True) + '\n{"level": "info"}\n', 1, 3, 3, 1),
    ("exit 0 and log lines after it", envelope(retryable=True) + "\nretried, done\n", 0, 1, 1, 1),
    ("text before the envelope", "loading\n" + envelope(retryable=True), 1, 3, 3, 1),
]


@pytest.mark.parametrize(
    ("name", "stdout", "exit", "undeclared", "read_only", "mutating"),
    MATRIX,
    ids=lambda v: v if isinstance(v, str) and len(v) < 45 else "",
)
def test_number_of_runs(script, name, stdout, exit, undeclared, read_only, mutating):
    """C12: the number of runs for every kind of output under every declaration."""
    argv = script(stdout, exit)
    for options, expected in ((UNDECLARED, undeclared), (READ_ONLY, read_only), (MUTATING, mutating)):
        before = script.runs
        runs, *_ = outcome(argv, **options)
        assert (script.runs - before, runs) == (expected, expected), (name, options)


def test_an_envelope_on_stderr(script):
    """A tool may write its envelope to stderr, among log lines; with exit 0 it is a log line itself."""
    line = envelope(code="RATE_LIMITED", retryable=True, retry_after_ms=10)
    before = f"echo begun >&2; echo '{line}' >&2; echo bye >&2"
    assert outcome(script("[1, 2]", 9, before=before))[:2] == (3, "RATE_LIMITED")
    assert outcome(script("[1, 2]", 0, before=before))[:2] == (1, None)
    stdout = envelope(code="NOT_FOUND", retryable=False)
    assert outcome(script(stdout, 4, before=before))[:2] == (1, "NOT_FOUND"), "stdout comes first"


@pytest.mark.parametrize(
    ("profile", "exit", "code", "runs"),
    [
        ("v1", 9, "RATE_LIMITED", 3),
        ("v1", 7, "TIMEOUT", 3),
        ("v1", 2, "VALIDATION_ERROR", 1),
        ("v1", 8, "PERMISSION_DENIED", 1),
        ("v2", 9, "PAYMENT_REQUIRED", 1),
        ("v2", 11, "RATE_LIMITED", 3),
        ("curl", 7, "NETWORK_ERROR", 3),
        ("curl", 6, "NETWORK_ERROR", 3),
        ("curl", 28, "TIMEOUT", 1),
        ("curl", 22, "INTERNAL_ERROR", 1),
        ("curl", 60, "PERMISSION_DENIED", 1),
        ("curl", 47, "INTERNAL_ERROR", 1),
        ("curl", 240, "INTERNAL_ERROR", 1),
        ("gh", 4, "AUTH_REQUIRED", 1),
        ("gh", 1, "INTERNAL_ERROR", 1),
        ("aws", 252, "USAGE_ERROR", 1),
        ("aws", 254, "INTERNAL_ERROR", 1),
        ("git", 129, "USAGE_ERROR", 1),
        ("kubectl", 1, "INTERNAL_ERROR", 1),
        ("wget", 4, "NETWORK_ERROR", 1),
        ("rsync", 30, "TIMEOUT", 1),
        (None, 7, "INTERNAL_ERROR", 1),
        (None, 9, "INTERNAL_ERROR", 1),
        (None, 64, "USAGE_ERROR", 1),
        (None, 66, "NOT_FOUND", 1),
        (None, 75, "SERVICE_UNAVAILABLE", 1),
        (None, 77, "PERMISSION_DENIED", 1),
        ("v1", 75, "INTERNAL_ERROR", 1),
        ("gh", 75, "INTERNAL_ERROR", 1),
    ],
)
def test_profiles(script, profile, exit, code, runs):
    """C12: exit codes count only under a declared profile, and only if they are specific."""
    assert outcome(script("", exit), profile=profile)[:2] == (runs, code)


TIMED_OUT = envelope(code="TIMEOUT")


@pytest.mark.parametrize(
    ("name", "stdout", "exit", "profile", "runs"),
    [
        ("named conformant", "", 7, "v1", 3),
        ("an envelope and exit 7", TIMED_OUT, 7, None, 3),
        ("an envelope without an error, and exit 7", '{"ok": false}', 7, None, 3),
        ("retryable true, another exit", envelope(code="TIMEOUT", retryable=True), 1, None, 3),
        ("an envelope, another exit", TIMED_OUT, 1, None, 1),
        ("retryable false", envelope(code="TIMEOUT", retryable=False), 7, None, 1),
        ("retryable maybe", envelope(code="TIMEOUT", retryable="maybe"), 7, None, 1),
        ("another code", envelope(code="CONFLICT"), 7, None, 1),
        ("the newer table, where 7 is another failure", "", 7, "v2", 1),
        ("a tool that is not known", "", 7, None, 1),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 45 else "",
)
def test_exit_7_is_repeated_at_once(script, name, stdout, exit, profile, runs):
    """M3: exit 7 of a tool that wrote an envelope or was named conformant is repeated at once, unless it is mutating."""
    argv = script(stdout, exit)
    found, _, _, waits = outcome(argv, profile=profile)
    assert found == runs
    if runs == 3:
        assert waits == [2.0], "the first repeat comes at once, the second after a backoff"
    assert outcome(argv, profile=profile, **MUTATING)[0] == 1


def test_sysexits_of_a_read_only_command(script):
    """EX_TEMPFAIL is a temporary failure: a read-only command is repeated as often as the policy allows."""
    assert outcome(script("", 75), **READ_ONLY)[:2] == (3, "SERVICE_UNAVAILABLE")
    assert outcome(script("", 70), **READ_ONLY)[:2] == (2, "INTERNAL_ERROR")
    assert outcome(script("", 78), **READ_ONLY)[:2] == (1, "PRECONDITION_FAILED")
    # sendmail exits with 75 when it queued the message: whether there was an effect is not known.
    assert outcome(script("", 75), **MUTATING)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [
        ([], 3),
        (["-d", "x"], 3),
        (["-L"], 1),
        (["-sSL"], 1),
        (["--location"], 1),
        (["--next"], 1),
        (["http://other.example"], 1),
    ],
)
def test_the_programs_name_selects_its_profile(tmp_path, arguments, runs):
    """`-- curl …` is read with curl's table. With redirects or several URLs an earlier request may have had an effect."""
    curl = tmp_path / "curl"
    curl.write_text("#!/bin/sh\nexit 7\n")
    curl.chmod(0o755)
    argv = [str(curl), *arguments, "http://127.0.0.1:9"]
    assert outcome(argv)[:2] == (runs, "NETWORK_ERROR")
    assert outcome(argv, profile="v1")[1] == "TIMEOUT", "a profile that is named comes first"


def test_an_envelope_beats_a_profile(script):
    """C12: the envelope decides before the profile."""
    _, code, *_ = outcome(script(envelope(code="NOT_FOUND", retryable=False), 28), profile="curl")
    assert code == "NOT_FOUND"


def test_waits(script):
    """C12: retry_after_ms is respected; a rate limit without it waits 5 s; a wait beyond the limit is not started."""
    assert outcome(script(envelope(code="RATE_LIMITED", retryable=True, retry_after_ms=7000), 9))[3] == [
        7.0,
        7.0,
    ]
    assert outcome(script(envelope(code="RATE_LIMITED", retryable=True), 9))[3] == [5.0, 5.0]
    runs, _, action, waits = outcome(script(envelope(retryable=True, retry_after_ms=3_600_000)))
    assert (runs, action, waits) == (1, "escalate", [])


def test_a_signal_beats_an_envelope(script):
    """C12: a killed command may have had its effect, whatever it wrote before."""
    argv = script(envelope(retryable=True), 1, after="kill -KILL $$")
    assert outcome(argv)[:3] == (1, "INTERNAL_ERROR", "verify")
    assert outcome(argv, **READ_ONLY)[0] == 2


def test_signals_without_a_name(script):
    """A real-time signal is reported as SIGRTMIN+n."""
    with pytest.raises(FaultError) as caught:
        run(script("", 1, after="kill -36 $$"))
    assert caught.value.fault.details == {"signal": "SIGRTMIN+2"}
    assert caught.value.history[-1].result.signal_number == 36


def test_an_exit_status_that_is_lost(tmp_path):
    """If other code waits for the child, its exit status is unknown: neither a success nor a retry."""
    program = (
        "import signal\nfrom amends import FaultError\nfrom amends.process import run\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"try:\n    run(['sh', '-c', 'echo run >> {tmp_path}/runs; exit 0'])\n"
        "except FaultError as error:\n    print(error.fault.code, error.fault.executed.value)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout == "INTERNAL_ERROR maybe\n"
    assert done.stderr == "gave-up sh: INTERNAL_ERROR after attempt 1 (effect-unknown)\n"
    assert (tmp_path / "runs").read_text() == "run\n"


def test_terminating_a_group_that_is_gone():
    """Terminating a group that has ended does not raise."""
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    terminate_group(process.pid, time.sleep)


def test_signals_are_deferred_while_a_command_is_started():
    """A signal during the start is raised afterwards; in other threads nothing is deferred."""
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        deferred = DeferredSignals()
        signal.raise_signal(signal.SIGTERM)
        assert received == []
        deferred.release()
        assert received == [signal.SIGTERM]
        thread = threading.Thread(target=lambda: DeferredSignals().release())
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_command_that_cannot_exist_leaves_the_signal_handlers():
    """An argument that no command can have raises, and SIGINT and SIGTERM work as before."""
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(ValueError, match="null byte"):
        child.run_once(["true", "\0"])
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_timeout_terminates_the_whole_group(script, tmp_path, monkeypatch):
    """C12: a timeout terminates all processes, two levels deep, also if they ignore SIGTERM."""
    pids = tmp_path / "pids"
    monkeypatch.setattr(child, "time", JumpingClock(pids, lines=2))
    deaf = tmp_path / "deaf.sh"
    deaf.write_text(f"trap '' TERM\necho $$ >> {pids}\n[ $1 = 0 ] || sh $0 0 &\nwhile :; do sleep 60; done\n")
    runs, code, action, _ = outcome(script("", 0, before=f"sh {deaf} 1 &", after="sleep 600"), timeout=500)
    assert (runs, code, action) == (1, "TIMEOUT", "verify")
    assert all_gone(read_pids(pids, 2))


def test_a_fork_bomb_of_two_levels(script, tmp_path):
    """C12: thirty processes in two levels are gone before the command is retried."""
    pids = tmp_path / "pids"
    pids.touch()
    bomb = tmp_path / "bomb.sh"
    bomb.write_text(
        f"echo $$ >> {pids}\n[ $1 = 0 ] && exec sleep 60\n"
        "for each in 1 2 3 4 5; do sh $0 $(($1 - 1)) & done\nwait\n"
    )
    all_up = f"[ $(wc -l < {pids}) -ge $((31 * $(wc -l < {script.count}))) ]"
    before = f"sh {bomb} 2 >/dev/null 2>&1 &\nuntil {all_up}; do sleep 0.02; done"
    assert outcome(script(envelope(retryable=True), 1, before=before))[0] == 3
    assert all_gone(read_pids(pids, 93))


def test_output_after_the_exit(script, tmp_path, monkeypatch):
    """Output shortly after the command's exit is read; a success does not wait for it longer than that."""
    with monkeypatch.context() as patch:
        patch.setattr(child, "OUTPUT_GRACE", 30.0)  # enough on a busy machine
        done = run(script("first ", 0, before="(sleep 0.2; echo second) &"))
    assert done.stdout == b"first second\n"
    done = run(script("first", 0, before=f"sleep 600 & echo $! > {tmp_path}/pid"))
    assert (done.stdout, done.exit) == (b"first", 0)
    # The run did not wait for it, so it still exists.
    os.kill(*read_pids(tmp_path / "pid"), signal.SIGKILL)


def test_output_without_end(tmp_path):
    """A process that writes endlessly after the command's exit delays nothing, and the kept output is limited."""
    argv = ["sh", "-c", f"yes & echo $! > {tmp_path}/pid"]
    done = run(argv, max_output=1000)
    assert (done.exit, done.truncated) == (0, True)
    assert all_gone(read_pids(tmp_path / "pid")), "it still writes to a closed pipe"


def test_a_success_leaves_its_processes_running(script, tmp_path):
    """A command that succeeded may leave a process running."""
    pids = tmp_path / "pids"
    run(script("", 0, before=f"sh -c 'echo $$ > {pids}; exec sleep 60' >/dev/null 2>&1 &"))
    (left,) = read_pids(pids)
    try:
        assert alive(left)
    finally:
        os.kill(left, signal.SIGKILL)


def test_huge_output(script):
    """Beyond the limit the beginning and the end are kept, and the envelope at the end decides."""
    before = f"head -c 3000000 /dev/zero | tr '\\0' x; echo; echo '{envelope(retryable=True)}'"
    history = []
    with FakeClock(), pytest.raises(FaultError) as caught:
        run(script("", 1, before=before), max_output=1_000_000, history=history)
    last = caught.value.history[-1].result
    assert len(history) == 3
    assert last.truncated
    assert len(last.stdout) < 1_400_000
    assert last.out.size > 3_000_000


def test_output_larger_than_an_envelope_may_be(script):
    """If the output is larger than a document may be, only its end is read."""
    before = f"head -c 9000000 /dev/zero | tr '\\0' x; echo; echo '{envelope(retryable=False)}'"
    assert outcome(script("", 0, before=before))[1] == "X"


def test_on_output(script):
    """on_output gets both streams of every run as they arrive."""
    pieces = []
    with FakeClock(), pytest.raises(FaultError):
        run(
            script(envelope(retryable=True), 1, before="echo complaint >&2"),
            on_output=lambda name, piece: pieces.append((name, piece)),
        )
    assert [piece for name, piece in pieces if name == "stderr"] == [b"complaint\n"] * 3


def test_input_is_given_to_every_run(script, tmp_path):
    """Every run gets the same bytes, also if they exceed a pipe's capacity."""
    data = b"x" * 300_000
    argv = script(envelope(retryable=True), 1, before=f"wc -c >> {tmp_path / 'sizes'}")
    assert outcome(argv, stdin=data)[0] == 3
    assert (tmp_path / "sizes").read_text().split() == ["300000"] * 3


@pytest.mark.parametrize(("limit", "runs"), [(1_000_000, 3), (1000, 1)])
def test_input_from_a_descriptor_is_recorded(script, tmp_path, limit, runs):
    """C12: stdin is replayed only if all of it was recorded; otherwise there is no retry."""
    source = tmp_path / "in"
    source.write_bytes(b"y" * 200_000)
    argv = script(envelope(retryable=True), 1, before=f"wc -c >> {tmp_path / 'sizes'}")
    with source.open("rb") as file:
        feed = Feed(source=file.fileno(), limit=limit)
        assert outcome(argv, stdin=feed)[0] == runs
    assert (tmp_path / "sizes").read_text().split() == ["200000"] * runs


def test_input_from_a_terminal_that_hung_up():
    """The input ends when the terminal is closed."""
    ours, theirs = pty.openpty()
    os.close(theirs)
    done = run(["cat"], stdin=Feed(source=ours))
    os.close(ours)
    assert (done.exit, done.stdout) == (0, b"")


def test_a_command_that_reads_nothing(script):
    """Input that the command does not read does not block the run."""
    assert outcome(script("", 0), stdin=b"z" * 1_000_000)[0] == 1


@pytest.mark.parametrize(
    ("name", "code"), [("no-such-command-at-all", "NOT_FOUND"), (".", "PERMISSION_DENIED")]
)
def test_a_command_that_cannot_be_started(name, code):
    """It certainly did not run, and a retry would not help."""
    assert outcome([name])[:2] == (1, code)
    assert outcome(["/dev/null"])[1] == "PERMISSION_DENIED"


def test_environment_and_directory(tmp_path):
    """The caller chooses the environment and the working directory."""
    done = run(
        ["sh", "-c", "echo $COLOUR; pwd"],
        env={"COLOUR": "green", "PATH": os.environ["PATH"]},
        cwd=str(tmp_path),
    )
    assert done.stdout.decode().split() == ["green", str(tmp_path.resolve())]
    done.close()


def test_invalid_arguments():
    """Contradictory or empty arguments raise."""
    with pytest.raises(ValueError, match="not both"):
        run(["true"], read_only=True, mutating=True)
    with pytest.raises(LookupError, match="v1"):
        run(["true"], profile="nope")
    with pytest.raises(ValueError, match="argv is empty"):
        run([])


def test_a_deadline_ends_a_run(script):
    """The deadline of the operation limits each run."""
    with pytest.raises(FaultError) as caught:
        run(script("", 0, before="sleep 600"), policy=Policy(deadline=0.7, rules={}), read_only=True)
    assert caught.value.fault.code == "TIMEOUT"


def test_an_interrupt_terminates_the_group(script, tmp_path):
    """Ctrl-C reaches only this process; it terminates the command before the interrupt propagates."""
    program = (
        "import sys\nfrom amends.process import run\n"
        f"run(['sh', '-c', 'echo $$ > {tmp_path}/up; exec sleep 60'])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    pids = read_pids(tmp_path / "up")
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=30)[1]
    assert all_gone(pids)


async def test_arun(script):
    """arun makes the same decisions, and several commands can run at the same time."""
    argv = script(envelope(code="RATE_LIMITED", retryable=True, retry_after_ms=1), 9)
    with pytest.raises(FaultError) as caught:
        await arun(argv)
    assert len(caught.value.history) == 3
    done = await asyncio.gather(*(arun(["echo", str(n)]) for n in range(5)))
    assert [each.stdout for each in done] == [b"%d\n" % n for n in range(5)]


async def test_cancelling_terminates_the_group(tmp_path):
    """A cancelled task leaves no process running."""
    task = asyncio.create_task(arun(["sh", "-c", f"echo $$ > {tmp_path}/up; exec sleep 60"]))
    pids = await asyncio.to_thread(read_pids, tmp_path / "up")
    task.cancel()
    await asyncio.wait([task], timeout=30)
    assert task.cancelled()
    assert all_gone(pids)
