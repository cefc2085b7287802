"""The documents a bound command answers with, and the short text a person gets instead."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amends.core.fault import Fault

__all__ = ["failure", "failure_text", "finite", "success", "tell", "to_json"]


def success(data: Any, meta: dict[str, Any]) -> bytes:
    """The envelope of a success. A result that is no JSON is left out and said so: the command did succeed."""
    envelope: dict[str, Any] = {"ok": True, "data": data, "error": None, "meta": meta}
    try:
        return to_json(envelope)
    except (TypeError, ValueError, RecursionError, NotImplementedError):
        envelope |= {"data": None, "warnings": ["the result cannot be written as JSON and was left out"]}
        return to_json(envelope)


def failure(fault: Fault, meta: dict[str, Any], output: str) -> bytes:
    """A failure in the dialect that was asked for."""
    if output == "problem":
        from amends.dialects import problem

        return to_json(problem.encode(fault))
    from amends.dialects import envelope

    written = envelope.encode(fault)
    return to_json({**written, "meta": {**written["meta"], **meta}})


def to_json(value: Any) -> bytes:
    """One line of JSON. Numbers that are none become null; values that only msgspec knows are written as it would."""
    from json import dumps

    try:
        return dumps(value, ensure_ascii=False, allow_nan=False, default=_builtin).encode() + b"\n"
    except (ValueError, TypeError):  # NaN, a lone surrogate, a key of another type
        return dumps(finite(_builtin(value))).encode() + b"\n"


def _builtin(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value, str_keys=True)


def finite(value: Any) -> Any:
    """A plain value with null for numbers that are none."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def failure_text(fault: Fault) -> None:
    """A failure for a person, on stderr, the fix first."""
    from amends.cli.colour import painter
    from amends.core.crosswalk import source_row
    from amends.core.text import strip

    suggestions = [strip(step) for step in fault.suggestions]
    first = suggestions[0] if suggestions else _next_step(fault) or source_row(fault).suggestion
    paint = painter(sys.stderr)
    lines = [paint(first, "bold"), f"{paint(strip(fault.code), 'red')} {strip(fault.message)}"]
    lines += [f"  {strip(part.field or part.code)}: {strip(part.message)}" for part in fault.errors]
    lines += [paint(step, "dim") for step in suggestions[1:]]
    tell("\n".join(lines) + "\n")


def _next_step(fault: Fault) -> str | None:
    if fault.retryable and fault.retry_after is not None:
        return f"Run it again in {fault.retry_after:g} s"
    return None


def tell(text: str) -> None:
    """Say something on stderr, if there is one."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except UnicodeError:  # a terminal that cannot show it
        sys.stderr.write(text.encode("ascii", "replace").decode())
    except (AttributeError, OSError, ValueError):
        pass  # nobody listens; the exit code still says it
