"""
Whether an exception reports the answer of a service, or comes from the code that ran: a missing file, a refused SQL
statement, a value that does not validate.

The answer of a service says whether that call had an effect. An exception of the code itself says nothing about what the
code did before (M3).
"""

from __future__ import annotations

from amends.errors.base import FaultError
from amends.foreign.exceptions import from_exception
from amends.foreign.registry import registered_fault

__all__ = ["CLIENTS", "PROTOCOLS", "is_client_error", "is_local"]

CLIENTS = frozenset(
    {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "aiohttp", "botocore", "grpc"}
    | {"openai", "anthropic", "stripe", "urllib", "http"}
)
"""Libraries whose exceptions describe a failed call to another service."""
PROTOCOLS = frozenset({"mcp", "fastmcp", "a2a"})
"""Libraries whose clients raise the errors of the servers that they call."""


def is_client_error(exc: BaseException, libraries: frozenset[str] = CLIENTS) -> bool:
    """
    Return whether an exception is one of a client library: the report of a failed call to another service.

    >>> from urllib.error import URLError
    >>> is_client_error(URLError("refused")), is_client_error(FileNotFoundError())
    (True, False)
    """
    return any(cls.__module__.partition(".")[0] in libraries for cls in type(exc).__mro__)


def is_local(exc: BaseException) -> bool:
    """
    Return whether an exception comes from the code that ran, and not from a service that it called.

    A typed error and an exception of a registered class are neither: their author gave them a meaning. The error that recovery
    raises is what it made of the exception.

    >>> is_local(FileNotFoundError()), is_local(ConnectionRefusedError())
    (True, True)
    >>> from amends.errors import NotFoundError
    >>> is_local(NotFoundError())
    False
    """
    if isinstance(exc, FaultError) and exc.decision is not None and exc.__cause__ is not None:
        exc = exc.__cause__
    if issubclass(type(exc), FaultError) or registered_fault(type(exc)) is not None:
        return False
    read = from_exception(exc)
    return read.status is None and read.origin is None and not is_client_error(exc, CLIENTS | PROTOCOLS)
