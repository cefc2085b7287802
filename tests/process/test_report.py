"""Failure documents that programs write for `amends run`, beside their stdout and stderr."""

import os
import subprocess
import sys
from contextlib import closing

import msgspec
import pytest

from amends.cli import failure_pipe
from amends.process import report, run
from amends.process.report import Report
from amends.recovery import NONE

SHOP = """
import argparse, pathlib, sys
from amends.bindings.argparse import main
from amends.errors.cli import NotFoundError, RateLimitedError

def shop(args):
    print("a line of its own")
    if args.what == "list":
        raise NotFoundError("No shop of this name", suggestions=["Try: shop list --all"])
    count = pathlib.Path(args.count)
    runs = int(count.read_text()) if count.exists() else 0
    count.write_text(str(runs + 1))
    if not runs:
        raise RateLimitedError("Too many", retry_after=0.2)

parser = argparse.ArgumentParser(prog="shop")
parser.add_argument("what")
parser.add_argument("--count")
main(parser, shop, success="own")
"""


@pytest.fixture
def shop(tmp_path):
    """A program with our `main`, as a list of arguments."""
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    return [sys.executable, str(path)]


def amends_run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "amends", "run", *arguments], capture_output=True, text=True, timeout=60
    )


def test_both_sides_have_one_name():
    """The writer and the reader are in packages that do not import each other."""
    assert failure_pipe.VARIABLE == report.VARIABLE


def test_run_reads_what_the_program_said(shop):
    """The code and the way out are the program's, and its stdout and stderr are as without `run`."""
    alone = subprocess.run([*shop, "list"], capture_output=True, text=True, timeout=60)
    done = amends_run("--", *shop, "list")
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (4, "a line of its own\n")
    assert done.stderr.startswith(alone.stderr)
    assert "NOT_FOUND" in done.stderr
    documented = msgspec.json.decode(amends_run("--output", "json", "--", *shop, "list").stdout)
    assert documented["error"]["code"] == "NOT_FOUND"
    assert "shop list --all" in str(documented["error"])


def test_a_temporary_failure_is_repeated_at_the_programs_wait(shop, tmp_path):
    """Exit 9 with the wait of the program."""
    count = tmp_path / "count"
    done = amends_run("--", *shop, "order", "--count", str(count))
    assert (done.returncode, count.read_text()) == (0, "2")
    assert "RATE_LIMITED, next in 0." in done.stderr


def test_a_program_below_a_shell(shop, tmp_path):
    """Its stdout goes into the pipeline; its failure is known, but not that nothing happened beside it."""
    command = ["sh", "-c", f"{shop[0]} {shop[1]} list | grep another"]
    done = amends_run("--", *command)
    assert (done.returncode, done.stdout) == (1, "")
    assert "NOT_FOUND" in done.stderr
    count = tmp_path / "count"
    command = ["sh", "-c", f"{shop[0]} {shop[1]} order --count {count}"]
    failed = amends_run("--", *command, "; exit 9")
    assert failed.returncode in {0, 9}
    count.unlink(missing_ok=True)
    both = ["sh", "-c", f"echo x >> {tmp_path}/other; {shop[0]} {shop[1]} order --count {count} || exit 9"]
    assert amends_run("--", *both).returncode == 9
    assert count.read_text() == "1"  # not repeated: what ran beside it is not known
    count.unlink()
    assert amends_run("--read-only", "--", *both).returncode == 0
    assert count.read_text() == "2"


def test_a_success_ignores_the_document(shop):
    """The program's exit code comes first."""
    done = run(["sh", "-c", f"{shop[0]} {shop[1]} list || true"])
    assert done.exit == 0


def test_a_number_that_means_another_file_is_not_written_to(tmp_path, monkeypatch):
    """The number of the descriptor was closed and used again."""
    with closing(Report()) as pipe:
        name = pipe.environment()[report.VARIABLE]
        device, inode = name.split(":")[1:]
        with (tmp_path / "file").open("wb") as file:
            for named in (
                f"{file.fileno()}:{device}:{inode}",
                str(file.fileno()),
                "x",
                "9" * 12,
                "",
                "-1:1:1",
            ):
                monkeypatch.setenv(report.VARIABLE, named)
                failure_pipe.write_failure(b"{}")
        assert (tmp_path / "file").read_bytes() == b""
        monkeypatch.setenv(report.VARIABLE, name)
        failure_pipe.write_failure(b'{"ok":false}\n')
        pipe.started()
        assert pipe.last() == (os.getpid(), {"ok": False})


def test_a_writer_never_waits(monkeypatch):
    """A full pipe and a document that is too large are left out."""
    with closing(Report()) as pipe:
        monkeypatch.setenv(report.VARIABLE, pipe.environment()[report.VARIABLE])
        for _ in range(100):
            failure_pipe.write_failure(b'"%s"' % (b"x" * 4000))
        failure_pipe.write_failure(b'"%s"' % (b"x" * 20_000))
        pipe.started()
        assert pipe.last() is None


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"{",
        b"\xff\n",
        b"[1]\n",
        b'{"pid":"1","envelope":{}}\n',
        b'{"pid":1,"envelope":3}\n',
        b"[" * 9000 + b"\n",
    ],
)
def test_any_bytes_are_read(written):
    """What a command writes there is not trusted."""
    with closing(Report()) as pipe:
        os.write(pipe.fd, written)
        pipe.started()
        assert pipe.last() is None


def test_a_hostile_document_is_a_failure_of_the_command():
    """A document without a usable error, and one with any members, never breaks the run."""
    for envelope in ('{"ok":false}', '{"ok":false,"error":{"code":[1],"retry_after_ms":"x"}}', '{"error":7}'):
        script = f"import os; os.write(int(os.environ['{report.VARIABLE}'].partition(':')[0]), "
        script += f'b\'{{"pid":%d,"envelope":{envelope}}}\\n\' % os.getpid()); os._exit(3)'
        with pytest.raises(Exception) as caught:
            run([sys.executable, "-c", script], policy=NONE)
        assert caught.value.fault.code
