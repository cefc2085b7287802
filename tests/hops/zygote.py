"""
Commands of a chain that start at once: a process that has imported everything forks for each.

The command itself is `launch.py`, a Python without site packages that hands its streams, arguments and environment over.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

LAUNCH = Path(__file__).with_name("launch.py")
SOCKET = "HOPS_ZYGOTE"


@contextlib.contextmanager
def zygote():
    """Run the process while the block runs. Commands find it by the environment."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/zygote"
        reader, writer = os.pipe()
        root = Path(__file__).resolve().parents[2]
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.hops.zygote", path, str(writer)], pass_fds=[writer], cwd=root
        )
        os.close(writer)
        os.environ[SOCKET] = path
        try:
            os.read(reader, 1)
            yield
        finally:
            os.close(reader)
            server.terminate()
            server.wait()


def argv(*arguments):
    """Return the command line of a command."""
    return [sys.executable, "-S", "-E", str(LAUNCH), *arguments]


def _serve(path, ready):
    from tests.hops import chains

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    os.write(ready, b".")
    while True:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            # Reap the handlers that have ended.
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            continue
        listener.close()
        _handle(connection, chains)


def _handle(connection, chains):
    """In a child: run the command in a further child, and report how it ended."""
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    data = b""
    while len(data) < int.from_bytes(head):
        data += connection.recv(65536)
    request = json.loads(data)
    pid = os.fork()
    if pid:
        for each in descriptors:
            os.close(each)
        # The launcher closes its end when it is killed; then the command is, too.
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall((code & 0xFF).to_bytes(1))
        os._exit(0)
    connection.close()
    for place, descriptor in enumerate(descriptors):
        os.dup2(descriptor, place)
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["act", *request["arguments"]]
    code = 1
    try:
        chains.command_main(request["arguments"])
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
