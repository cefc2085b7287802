"""What a command reads: stdin or a named file, one JSON document or many."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from amends.core.wire import MAX_BYTES, Unreadable, read
from amends.errors.cli import ValidationError

__all__ = ["document", "opened", "unreadable"]

# Why a file cannot be read, in words; what else can go wrong is said by its fault.
_REASONS: dict[type[OSError], str] = {
    FileNotFoundError: "there is no file {name}",
    IsADirectoryError: "{name} is a directory",
    PermissionError: "{name} may not be read by this user",
}


@contextmanager
def opened(name: str | None) -> Iterator[BinaryIO]:
    """
    The named file, or stdin. A person at a terminal is told that it is their turn.

    Raises:
        ValidationError: when the file cannot be read.

    """
    if name is None:
        if sys.stdin is not None and sys.stdin.isatty():
            sys.stderr.write("Paste a response, then Ctrl-D on a line of its own; or pipe one in.\n")
        yield io.BytesIO() if sys.stdin is None else sys.stdin.buffer
        return
    try:
        with open(name, "rb") as stream:  # noqa: PTH123 - the plain call, as the user wrote the name
            yield stream
    except OSError as error:
        raise _not_read(name, error) from error


def _not_read(name: str, error: OSError) -> ValidationError:
    words = next((words for kind, words in _REASONS.items() if isinstance(error, kind)), None)
    if words is None:
        from amends.foreign import from_exception

        words = "cannot read {name}: " + from_exception(error).message
    return ValidationError(
        words.format(name=name),
        field="FILE",
        suggestions=["Name a file that can be read, or pipe the response in"],
    )


def document(stream: BinaryIO) -> Any:
    """
    The one JSON document a stream holds.

    Raises:
        ValidationError: when it holds none.

    """
    data = stream.read(MAX_BYTES + 1)
    try:
        return read(data)
    except Unreadable as error:
        raise unreadable(error, None, empty=not data.strip()) from None


def unreadable(error: Unreadable, line: int | None, *, empty: bool = False) -> ValidationError:
    """Where the input ceases to be JSON; `line` is the line of a stream of documents."""
    where = line if line is not None else error.line
    text = (
        "the input is empty"
        if empty
        else f"line {where} is not JSON"
        if where is not None
        else "the input is not JSON"
    )
    if error.too_large:
        text = f"{f'line {line}' if line else 'the input'} is longer than {MAX_BYTES} bytes"
    return ValidationError(
        text,
        details=None if where is None else {"line": where},
        suggestions=["Send one JSON document" if line is None else "Send one JSON document per line"],
    )
