# ruff: noqa: D102, S608  (contract.py documents the methods; only our own names are written into statements)
"""The logs, tables and queues of a store in Postgres, as statements in the connection's current transaction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from amends.stores.arguments import check_key, check_name, check_seconds, check_value
from amends.stores.contract import Bounds, DeadMessage, Entry, Message, QueueSize, Row
from amends.stores.errors import ConflictError, LeaseLostError, TrimmedError
from amends.stores.local import LeaseEnds
from amends.stores.postgres.schema import DEAD, HELD, NOW, WAITING, bounds, ref
from amends.stores.rows import PAGE, TakenMessage

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresTransaction", "RunAgain"]

_UNLIMITED = 2**31 - 1
_FORBIDDEN = frozenset({"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"})
_COMMENTS = re.compile(r"--[^\n]*(\n|$)|/\*.*?\*/", re.DOTALL)
_SWEEP_EVERY, _SWEPT = 64, 256
"""Writes between two sweeps, and the expired rows that one removes."""
_PRESENT = "(expires IS NULL OR expires > clock_timestamp())"
_EXPIRES = "clock_timestamp() + CAST(%s AS float8) * interval '1 second'"
_LEFT = "CAST(extract(epoch FROM expires - clock_timestamp()) AS float8)"

_INSERT_ENTRY = "INSERT INTO amends_entries (log, seq, dedupe, value) SELECT id, last, CAST(%s AS bytea), %s FROM moved RETURNING seq"
_BEGIN_OR_MOVE = """
    INSERT INTO amends_logs (ref, oldest, last) VALUES (%s, 1, 1)
    ON CONFLICT (ref) DO UPDATE SET last = amends_logs.last + 1
"""
_APPEND = f"WITH moved AS ({_BEGIN_OR_MOVE} RETURNING id, last) {_INSERT_ENTRY}"
_APPEND_FIRST = (
    f"WITH moved AS ({_BEGIN_OR_MOVE} WHERE amends_logs.last = 0 RETURNING id, last) {_INSERT_ENTRY}"
)
# The fence: the update waits for another writer of the log, and finds the number that it left.
_APPEND_BEHIND = f"""
    WITH moved AS (UPDATE amends_logs SET last = last + 1 WHERE ref = %s AND last = %s RETURNING id, last) {_INSERT_ENTRY}
"""
_PAGE_OF_LOG = """
    SELECT logs.oldest, logs.last, found.seq, found.value, found.dedupe FROM amends_logs AS logs
    LEFT JOIN LATERAL (
        SELECT seq, value, dedupe FROM amends_entries AS entries
        WHERE entries.log = logs.id AND entries.seq >= greatest(CAST(%s AS bigint), logs.oldest) ORDER BY seq LIMIT %s
    ) AS found ON true WHERE logs.ref = %s ORDER BY found.seq
"""
_PUT = f"""
    INSERT INTO amends_rows (tbl, ref, key, expires, value) VALUES (%s, %s, %s, {_EXPIRES}, %s)
    ON CONFLICT (tbl, ref) DO UPDATE
    SET expires = excluded.expires, value = excluded.value, revision = nextval('amends_revision')
"""
_CREATE = f"{_PUT} WHERE amends_rows.expires <= clock_timestamp() RETURNING revision"
_REPLACE = f"""
    UPDATE amends_rows SET expires = {_EXPIRES}, value = %s, revision = nextval('amends_revision')
    WHERE tbl = %s AND ref = %s AND revision = %s AND {_PRESENT} RETURNING revision
"""


def _next(states: Sequence[int]) -> str:
    parts = (
        f"(SELECT id FROM amends_messages WHERE queue = %(queue)s AND state = {state} AND at <= {NOW} "
        "ORDER BY at, id LIMIT 1 FOR UPDATE SKIP LOCKED)"
        for state in states
    )
    return f"coalesce({', '.join(parts)})"


# Messages with an expired lease first: they have waited longest.
_NEXT = _next((HELD, WAITING))
_TAKE = f"""
    UPDATE amends_messages SET state = {HELD}, at = {NOW} + %(lease)s, attempts = attempts + 1, epoch = epoch + 1
    WHERE id = {_NEXT} AND attempts < %(bound)s RETURNING id, key, value, attempts, epoch
"""
_DEAD_LETTER_SPENT = f"""
    UPDATE amends_messages SET state = {DEAD}, at = {NOW},
        reason = convert_to('taken ' || attempts || ' times without being finished', 'UTF8')
    WHERE id = {_NEXT} AND attempts >= %(bound)s
"""


class RunAgain(Exception):
    """Another writer changed what this transaction has read: roll it back and run it again."""


class LogRows:
    """The statements of one log."""

    __slots__ = ("_name", "_ref", "_tx")

    def __init__(self, tx: PostgresTransaction, name: str) -> None:
        self._tx, self._name, self._ref = tx, name, tx.known(name)

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        id = None if dedupe is None else check_key(dedupe, "dedupe id").encode()
        self._tx.changed = True
        if id is not None and (existing := self._with_id(id)) is not None:
            return existing
        if last is None:
            found = self._tx.execute(_APPEND, (self._ref, id, value))
        elif last == 0:
            found = self._tx.execute(_APPEND_FIRST, (self._ref, id, value))
        else:
            found = self._tx.execute(_APPEND_BEHIND, (self._ref, last, id, value))
        if found:
            return int(found[0][0])
        actual = self.bounds().last
        if actual == last:
            raise RunAgain
        raise ConflictError(self._name, last or 0, actual)

    def _with_id(self, id: bytes) -> int | None:
        # The lock keeps the answer true; two first appends at the same time meet at the unique index.
        found = self._tx.execute("SELECT id FROM amends_logs WHERE ref = %s FOR UPDATE", (self._ref,))
        if not found:
            return None
        entries = self._tx.execute(
            "SELECT seq FROM amends_entries WHERE log = %s AND sha256(dedupe) = sha256(%s) AND dedupe IS NOT NULL",
            (found[0][0], id),
        )
        return int(entries[0][0]) if entries else None

    def bounds(self) -> Bounds:
        found = self._tx.execute(
            f"SELECT oldest, last FROM amends_logs WHERE ref = %s{self._tx.lock}", (self._ref,)
        )
        return Bounds(*found[0]) if found else Bounds(1, 0)

    def read(self, start: int | None, limit: int) -> list[Entry]:
        found = self._tx.execute(_PAGE_OF_LOG, (start or 0, limit, self._ref))
        if found and start is not None and start < found[0][0]:
            raise TrimmedError(self._name, start, found[0][0])
        if not found and start is not None and start < 1:
            raise TrimmedError(self._name, start, 1)
        return [
            Entry(seq, bytes(value), None if dedupe is None else bytes(dedupe).decode())
            for _, _, seq, value, dedupe in found
            if seq is not None
        ]

    def tail(self) -> Entry | None:
        last = self.bounds().last
        found = self.read(max(last, self.bounds().first), 1) if last else []
        return found[0] if found else None

    def trim(self, before: int) -> int:
        found = self._tx.execute(
            "SELECT id, oldest, last FROM amends_logs WHERE ref = %s FOR UPDATE", (self._ref,)
        )
        if not found:
            return 1
        id, oldest, last = found[0]
        first = min(max(before, oldest), last + 1)
        if first > oldest:
            self._tx.run("UPDATE amends_logs SET oldest = %s WHERE id = %s", (first, id))
            self._tx.run("DELETE FROM amends_entries WHERE log = %s AND seq < %s", (id, first))
        return int(first)

    def drop(self) -> None:
        for (id,) in self._tx.execute("DELETE FROM amends_logs WHERE ref = %s RETURNING id", (self._ref,)):
            self._tx.run("DELETE FROM amends_entries WHERE log = %s", (id,))

    def start_at(self, first: int) -> None:
        self._tx.run(
            "INSERT INTO amends_logs (ref, oldest, last) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (self._ref, first, first - 1),
        )


class TableRows:
    """The statements of one table."""

    __slots__ = ("_name", "_ref", "_tx")

    def __init__(self, tx: PostgresTransaction, name: str) -> None:
        self._tx, self._name, self._ref = tx, name, tx.known(name)

    def get(self, key: str) -> Row | None:
        found = self._tx.execute(
            f"SELECT value, revision, {_LEFT} FROM amends_rows WHERE tbl = %s AND ref = %s AND {_PRESENT}{self._tx.lock}",
            (self._ref, ref(check_key(key))),
        )
        if not found:
            self._tx.absent.add((self._name, key))
            return None
        value, revision, left = found[0]
        return Row(key, bytes(value), revision, left)

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        value, id = check_value(value), ref(check_key(key))
        if expires_in is not None:
            check_seconds(expires_in, "expires_in")
            self._tx.sweep()
        was_absent = (self._name, key) in self._tx.absent
        if revision:
            found = self._tx.execute(_REPLACE, (expires_in, value, self._ref, id, revision))
        else:
            statement = f"{_PUT} RETURNING revision" if revision is None and not was_absent else _CREATE
            found = self._tx.execute(statement, (self._ref, id, key.encode(), expires_in, value))
        if not found:
            if revision is None or (was_absent and self._tx.lock):
                raise RunAgain
            raise self._conflict(key, revision)
        self._tx.absent.discard((self._name, key))
        return int(found[0][0])

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self.put(key, value, revision=0, expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        where, values = "tbl = %s AND ref = %s", (self._ref, ref(check_key(key)))
        if not revision:
            if revision is not None and self._revision(key):
                raise self._conflict(key, revision)
            found = self._tx.execute(
                f"DELETE FROM amends_rows WHERE {where} RETURNING expires IS NULL OR expires > clock_timestamp()",
                values,
            )
            return bool(found and found[0][0])
        found = self._tx.execute(
            f"DELETE FROM amends_rows WHERE {where} AND revision = %s AND {_PRESENT} RETURNING 1",
            (*values, revision),
        )
        if not found:
            raise self._conflict(key, revision)
        return True

    def page(self, prefix: str, after: str | None) -> tuple[list[Row], str | None]:
        """The next rows by key, and the key to continue after (None at the end)."""
        low, high = bounds(prefix)
        start, compared = (low, ">=") if after is None else (ref(after), ">")
        found = self._tx.execute(
            f"SELECT key, value, revision, {_LEFT}, {_PRESENT} FROM amends_rows "
            f"WHERE tbl = %s AND ref {compared} %s AND ref <= %s ORDER BY ref LIMIT %s",
            (self._ref, start, high, PAGE),
        )
        rows = [
            Row(bytes(key).decode(), bytes(value), revision, left)
            for key, value, revision, left, present in found
            if present
        ]
        more = bytes(found[-1][0]).decode() if len(found) == PAGE else None
        return [row for row in rows if row.key.startswith(prefix)], more

    def drop(self) -> None:
        self._tx.run("DELETE FROM amends_rows WHERE tbl = %s", (self._ref,))

    def _revision(self, key: str) -> int:
        found = self._tx.execute(
            f"SELECT revision FROM amends_rows WHERE tbl = %s AND ref = %s AND {_PRESENT}",
            (self._ref, ref(key)),
        )
        return int(found[0][0]) if found else 0

    def _conflict(self, key: str, expected: int) -> ConflictError:
        return ConflictError(self._name, expected, self._revision(key), key)


class QueueRows:
    """The statements of one queue."""

    __slots__ = ("_name", "_ref", "_tx")

    def __init__(self, tx: PostgresTransaction, name: str) -> None:
        self._tx, self._name, self._ref = tx, name, tx.known(name)

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return self.restore(value, key=key, delay=delay, attempts=0)

    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool:
        value = check_value(value)
        seconds = check_seconds(delay, "delay")
        self._tx.filled.add(self._name)
        return bool(
            self._tx.execute(
                "INSERT INTO amends_messages (queue, state, at, attempts, epoch, key, value) "
                f"VALUES (%s, {WAITING}, {NOW} + %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING id",
                (
                    self._ref,
                    seconds,
                    attempts,
                    attempts,
                    None if key is None else check_key(key).encode(),
                    value,
                ),
            )
        )

    def take(self, lease: float, max_attempts: int | None) -> TakenMessage | float | None:
        """Take the next message; or return in how many seconds one may be due, or None if only a put can add one."""
        values = {
            "queue": self._ref,
            "lease": lease,
            "bound": _UNLIMITED if max_attempts is None else max_attempts,
        }
        while True:
            found = self._tx.execute(_TAKE, values)
            if found:
                number, key, value, attempts, epoch = found[0]
                return TakenMessage(number, _text(key), bytes(value), attempts, epoch)
            if max_attempts is None or not self._tx.run(_DEAD_LETTER_SPENT, values):
                # A message that is due and was not taken is locked by another worker for a moment.
                left = self.next_in()
                return left if left is None else max(0.02, left)

    def next_in(self) -> float | None:
        """Seconds until a message can be taken; 0 if one can be taken now, None if there is none."""
        least = ", ".join(
            f"(SELECT min(at) FROM amends_messages WHERE queue = %(queue)s AND state = {state})"
            for state in (HELD, WAITING)
        )
        found = self._tx.execute(f"SELECT least({least}) - {NOW}", {"queue": self._ref})
        left = found[0][0]
        return None if left is None else max(0.0, float(left))

    def now(self) -> float:
        return float(self._tx.execute(f"SELECT {NOW}")[0][0])

    def untake(self, number: int, epoch: int) -> None:
        """Undo a take whose worker was cancelled before it received the message."""
        self._tx.filled.add(self._name)
        self._tx.run(
            f"UPDATE amends_messages SET state = {WAITING}, at = 0, attempts = attempts - 1 "
            f"WHERE id = %s AND epoch = %s AND state = {HELD}",
            (number, epoch),
        )

    def check_lease(self, number: int, epoch: int) -> None:
        if not self._tx.execute(
            f"SELECT 1 FROM amends_messages WHERE id = %s AND queue = %s AND epoch = %s AND state = {HELD} FOR UPDATE",
            (number, self._ref, epoch),
        ):
            raise LeaseLostError(self._name, str(number), epoch)

    def extend(self, number: int, epoch: int, lease: float) -> None:
        self._held(f"UPDATE amends_messages SET at = {NOW} + %s", (lease,), number, epoch)

    def done(self, number: int, epoch: int) -> None:
        self._held("DELETE FROM amends_messages", (), number, epoch)

    def give_back(self, number: int, epoch: int, delay: float) -> None:
        seconds = check_seconds(delay, "delay")
        self._tx.filled.add(self._name)
        self._held(
            f"UPDATE amends_messages SET state = {WAITING}, at = {NOW} + %s", (seconds,), number, epoch
        )

    def dead_letter(self, number: int, epoch: int, reason: str) -> None:
        self._held(
            f"UPDATE amends_messages SET state = {DEAD}, at = {NOW}, reason = %s",
            (reason.encode("utf-8", "backslashreplace"),),
            number,
            epoch,
        )

    def _held(self, change: str, values: tuple[object, ...], number: int, epoch: int) -> None:
        statement = f"{change} WHERE id = %s AND queue = %s AND epoch = %s AND state = {HELD}"
        if not self._tx.run(statement, (*values, number, self._ref, epoch)):
            raise LeaseLostError(self._name, str(number), epoch)

    def size(self) -> QueueSize:
        ((ready, delayed, leased, dead),) = self._tx.execute(
            f"SELECT count(*) FILTER (WHERE state < {DEAD} AND at <= {NOW}), "
            f"count(*) FILTER (WHERE state = {WAITING} AND at > {NOW}), "
            f"count(*) FILTER (WHERE state = {HELD} AND at > {NOW}), count(*) FILTER (WHERE state = {DEAD}) "
            "FROM amends_messages WHERE queue = %s",
            (self._ref,),
        )
        return QueueSize(ready, delayed, leased, dead)

    def page(self, after: int) -> list[Message]:
        found = self._tx.execute(
            f"SELECT id, key, value, attempts, state, at - {NOW} FROM amends_messages "
            f"WHERE id > %s AND queue = %s AND state < {DEAD} ORDER BY id LIMIT {PAGE}",
            (after, self._ref),
        )
        return [
            Message(
                str(number),
                _text(key),
                bytes(value),
                attempts,
                max(0.0, left) if state == WAITING else 0.0,
                state == HELD and left > 0,
            )
            for number, key, value, attempts, state, left in found
        ]

    def dead(self, limit: int) -> list[DeadMessage]:
        found = self._tx.execute(
            "SELECT id, key, value, attempts, reason FROM amends_messages "
            f"WHERE queue = %s AND state = {DEAD} ORDER BY at, id LIMIT %s",
            (self._ref, limit),
        )
        return [
            DeadMessage(str(number), _text(key), bytes(value), attempts, _text(reason) or "")
            for number, key, value, attempts, reason in found
        ]

    def restore_dead(self, letter: DeadMessage) -> None:
        self._tx.run(
            "INSERT INTO amends_messages (queue, state, at, attempts, epoch, key, reason, value) "
            f"VALUES (%s, {DEAD}, {NOW}, %s, %s, %s, %s, %s)",
            (
                self._ref,
                letter.attempts,
                letter.attempts,
                None if letter.key is None else letter.key.encode(),
                letter.reason.encode("utf-8", "backslashreplace"),
                letter.value,
            ),
        )

    def revive(self, id: str) -> bool:
        self._tx.filled.add(self._name)
        return bool(
            self._tx.run(
                f"UPDATE amends_messages AS dead SET state = {WAITING}, at = {NOW}, attempts = 0, reason = NULL "
                f"WHERE id = %(id)s AND queue = %(queue)s AND state = {DEAD} AND NOT EXISTS ("
                f"SELECT 1 FROM amends_messages AS waiting WHERE waiting.queue = %(queue)s AND waiting.state < {DEAD} "
                "AND sha256(waiting.key) = sha256(dead.key) AND waiting.key IS NOT NULL)",
                {"id": _number(id), "queue": self._ref},
            )
        )

    def discard(self, id: str) -> bool:
        return bool(
            self._tx.run(
                f"DELETE FROM amends_messages WHERE id = %s AND queue = %s AND state = {DEAD}",
                (_number(id), self._ref),
            )
        )

    def drop(self) -> None:
        self._tx.run("DELETE FROM amends_messages WHERE queue = %s", (self._ref,))


class PostgresTransaction(LeaseEnds):
    """See `contract.Transaction`. The statements run in the connection's current transaction."""

    __slots__ = ("_cursor", "_sweeps", "absent", "changed", "connection", "filled", "lock", "place")

    def __init__(
        self, connection: Connection[tuple[Any, ...]], place: str, *, locking: bool, sweeps: list[int]
    ) -> None:
        """
        Args:
            connection: runs the statements.
            place: see `LeaseEnds`.
            locking: whether what is read stays as it is until the commit, because writes may depend on it.
            sweeps: counts the writes until the next sweep.

        """
        self.connection, self.place = connection, place
        self.lock = " FOR UPDATE" if locking else ""
        self._cursor = connection.cursor()
        self._sweeps = sweeps
        self.absent: set[tuple[str, str]] = set()
        """Tables and keys that were read and are absent. A transaction in which one appears is run again."""
        self.filled: set[str] = set()
        """The queues that have new messages."""
        self.changed = False
        """Whether a log has new entries."""

    def execute(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        return self._cursor.execute(statement.encode(), values).fetchall()

    def run(self, statement: str, values: Any = None) -> int:
        """Execute a statement without rows, and return how many it changed."""
        return self._cursor.execute(statement.encode(), values).rowcount

    def known(self, name: str) -> bytes:
        """Return the `ref` of a name; a long name is written down, because the `ref` does not contain it."""
        found, data = ref(name), name.encode()
        if found == data:
            return found
        if self.lock or self.connection.info.transaction_status:
            self.run("INSERT INTO amends_names VALUES (%s, %s) ON CONFLICT DO NOTHING", (found, data))
        return found

    def sweep(self) -> None:
        """Delete expired rows, now and then."""
        self._sweeps[0] += 1
        if self._sweeps[0] % _SWEEP_EVERY == 0:
            self.run(
                "DELETE FROM amends_rows WHERE (tbl, ref) IN (SELECT tbl, ref FROM amends_rows "
                f"WHERE expires <= clock_timestamp() LIMIT {_SWEPT} FOR UPDATE SKIP LOCKED)"
            )

    def log(self, name: str) -> LogRows:
        return LogRows(self, check_name(name, "log"))

    def table(self, name: str) -> TableRows:
        return TableRows(self, check_name(name, "table"))

    def queue(self, name: str) -> QueueRows:
        return QueueRows(self, check_name(name, "queue"))

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        first = _COMMENTS.sub(" ", statement).split(maxsplit=1)
        if first and first[0].rstrip(";").upper() in _FORBIDDEN:
            raise ValueError(f"{first[0]} is not allowed here: return to commit, raise to roll back")
        done = self.connection.execute(statement.encode(), parameters or None)
        return done.fetchall() if done.description is not None else []


def _text(data: bytes | None) -> str | None:
    return None if data is None else bytes(data).decode()


def _number(id: str) -> int:
    return int(id) if id.isdecimal() and len(id) < 19 else -1
