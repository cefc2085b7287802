"""The JSON documents that a bound command writes to stdout, and the short text for a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amends.core.fault import Fault

__all__ = ["completed", "failure", "finite", "fit", "success", "to_json", "write_stderr"]


def success(data: object, meta: dict[str, object]) -> bytes:
    """
    Return the envelope of a success.

    Data that cannot be written as JSON becomes null with a warning, because the command did succeed.
    """
    envelope: dict[str, object] = {"ok": True, "data": data, "error": None, "meta": meta}
    try:
        return to_json(envelope)
    except (TypeError, ValueError, RecursionError, NotImplementedError):
        envelope |= {"data": None, "warnings": ["the result cannot be written as JSON and was left out"]}
        return to_json(envelope)


def _sign(document: dict[str, Any], fault: Fault, format: str) -> None:
    """Add the record that is signed for the caller, if this process has the secret of its system."""
    if "AMENDS_SYSTEM" not in os.environ:
        return
    from amends.dialects.record import MEMBER
    from amends.foreign.trust import is_system_call, record_for
    from amends.recovery.incoming import left_in

    call = left_in(os.environ.get("AMENDS_LEFT"), 0.0).call
    system = is_system_call(call)
    if system or (system is not None and MEMBER in document):
        document[MEMBER] = record_for(fault, format, call)


def failure(fault: Fault, meta: Mapping[str, object], output: str, docs: str | None = None) -> bytes:
    """
    Return a failure in one of the three outputs: an envelope (json), a problem document (problem), or text for stderr.

    All are written from the same completed fault. It has passed `outgoing`: the problem keeps the paths that the envelope has,
    because the same reader started the command.

    Args:
        fault: the failure, in the command-line vocabulary.
        meta: the envelope's `meta`.
        output: text, json or problem.
        docs: the URL of the error pages.

    """
    from msgspec.structs import replace

    fault = completed(fault, meta, docs)
    if output == "problem":
        from amends.dialects import problem

        told = problem.document(replace(fault, type=fault.type or "about:blank"))
        _sign(told, fault, problem.NAME)
        return to_json(told)
    if output == "text":
        return _text(fault).encode("utf-8", "replace")
    from amends.dialects import envelope

    document = envelope.document(fault)
    _sign(document["error"], fault, envelope.NAME)
    return to_json({**document, "meta": {**document["meta"], **meta}})


def completed(fault: Fault, meta: Mapping[str, object], docs: str | None = None) -> Fault:
    """
    Return the fault with the members that every output has: the next steps, the page about the code, and what `meta` says.

    >>> from amends import Fault
    >>> completed(Fault(code="NOT_FOUND", vocabulary="cli"), {"trace_id": "t-1"}, "https://shop.example/errors/").doc_uri
    'https://shop.example/errors/cli/not-found'
    """
    from msgspec.structs import replace

    from amends.core.crosswalk import suggestion_for

    changes: dict[str, object] = {
        name: meta[name] for name in ("trace_id", "attempt", "max_attempts") if meta.get(name) is not None
    }
    if not fault.suggestions:
        changes["suggestions"] = tuple(filter(None, (_next_step(fault) or suggestion_for(fault),)))
    if docs:
        from amends.core.explanation import slug

        page = f"{docs.rstrip('/')}/{slug(fault.vocabulary, fault.code)}"
        changes |= {"type": fault.type or page, "doc_uri": fault.doc_uri or page}
    return replace(fault, **changes)


def to_json(value: object) -> bytes:
    """Return a value as one line of JSON. NaN and infinities become null; msgspec converts types that json does not know."""
    from json import dumps

    try:
        return dumps(value, ensure_ascii=False, allow_nan=False, default=_builtin).encode() + b"\n"
    except (ValueError, TypeError):  # NaN, a lone surrogate, a key that is not a string
        return dumps(finite(_builtin(value))).encode() + b"\n"


def _builtin(value: object) -> object:
    import msgspec

    return msgspec.to_builtins(value, str_keys=True)


def finite(value: object) -> Any:
    """Return a JSON value in which None replaces NaN and infinities."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def _text(fault: Fault) -> str:
    """Return a failure for a person: the error with its code, its parts, then what to do."""
    from amends.cli.colour import painter
    from amends.core.text import strip

    steps = [strip(step) for step in fault.suggestions]
    paint = painter(sys.stderr)
    error = fit(f"{strip(fault.message)} ({strip(fault.code)})", 7)
    lines = [f"{paint('error:', 'bold', 'red')} {error}"]
    parts = (_part(strip(part.field or part.code), strip(part.message)) for part in fault.errors)
    lines += [f"  {fit(part, 4)}" for part in parts]
    labels = [paint("fix:", "cyan"), *["    "] * len(steps)]
    lines += [f"  {label} {fit(step, 7)}" for label, step in zip(labels, filter(None, steps), strict=False)]
    return "\n".join(lines) + "\n"


def fit(text: str, indent: int) -> str:
    """Return text for stderr in lines that fit the terminal, or unchanged if stderr is not one. Only spaces are broken at."""
    from amends.core.wrapping import wrapped

    try:
        if not sys.stderr.isatty():
            return text
        width = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(sys.stderr.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return text  # stderr is missing, closed or no terminal; or COLUMNS is not a number
    return wrapped(text, width, indent) if width else text


def _part(name: str, message: str) -> str:
    """Return a part of an error with its field, which a message of ours usually names already."""
    return message if name in message else f"{name}: {message}"


def _next_step(fault: Fault) -> str | None:
    """Return when to run the command again, if nothing speaks against it."""
    if fault.retryable and fault.retry_after is not None and fault.executed == "no":
        return f"Run it again in {fault.retry_after:g} s"
    return None


def write_stderr(text: str) -> None:
    """Write text to stderr. A closed or missing stderr is ignored: the exit code still reports the failure."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except UnicodeError:  # the terminal's encoding lacks a character
        sys.stderr.write(text.encode("ascii", "replace").decode())
    except (AttributeError, OSError, ValueError):
        pass
