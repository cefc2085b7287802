"""
Runs Python programs in forked processes that have libraries imported already.

Hundreds of tests run a small program, and most of its CPU time is the import of Click, pydantic or FastAPI. `Forks.run`
is like `subprocess.run`: the program is a process of its own with its own files, environment and exit code. The server
imports the libraries that the programs before have imported, but never amends, so a program that forgets an import of
ours still fails.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path


class Forks:
    """The parent's side: starts the server when it is first used. The server exits with its parent."""

    def __init__(self, *options, env=None):
        self._options, self._env = options, env
        self._lock = threading.Lock()
        self._socket = None

    def run(self, program, arguments=(), *, input=b"", env=None, timeout=60):
        """Run a file, or source text. Return a CompletedProcess with its output."""
        with self._lock:
            if self._socket is None:
                self._socket = self._start()
            (out, stdout), (err, stderr), (stdin, into) = os.pipe(), os.pipe(), os.pipe()
            request = {
                "program": str(program),
                "text": "\n" in str(program),
                "arguments": [str(each) for each in arguments],
                "env": dict(os.environ if env is None else env),
                "cwd": str(Path.cwd()),
            }
            message = json.dumps(request).encode()
            socket.send_fds(self._socket, [len(message).to_bytes(4)], [stdin, stdout, stderr])
            self._socket.sendall(message)
            for each in (stdin, stdout, stderr):
                os.close(each)
            pid = self._reply()
            late = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL))
            late.start()
            try:
                found = {}
                reading = threading.Thread(target=lambda: found.update(err=_read_all(err)))
                writing = threading.Thread(target=_write_all, args=(into, input))
                reading.start()
                writing.start()
                found["out"] = _read_all(out)
                reading.join()
                writing.join()
                code = self._reply()
            finally:
                late.cancel()
        return subprocess.CompletedProcess([program, *arguments], code, found["out"], found["err"])

    def _start(self):
        ours, theirs = socket.socketpair()
        reader, writer = os.pipe()  # a program's streams are made for a pipe
        server = subprocess.Popen(
            [sys.executable, "-P", *self._options, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=writer,
        )
        theirs.close()
        os.close(reader)
        os.close(writer)

        def stop():
            ours.close()
            server.wait()

        atexit.register(stop)
        return ours

    def _reply(self):
        return int.from_bytes(_exactly(self._socket, 4), signed=True)


def _write_all(descriptor, data):
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _read_all(descriptor):
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _exactly(connection, size):
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def serve(connection):
    """Fork for every request. Return the request in the child, None in the server when its parent is gone."""
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
        if not head:
            return None
        request = json.loads(_exactly(connection, int.from_bytes(head)))
        gc.freeze()  # the child need not look at these objects when it exits
        names = os.memfd_create("modules")
        pid = os.fork()
        if not pid:
            atexit.register(_write_libraries, names)
            for place, descriptor in enumerate(descriptors):
                os.dup2(descriptor, place)
                os.close(descriptor)
            connection.close()
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(pid.to_bytes(4, signed=True))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(code.to_bytes(4, signed=True))
        with os.fdopen(names, "rb") as file:
            file.seek(0)
            imported = file.read()
        for name in json.loads(imported or b"[]"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def _write_libraries(descriptor):
    """Write the names of the imported modules of the standard library and of installed packages, without amends."""
    places = (sysconfig.get_path("stdlib"), "site-packages")
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
    found = [
        name
        for name, file in files.items()
        if any(place in file for place in places) and name.partition(".")[0] != "amends"
    ]
    os.write(descriptor, json.dumps(found).encode())


def become(request):
    """Make this process look like a new interpreter that runs the program, and return its code and its namespace."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    program, is_file = request["program"], not request["text"]
    sys.argv[:] = [program if is_file else "-", *request["arguments"]]
    more = request["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [
        str(Path(program).parent) if is_file else "",
        *(each for each in more if each and each not in sys.path),
    ]
    main = type(sys)("__main__")
    if is_file:
        main.__file__ = program
    sys.modules["__main__"] = main
    source = Path(program).read_text(encoding="utf-8") if is_file else program
    return compile(source, program if is_file else "<stdin>", "exec"), main.__dict__


def end():
    """End without freeing every imported module, which takes 0.2 s for large libraries."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        exec(*become(asked))  # an exception or exit of the program ends this process as it would end any
        if asked["text"]:
            end()
