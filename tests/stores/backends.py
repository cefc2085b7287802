"""
The stores that a parametrised test runs on.

`AMENDS_TEST_STORE=postgres` replaces them: `make postgres` runs the same tests on that store alone, on a real server that
the process shares, with a database of its own for each test.
"""

import atexit
import functools
import itertools
import os
import uuid

CHOSEN = os.environ.get("AMENDS_TEST_STORE")
_numbers = itertools.count()


def backends(*names):
    """Return the names, or the one that the environment chooses."""
    return (CHOSEN,) if CHOSEN else names


@functools.cache
def _server():
    from tests.postgres.server import PostgresServer, program

    assert program("initdb") is not None, "there is no Postgres server: make postgres installs it"
    server = PostgresServer()
    server.start()
    atexit.register(server.stop)
    return server


def new_database():
    """Return the URL of an empty database."""
    import psycopg

    name = f"t{next(_numbers)}_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(_server().url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return _server().url.replace("postgresql://", "postgres://").replace("/postgres", f"/{name}")
