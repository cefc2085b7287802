"""
The failure that an MCP server answers for an exception of a tool, resource or prompt.

The frameworks wrap what a tool raised. This module unwraps it, by class name, so that it imports no framework:

- arguments that do not match the schema are VALIDATION_ERROR, with the field and a suggestion;
- a ToolError or ResourceError without a cause or context is INVALID_REQUEST with its text: the author wrote it for the
  caller. One that was raised while another exception was handled may quote that exception, so its text is not sent;
- an unknown tool, resource or prompt is REFERENCE_NOT_FOUND;
- everything else is translated by `amends.serving.server_errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from amends.core.fault import Fault
from amends.core.fields import property_path
from amends.core.text import strip, truncate
from amends.core.vocabularies.adcp import VOCABULARY
from amends.foreign import validation
from amends.foreign.groups import parts_of, single
from amends.serving.server_errors import PLAIN, Failure, OwnErrors, fault_for, joined_failure, modules_of


class DeclaredArgument(Protocol):
    """An argument of a prompt, of either framework."""

    @property
    def name(self) -> str: ...

    @property
    def required(self) -> bool | None: ...


__all__ = [
    "Translate",
    "absent_arguments",
    "classify",
    "is_not_found",
    "is_time_limit",
    "not_found",
    "raised_by_client",
    "unwrap",
]

Translate = Callable[[BaseException], Fault]
"""Returns the fault for an exception that was not raised for the caller, in the adcp vocabulary."""

_SDK_1 = "mcp.server.fastmcp.exceptions."
_SDK, _FAST = "mcp.server.mcpserver.exceptions.", "fastmcp.exceptions."
_WRAPPERS = frozenset(
    {f"{sdk}{name}" for sdk in (_SDK, _SDK_1) for name in ("ToolError", "ResourceError")}
    | {f"{_FAST}{name}" for name in ("ToolError", "ResourceError", "PromptError")}
)
"""Raised by authors on purpose, and by the frameworks around other exceptions."""
_MISSING = frozenset({f"{_SDK}ResourceNotFoundError", f"{_FAST}NotFoundError", f"{_FAST}DisabledError"})
_DENIED = frozenset({f"{_FAST}AuthorizationError"})
_BODY = frozenset({"fastmcp.tools.function_tool._ToolBodyError"})
"""FastMCP's wrapper of a pydantic error that the body of a tool raised, in contrast to its argument check."""
_PROTOCOL = frozenset({"mcp.shared.exceptions.MCPError", "mcp.shared.exceptions.McpError"})
_PROMPTS = frozenset({f"{_FAST}PromptError"})
_ARGUMENTS = frozenset({f"{_FAST}ValidationError"})
_CRASHED = frozenset({f"{_SDK}UnexpectedToolError", f"{_SDK}UnexpectedResourceError"})
_INVALID = frozenset({"pydantic_core._pydantic_core.ValidationError"})
_SERVERS = ("mcp.server.mcpserver.", "mcp.server.fastmcp.")
"""The SDK's frameworks for servers, in its versions 2 and 1."""
_LONGEST = 500
"""Characters of an author's text that are sent."""
_DEPTH = 16
"""Levels of wrapping that are removed."""
_MOST = 10
"""Validation issues in one error, which has to stay below 4096 bytes."""

# Read past the properties of a subclass, which may raise.
_cause: Callable[[BaseException], BaseException | None] = BaseException.__dict__["__cause__"].__get__
_context: Callable[[BaseException], BaseException | None] = BaseException.__dict__["__context__"].__get__


def unwrap(exc: BaseException) -> BaseException:
    """Return the exception that was raised first, without the frameworks' wrappers."""
    for _ in range(_DEPTH):
        # The task groups of a client wrap what is raised inside their block.
        exc = single(exc)
        cause = _cause(exc)
        if cause is None or not (_is(exc, _WRAPPERS | _BODY) or _is_sdk_wrapper(exc)):
            break
        exc = cause
    return exc


def _is_prompt_wrapper(exc: BaseException) -> bool:
    """Whether the SDK raised this ValueError around what a prompt raised; it does so twice."""
    return isinstance(exc, ValueError) and _raised_in(exc).startswith(_SERVERS)


def _is_sdk_wrapper(exc: BaseException) -> bool:
    """Whether the SDK raised this exception around what a prompt or a completion raised."""
    if _is(exc, _PROTOCOL):
        return _raised_in(exc).startswith(_SERVERS)
    return _is_prompt_wrapper(exc)


def _raised_in(exc: BaseException) -> str:
    modules = modules_of(exc)
    return modules[-1] if modules else ""


def classify(
    exc: BaseException,
    *,
    show: bool = True,
    translate: Translate = fault_for,
    own_errors: OwnErrors = PLAIN,
) -> Failure:
    """
    Return the failure to answer for an exception of a tool, resource or prompt.

    Args:
        exc: the exception as the framework raised it.
        show: whether the text of a ToolError raised on purpose is sent to the caller.
        translate: returns the fault for every other exception.
        own_errors: the options for errors that the server's author raises or has registered.

    """
    refused = _refused_arguments(exc)
    if refused is not None:
        return Failure(refused, exc, expected=True)
    inner = unwrap(exc)
    if len(parts_of(inner)) > 1:
        return joined_failure(inner, partial(classify, show=show, translate=translate, own_errors=own_errors))
    failure = own_errors.failure_of(inner, translate)
    if failure is not None:
        return failure
    if _is(inner, _MISSING):
        return Failure(_standard("REFERENCE_NOT_FOUND"), inner, expected=True)
    if _is(inner, _DENIED):
        return Failure(_standard("PERMISSION_DENIED"), inner, expected=True)
    if show and _is(inner, _WRAPPERS) and _is_for_the_caller(inner):
        message = truncate(strip(str(inner)), _LONGEST)
        return Failure(_standard("INVALID_REQUEST", message=message, suggestions=()), inner, expected=True)
    return Failure(translate(inner), inner, expected=False)


def not_found(what: str) -> Fault:
    """Return the fault for a request that names an unknown tool or prompt."""
    return _standard(
        "REFERENCE_NOT_FOUND",
        message=f"There is no {what} of that name",
        suggestions=(f"List what there is again, then use the name of a {what} in it",),
    )


def raised_by_client(exc: BaseException) -> bool:
    """
    Whether an MCPError is the answer of an upstream, raised by a client that the handler used.

    The author of a handler raises the same class, so the traceback decides.
    """
    return any(module.startswith(("mcp.client.", "fastmcp.client.")) for module in modules_of(exc))


def is_time_limit(exc: BaseException) -> bool:
    """Whether FastMCP raised this MCPError because a tool took longer than its `timeout`."""
    return _raised_in(exc).startswith("fastmcp.tools.")


def is_not_found(exc: BaseException) -> bool:
    """Whether a framework raised this exception because the request names something unknown."""
    return _is(exc, _MISSING)


def _is(exc: BaseException, known: frozenset[str]) -> bool:
    return any(f"{base.__module__}.{base.__qualname__}" in known for base in type(exc).__mro__)


def _is_for_the_caller(exc: BaseException) -> bool:
    """Whether the exception has a text, and no other exception that the text could quote."""
    other = _cause(exc) or _context(exc)
    return other is None and not _is(exc, _CRASHED) and bool(str(exc).strip())


def _refused_arguments(exc: BaseException) -> Fault | None:
    """Return the fault if the framework refused the arguments, else None."""
    cause = _cause(exc)
    if _is_prompt_wrapper(exc):
        cause = unwrap(exc)
        if not _is(cause, _INVALID) or not _raised_by_framework(cause):
            return None
        return _invalid(_issues(cause))
    invalid = cause is not None and _is(cause, _INVALID)
    if invalid and _is(exc, _PROMPTS) and not _raised_by_framework(cause):
        return None
    if _is(exc, _ARGUMENTS):
        if not invalid:
            return _standard("VALIDATION_ERROR")
    elif not invalid or not _is(exc, _WRAPPERS) or _is(exc, _CRASHED):
        return None
    return _invalid(_issues(cause))


# Modules between a framework and the function that it calls.
_BETWEEN = ("pydantic", "anyio", "asyncio", "concurrent", "threading", "contextvars", "functools")


def _raised_by_framework(exc: BaseException | None) -> bool:
    """Whether a framework validated the arguments, and not the author's code something else."""
    for module in reversed([] if exc is None else modules_of(exc)):
        if not module.startswith(_BETWEEN):
            return module.startswith(("mcp.server.", "fastmcp."))
    return False


def _issues(exc: BaseException | None) -> Iterator[tuple[tuple[object, ...], str]]:
    """Yield path and kind of the issues of pydantic's error, which may be that of another copy of pydantic."""
    errors = getattr(exc, "errors", None)
    found = errors(include_url=False, include_context=False, include_input=False) if callable(errors) else ()
    for issue in found[:_MOST]:
        yield issue["loc"], issue["type"]


def absent_arguments(
    declared: Iterable[DeclaredArgument] | None, given: Mapping[str, object] | None
) -> Fault | None:
    """Return the fault for required arguments of a prompt that the request does not have; None if it has all."""
    required = [argument.name for argument in declared or () if argument.required]
    absent = [name for name in required if name not in (given or {})]
    return _invalid(((name,), "missing") for name in absent[:_MOST]) if absent else None


def _invalid(issues: Iterable[tuple[tuple[object, ...], str]]) -> Fault:
    """Return VALIDATION_ERROR for pydantic's issues: the first as AdCP's `field`, all of them as its `issues`."""
    written = [
        {
            "pointer": validation.pointer(path) or "",
            "message": validation.suggestion(kind),
            "keyword": _keyword(kind),
        }
        for path, kind in issues
    ]
    field = property_path(written[0]["pointer"]) if written else ""
    if not field:
        return _standard("VALIDATION_ERROR")
    return _standard(
        "VALIDATION_ERROR",
        message=f"{VOCABULARY.rows['VALIDATION_ERROR'].message}: {field}",
        field=field,
        suggestions=(written[0]["message"],),
        extensions={"issues": written},
    )


# From pydantic's error types to the JSON Schema keywords that AdCP's `issues` use. The longest matching prefix counts.
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
    return next((_KEYWORDS[prefix] for prefix in _BY_LENGTH if kind.startswith(prefix)), "type")


def _standard(code: str, **more: Any) -> Fault:
    row = VOCABULARY.rows[code]
    more.setdefault("message", row.message)
    more.setdefault("suggestions", (row.suggestion_under(more.get("recovery", row.recovery)),))
    return Fault(code=code, vocabulary=VOCABULARY.name, **more)
