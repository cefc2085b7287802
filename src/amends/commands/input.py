"""Reads a command's input: stdin or a named file, one JSON document or many."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from amends.core.text import decoded
from amends.core.wire import MAX_BYTES, Unreadable, read
from amends.errors.cli import ValidationError

__all__ = ["open_input", "read_document", "read_input", "unreadable"]

# The messages of common errors; other errors get the message of their fault.
_REASONS: dict[type[OSError], str] = {
    FileNotFoundError: "there is no file {name}",
    IsADirectoryError: "{name} is a directory",
    PermissionError: "this user has no permission to read {name}",
}


@contextmanager
def open_input(name: str | None) -> Iterator[BinaryIO]:
    """
    Open the named file, or stdin. On a terminal, prompt for the input.

    Raises:
        ValidationError: if the file cannot be read.

    """
    if name is None:
        if sys.stdin is not None and sys.stdin.isatty():
            sys.stderr.write("Paste a response and press Ctrl-D on an empty line, or pipe one in.\n")
        yield io.BytesIO() if sys.stdin is None else sys.stdin.buffer
        return
    try:
        with open(name, "rb") as stream:  # noqa: PTH123 - pathlib would normalise the user's name
            yield stream
    except OSError as error:
        raise _unreadable_file(name, error) from error


def _unreadable_file(name: str, error: OSError) -> ValidationError:
    message = next(
        (text.format(name=name) for kind, text in _REASONS.items() if isinstance(error, kind)), None
    )
    if message is None:
        from amends.foreign import from_exception

        message = f"cannot read {name}: {from_exception(error).message}"
    return ValidationError(
        message,
        field="FILE",
        suggestions=["Name a readable file, or pipe the response in"],
    )


def read_document(stream: BinaryIO) -> object:
    """
    Read the one JSON document of a stream.

    Raises:
        ValidationError: if the stream is empty or is not JSON.

    """
    data = stream.read(MAX_BYTES + 1)
    try:
        return read(data)
    except Unreadable as error:
        raise unreadable(error, None, empty=not data.strip()) from None


def read_input(stream: BinaryIO) -> object:
    """
    Read a stream that holds a JSON document, or a text with a response in it (`amends.commands.pasted`).

    Raises:
        ValidationError: if the stream is empty or nothing can be read from it.

    """
    data = stream.read(MAX_BYTES + 1)
    try:
        return read(data)
    except Unreadable as error:
        if not error.too_large:
            from amends.commands.pasted import read_pasted

            found = data if _BINARY in data else read_pasted(decoded(data))
            if found is not None:
                return found
        raise unreadable(error, None, empty=not data.strip()) from None


_BINARY = b":exception-type\x07"
"""Occurs in an AWS event stream that reports a failure."""


def unreadable(error: Unreadable, line: int | None, *, empty: bool = False) -> ValidationError:
    """Return the error for input that is not JSON, with its line; `line` is the line of a stream of documents."""
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
