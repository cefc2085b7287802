"""A real Postgres server on a socket and a loopback port, started as an unprivileged user."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.ports import free_port


def program(name):
    """Return the path of one of the server's programs, or None."""
    found = shutil.which(name)
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return found or (str(versions[0]) if versions else None)


class PostgresServer:
    """Postgres does not run as root: then it runs as `postgres`, or as `nobody`."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="amends-pg-"))
        self.port = free_port()
        self._as = _user() if os.getuid() == 0 else None
        if self._as is not None:
            os.chown(self.folder, self._as.pw_uid, self._as.pw_gid)
        self.url = f"postgresql://amends@127.0.0.1:{self.port}/postgres"

    def start(self):
        data = self.folder / "data"
        self._run(
            program("initdb"), "-D", data, "-U", "amends", "-A", "trust", "--no-sync", "--no-instructions"
        )
        self.restart()

    def crash(self):
        """End the server without a shutdown, as a crash does."""
        self._run(program("pg_ctl"), "-D", self.folder / "data", "-m", "immediate", "stop")

    def restart(self):
        """Start the server on its data."""
        data = self.folder / "data"
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        self._run(program("pg_ctl"), "-D", data, "-w", "-l", self.folder / "log", "-o", options, "start")

    def stop(self):
        self._run(program("pg_ctl"), "-D", self.folder / "data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, *command):
        options = (
            {}
            if self._as is None
            else {"user": self._as.pw_uid, "group": self._as.pw_gid, "extra_groups": []}
        )
        subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            env={**os.environ, "HOME": str(self.folder)},
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=60,
            **options,
        )


def _user():
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is no unprivileged user to run Postgres as")
