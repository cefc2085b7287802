"""Connect to the database, and translate the errors of psycopg."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amends.stores.address import Address
from amends.stores.errors import (
    DamagedStoreError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    ValueTooLargeError,
)

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["Database", "is_passing", "psycopg"]

_CONNECT_SECONDS = 10
_RUN_AGAIN = frozenset({"40001", "40P01", "23505"})
"""Serialization failure, deadlock, and a unique index at which two first writes meet."""
_LARGEST = 500_000_000


def psycopg() -> Any:
    """
    Return the library.

    Raises:
        ImportError: it is missing; the message names the line that installs it.

    """
    try:
        import psycopg as library
    except ImportError as missing:
        raise ImportError("a store in Postgres needs psycopg 3: pip install 'amends[postgres]'") from missing
    return library


@dataclass(frozen=True, slots=True)
class Database:
    """The address of the database, and the settings of the connections to it."""

    conninfo: str = field(repr=False)
    display_url: str
    pooled: bool = False
    """Whether a pooler such as pgbouncer in transaction mode is in between: no prepared statements, no LISTEN."""
    lock_timeout: float = 10.0

    @classmethod
    def at(cls, address: Address) -> Database:
        """
        The database that a URL names.

        Raises:
            ValueError: an option has an invalid value.
        """
        pooled = address.options.get("pooled", "no")
        if pooled not in {"yes", "no"}:
            raise ValueError(f"pooled must be yes or no, not {pooled!r}")
        return cls(address.path, address.display_url, pooled == "yes", address.seconds("lock_timeout", 10.0))

    def connect(self) -> Connection[tuple[Any, ...]]:
        """
        Open a connection in autocommit mode.

        Raises:
            StoreUnavailableError: the server does not answer or refuses.

        """
        library = psycopg()
        try:
            connection: Connection[tuple[Any, ...]] = library.Connection.connect(
                self.conninfo,
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS,
                application_name="amends",
            )
        except library.Error as error:
            raise StoreUnavailableError(
                f"{self.display_url} cannot be reached ({type(error).__name__}): check that the server runs, and the address"
            ) from error
        if self.pooled:
            connection.prepare_threshold = None
        return connection

    def begin(self) -> bytes:
        """
        Return the statements that begin a transaction.

        Their settings end with it, as a pooler wants. A process that is stopped inside a transaction loses its locks.
        """
        wait = int(self.lock_timeout * 1000)
        return (
            f"BEGIN; SET LOCAL lock_timeout = {wait}; SET LOCAL idle_in_transaction_session_timeout = {3 * wait}"
        ).encode()

    def translate(self, error: Exception, *, committing: bool) -> Exception:
        """Return the store's exception for one of psycopg; the error itself if it concerns the caller's own SQL."""
        library = psycopg()
        if not isinstance(error, library.Error):
            return error
        executed: Any = "maybe" if committing else "no"
        state, where = str(getattr(error, "sqlstate", None) or ""), self.display_url
        known = _of_state(state, where, executed)
        if known is None and (
            state[:2] in {"08", "57"} or (not state and isinstance(error, library.OperationalError))
        ):
            known = StoreUnavailableError(
                f"the connection to {where} was lost: try again when the server runs", executed
            )
        if known is None and isinstance(error, library.DataError) and "too large" in str(error):
            known = ValueTooLargeError(_LARGEST, _LARGEST)
        if known is not None:
            known.__cause__ = error
            return known
        found: Exception = error
        return found


def _of_state(state: str, where: str, executed: Any) -> StoreError | None:
    if state in {"55P03", "57014", "25P03"} | _RUN_AGAIN:
        return StoreUnavailableError(f"{where} was locked by another transaction: try again", "no")
    if state == "53100":
        return StoreFullError(f"no space left for {where}: free space on its disk, then try again")
    if state == "25006":
        return StoreUnavailableError(f"{where} is read-only, as a standby is: connect to the primary", "no")
    if state == "42501":
        return StoreUnavailableError(
            f"the role may not write the store's tables in {where}: grant it what `amends store sql` prints",
            "no",
        )
    if state[:2] == "53":
        return StoreUnavailableError(f"{where} is out of resources ({state}): try again", executed)
    if state == "42P01":
        return DamagedStoreError(f"{where} has no tables of a store any more: run `amends store check`")
    if state[:2] == "XX":
        return DamagedStoreError(f"{where} is damaged ({state}): restore it from a backup")
    return None


def is_passing(error: Exception) -> bool:
    """Return whether the same transaction can succeed if it is run again at once: nothing of it was committed."""
    return getattr(error, "sqlstate", None) in _RUN_AGAIN
