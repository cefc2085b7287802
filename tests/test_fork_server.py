"""tests/fork_server.py runs a program like a new interpreter, with libraries imported and amends not."""

import os

from tests.each import each
from tests.fork_server import Forks

FORKS = Forks("-W", "error")


@each(
    ("program", "code", "out", "err"),
    [
        ("print('done')\n", 0, b"done\n", b""),
        ("import sys\nsys.exit(3)\n", 3, b"", b""),
        ("raise SystemExit('no')\n", 1, b"", b"no\n"),
        ("1 / 0\n", 1, b"", b"ZeroDivisionError"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", -9, b"", b""),
        ("import atexit\natexit.register(print, 'last')\nprint('first')\n", 0, b"first\nlast\n", b""),
        ("import sys\nprint(sys.argv, sys.stdin.read())\n", 0, b"['-'] \n", b""),
        ("import warnings\nwarnings.warn('x')\n", 1, b"", b"UserWarning: x"),
    ],
)
def test_a_program_ends_as_in_a_new_interpreter(program, code, out, err):
    done = FORKS.run(program)
    assert (done.returncode, done.stdout) == (code, out), done
    assert err in done.stderr


def test_a_file_with_arguments_and_environment(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "import os, sys\nprint(sys.argv[1:], os.environ['X'], __name__, os.path.basename(__file__))"
    )
    done = FORKS.run(file, ["a", 1], env={**os.environ, "X": "y"})
    assert done.stdout == b"['a', '1'] y __main__ program.py\n"


def test_libraries_stay_imported_and_amends_does_not():
    """An example that forgets an import of ours fails, whatever ran before it."""
    FORKS.run("import click, amends.errors\n")
    done = FORKS.run("import sys\nprint('click' in sys.modules, 'amends' in sys.modules)\n")
    assert done.stdout == b"True False\n"
