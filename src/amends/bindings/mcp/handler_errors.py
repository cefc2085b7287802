"""
What an exception inside an MCP server says to its caller.

The frameworks wrap what a tool raised; here the wrapping is taken off, by class name, so that nothing is imported:

- arguments that do not fit are VALIDATION_ERROR, with the field and what to do about it;
- a ToolError or ResourceError that its author raised on purpose, with nothing else behind it, is shown: its text
  was written for the caller. One that was raised while another exception was handled may quote that one, and is not;
- a tool, resource or prompt that does not exist is REFERENCE_NOT_FOUND;
- everything else is told as `amends.serving` tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from amends.core.fault import Fault
from amends.core.text import strip, truncate
from amends.core.vocabularies.adcp import VOCABULARY
from amends.foreign import validation
from amends.foreign.classes import names
from amends.foreign.safe_attr import attribute
from amends.serving.server_errors import fault_for, ours

__all__ = [
    "Told",
    "Translate",
    "_raised_in",
    "from_peer",
    "is_missing",
    "left_out_arguments",
    "told",
    "unknown",
    "unwrapped",
]

Translate = Callable[[BaseException], Fault]
"""An exception nobody wrote for the caller as the caller hears it, in AdCP's words."""

_SDK, _FAST = "mcp.server.mcpserver.exceptions.", "fastmcp.exceptions."
_WRAPPERS = frozenset(
    {f"{_SDK}{name}" for name in ("ToolError", "ResourceError")}
    | {f"{_FAST}{name}" for name in ("ToolError", "ResourceError", "PromptError")}
)
"""Raised by authors on purpose, and by the frameworks around everything else."""
_MISSING = frozenset({f"{_SDK}ResourceNotFoundError", f"{_FAST}NotFoundError", f"{_FAST}DisabledError"})
_DENIED = frozenset({f"{_FAST}AuthorizationError"})
_ARGUMENTS = frozenset({f"{_FAST}ValidationError"})
_CRASHED = frozenset({f"{_SDK}UnexpectedToolError", f"{_SDK}UnexpectedResourceError"})
_INVALID = frozenset({"pydantic_core._pydantic_core.ValidationError"})
_LONGEST = 500
"""Characters; a longer text was not written for this."""
_DEPTH = 16
_MOST = 10
"""Mistakes named at once: an error has to stay small."""


class Told:
    """What to answer, and whether anybody expected it: what nobody did is logged with its trace."""

    __slots__ = ("cause", "expected", "fault")

    def __init__(self, fault: Fault, cause: BaseException, *, expected: bool) -> None:
        self.fault, self.cause, self.expected = fault, cause, expected


def unwrapped(exc: BaseException) -> BaseException:
    """What was raised first, below the frameworks' wrapping."""
    for _ in range(_DEPTH):
        if isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
            # A client's task groups wrap what is raised inside their block.
            exc = exc.exceptions[0]
            continue
        cause = attribute(exc, "__cause__")
        if not isinstance(cause, BaseException) or not (_is(exc, _WRAPPERS) or _quotes(exc)):
            break
        exc = cause
    return exc


def _quotes(exc: BaseException) -> bool:
    """The SDK wraps what a prompt raises in a ValueError, twice."""
    return type(exc) is ValueError and _raised_in(exc).startswith("mcp.server.mcpserver.")


def _raised_in(exc: BaseException) -> str:
    """The module that raised it."""
    trace = attribute(exc, "__traceback__")
    name = ""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        trace = trace.tb_next
    return name


def told(exc: BaseException, *, show: bool = True, translate: Translate = fault_for) -> Told:
    """
    What to answer for an exception that came out of a tool, resource or prompt.

    Args:
        exc: as the framework raised it.
        show: whether the text of a deliberate ToolError is for the caller.
        translate: makes the fault of a foreign exception.

    """
    refused = _refused_arguments(exc)
    if refused is not None:
        return Told(refused, exc, expected=True)
    inner = unwrapped(exc)
    if ours(inner) is not None:
        return Told(translate(inner), inner, expected=True)
    if _is(inner, _MISSING):
        return Told(_standard("REFERENCE_NOT_FOUND"), inner, expected=True)
    if _is(inner, _DENIED):
        return Told(_standard("PERMISSION_DENIED"), inner, expected=True)
    if show and _is(inner, _WRAPPERS) and _written_for_the_caller(inner):
        said = truncate(strip(str(inner)), _LONGEST)
        return Told(_standard("INVALID_REQUEST", message=said, suggestions=()), inner, expected=True)
    return Told(translate(inner), inner, expected=False)


def unknown(what: str) -> Fault:
    """Something the request names that is not there."""
    return _standard(
        "REFERENCE_NOT_FOUND",
        message=f"There is no {what} of that name",
        suggestions=(f"List what there is again, then use the name of a {what} in it",),
    )


def from_peer(exc: BaseException) -> bool:
    """
    Whether a protocol error is an upstream's answer to a call of ours, and not what the author says to the caller.

    It was raised in a client's code, which its traceback shows: as a class they are the same.
    """
    trace = attribute(exc, "__traceback__")
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith(("mcp.client.", "fastmcp.client.")):
            return True
        trace = trace.tb_next
    return False


def is_missing(exc: BaseException) -> bool:
    """Whether a framework says that what was named is not there."""
    return _is(exc, _MISSING)


def _is(exc: BaseException, known: frozenset[str]) -> bool:
    return any(name in known for name in names(type(exc)))


def _written_for_the_caller(exc: BaseException) -> bool:
    """Nothing else was going wrong when it was raised, so its text quotes nothing, and there is one."""
    behind = attribute(exc, "__cause__") or attribute(exc, "__context__")
    return behind is None and not _is(exc, _CRASHED) and bool(str(exc).strip())


def _refused_arguments(exc: BaseException) -> Fault | None:
    """The fault of arguments that do not fit, where that is what the framework says."""
    cause = attribute(exc, "__cause__")
    invalid = isinstance(cause, BaseException) and _is(cause, _INVALID)
    if _is(exc, _ARGUMENTS):
        if not invalid:
            return _standard("VALIDATION_ERROR")
    elif not invalid or not _is(exc, _WRAPPERS) or _is(exc, _CRASHED):
        return None
    return _invalid((each["loc"], each["type"]) for each in _mistakes(cause))


def _mistakes(exc: Any) -> list[Any]:
    found: list[Any] = exc.errors(include_url=False, include_context=False, include_input=False)
    return found[:_MOST]


def left_out_arguments(names: list[str]) -> Fault:
    """Arguments a prompt needs and did not get."""
    return _invalid(((name,), "missing") for name in names[:_MOST])


def _invalid(mistakes: Iterable[tuple[tuple[Any, ...], str]]) -> Fault:
    """The fields at fault: the first as AdCP's `field`, all of them as its `issues`, each with what to do about it."""
    issues = [
        {
            "pointer": validation.pointer(path) or "",
            "message": validation.suggestion(kind),
            "keyword": _keyword(kind),
        }
        for path, kind in mistakes
    ]
    field = _path(issues[0]["pointer"]) if issues else ""
    if not field:
        return _standard("VALIDATION_ERROR")
    return _standard(
        "VALIDATION_ERROR",
        message=f"{VOCABULARY.rows['VALIDATION_ERROR'].message}: {field}",
        field=field,
        suggestions=(issues[0]["message"],),
        extensions={"issues": issues},
    )


# pydantic's words for mistakes and JSON Schema's, which AdCP's `issues` are in; the longest beginning counts.
_KEYWORDS = {
    "missing": "required",
    "extra_forbidden": "additionalProperties",
    "unexpected": "additionalProperties",
    "enum": "enum",
    "literal_error": "enum",
    "greater_than_equal": "minimum",
    "greater_than": "exclusiveMinimum",
    "less_than_equal": "maximum",
    "less_than": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "string_too_short": "minLength",
    "string_too_long": "maxLength",
    "string_pattern_mismatch": "pattern",
    "too_short": "minItems",
    "too_long": "maxItems",
    "union_tag": "oneOf",
}
_BY_LENGTH = sorted(_KEYWORDS, key=len, reverse=True)


def _keyword(kind: str) -> str:
    return next((_KEYWORDS[word] for word in _BY_LENGTH if kind.startswith(word)), "type")


def _path(pointer: str) -> str:
    """AdCP's `field` is a path like packages[0].budget; its `issues` have JSON Pointers."""
    path = ""
    for token in pointer[1:].split("/"):
        step = token.replace("~1", "/").replace("~0", "~")
        path += f"[{step}]" if step.isdecimal() else f".{step}" if path else step
    return path


def _standard(code: str, **more: Any) -> Fault:
    row = VOCABULARY.rows[code]
    more.setdefault("message", row.message)
    more.setdefault("suggestions", (row.suggestion,))
    return Fault(code=code, vocabulary=VOCABULARY.name, **more)
