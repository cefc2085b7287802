"""
Finds every mistake in the arguments of a Click or Typer command.

The frameworks stop at the first mistake. This module parses the arguments of the failing command again, removes unknown
flags instead of stopping, and processes each parameter separately, without callbacks and prompts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args, get_origin

from amends.bindings.click_parameters import choices
from amends.cli.arguments import Mistake, bad_value, missing, surplus, unknown
from amends.cli.type_names import describe_range, type_name

if TYPE_CHECKING:
    import click

__all__ = ["class_names", "field_of", "find_mistakes", "message_of", "mistake_of", "of_framework"]


def class_names(exc: BaseException) -> frozenset[str]:
    """Return the names of the classes of Click or Typer that an exception is an instance of."""
    return frozenset(cls.__name__ for cls in type(exc).__mro__ if of_framework(cls))


def of_framework(cls: type) -> bool:
    """Return whether a class is defined by Click or Typer."""
    return cls.__module__.split(".")[0] in {"click", "typer"}


def mistake_of(exc: BaseException) -> Mistake:
    """Return the one mistake that an exception reports."""
    names, field, context = class_names(exc), field_of(exc), getattr(exc, "ctx", None)
    program = context.command_path if context is not None else "the command"
    if "NoArgsIsHelpError" in names:
        return missing("an argument", program)  # the exception does not name the argument
    if "MissingParameter" in names:
        return missing(field or "an argument", program, message_of(exc))
    if "BadParameter" in names:
        return bad_value(field, message_of(exc), program)
    return Mistake("USAGE_ERROR", field, message_of(exc), [f"See {program} --help"])


def message_of(exc: BaseException) -> str:
    """Return the message of an exception of Click or Typer, with the hint at the parameter."""
    message = getattr(exc, "format_message", exc.__str__)
    return str(message())


def field_of(exc: object) -> str | None:
    """Return the name of the parameter that an exception is about, or None."""
    param = getattr(exc, "param", None)
    name = getattr(exc, "option_name", None)
    if name is None and param is not None:
        opts = list(getattr(param, "opts", ()))
        is_option = any(opt.startswith("-") for opt in opts)
        name = (
            max(opts, key=len)
            if is_option
            else str(getattr(param, "human_readable_name", None) or param.name).upper()
        )
    hint = getattr(exc, "param_hint", None)
    return name or (hint if isinstance(hint, str) else None)


def find_mistakes(context: click.Context, argv: list[str]) -> list[Mistake]:
    """Return the mistakes in the arguments of the context's command; an empty list if they cannot be parsed again."""
    try:
        return _find(context, argv)
    except Exception:  # noqa: BLE001 - an application's own parser or type may fail when it is called a second time
        return []


def _find(context: click.Context, argv: list[str]) -> list[Mistake]:
    command, args = context.command, _own_arguments(context, argv)
    if args is None:
        return []
    flags, opts, rest = _parse_leniently(context, args)
    found = [unknown("flag", flag, _known_flags(context), context.command_path) for flag in flags]
    for param in command.get_params(context):
        mistake = _parameter_mistake(context, param, opts)
        if mistake is not None:
            found.append(mistake)
    if hasattr(command, "resolve_command"):
        return found or _command_mistakes(context, rest)
    extra = [argument for argument in rest if argument not in flags]
    if extra and not flags and not context.allow_extra_args:
        found.append(surplus(extra, context.command_path))
    return found


def _own_arguments(context: click.Context, argv: list[str]) -> list[str] | None:
    """Return the arguments that remain for this context after its parents' own; None in a chain, where that is unknown."""
    if context.parent is None:
        return list(argv)
    above = _own_arguments(context.parent, argv)
    if above is None or getattr(context.parent.command, "chain", False):
        return None
    _, rest, _ = context.parent.command.make_parser(context.parent).parse_args(args=above)
    return list(rest[1:])


def _parse_leniently(
    context: click.Context, args: list[str]
) -> tuple[list[str], dict[str, object], list[str]]:
    """Return the unknown flags, the values of the known ones, and the remaining arguments."""
    ended = args.index("--") if "--" in args else len(args)
    flags: list[str] = []
    while True:
        parser = context.command.make_parser(context)
        try:
            opts, rest, _ = parser.parse_args(args=list(args))
        except Exception as exc:
            name = getattr(exc, "option_name", None)
            at = next(
                (
                    i
                    for i, argument in enumerate(args[:ended])
                    if name and (argument == name or argument.startswith(f"{name}="))
                ),
                None,
            )
            if "NoSuchOption" not in class_names(exc) or at is None:
                raise
            flags.append(str(name))
            del args[at]
            ended -= 1
            continue
        return flags, opts, list(rest)


def _known_flags(context: click.Context) -> list[str]:
    known = []
    for param in context.command.get_params(context):
        known += [opt for opt in (*param.opts, *param.secondary_opts) if opt.startswith("-")]
    return known


def _parameter_mistake(
    context: click.Context, param: click.Parameter, opts: dict[str, object]
) -> Mistake | None:
    """Return the mistake in one parameter's value, or None. Its callback and its prompt do not run."""
    before = {name: getattr(param, name) for name in ("callback", "prompt") if hasattr(param, name)}
    try:
        for name in before:
            setattr(param, name, None)
        param.handle_parse_result(context, opts, [])
    except Exception as exc:
        if not hasattr(exc, "format_message"):
            raise
        mistake = mistake_of(exc)
        if mistake.code != "VALIDATION_ERROR":
            return mistake
        given = opts.get(param.name)
        return bad_value(
            mistake.field,
            mistake.message,
            context.command_path,
            choices=choices(param),
            given=given if isinstance(given, str) else None,
            wanted=_wanted(param),
        )
    finally:
        for name, value in before.items():
            setattr(param, name, value)
    return None


def _wanted(param: Any) -> str | None:
    """Return a description of the values a parameter takes: by Click's type name, or by Typer's annotation."""
    kind = getattr(param, "type", None)
    if kind is not None:
        bounds, formats = kind, getattr(kind, "formats", None)
        # Click names a type made from a function after that function, so the function decides.
        name = type_name(kind.func) if hasattr(kind, "func") else getattr(kind, "name", None)
    else:
        descriptor = param.type_descriptor
        annotation, bounds = descriptor.annotation, descriptor.parameter_info
        inner = get_args(annotation) if get_origin(annotation) is list else ()
        name = "filename" if descriptor.file_annotation else type_name(inner[0] if inner else annotation)
        formats = getattr(bounds, "formats", None)
    if name == "datetime" and formats:
        return f"a date or time written as {' or '.join(map(str, formats))}"
    return describe_range(
        str(name).removesuffix(" range"),
        getattr(bounds, "min", None),
        getattr(bounds, "max", None),
        low_open=getattr(bounds, "min_open", False),
        high_open=getattr(bounds, "max_open", False),
    )


def _command_mistakes(context: Any, rest: list[str]) -> list[Mistake]:
    """Return the mistake for a missing or unknown subcommand."""
    names = context.command.list_commands(context)
    program = context.command_path
    given = next((argument for argument in rest if not argument.startswith("-")), None)
    if given is None:
        found = missing("a command", program)
        found.suggestions = (
            (f"Use one of {', '.join(names)}", *found.suggestions) if names else found.suggestions
        )
        return [found]
    return [] if given in names else [unknown("command", given, names, program)]
