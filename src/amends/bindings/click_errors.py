"""
Every mistake in the arguments of one Click or Typer command.

The frameworks stop at the first. So the arguments are parsed again for the command that refused them, with unknown
flags left over instead of refused, and every parameter is asked on its own; callbacks and prompts stay out of it.
"""

from __future__ import annotations

from typing import Any, get_args, get_origin

from amends.bindings.click import choices
from amends.cli.arguments import Mistake, bad_value, missing, surplus, unknown
from amends.cli.type_names import bounded, kind_name

__all__ = ["mistakes"]


def mistakes(context: Any, argv: list[str]) -> list[Mistake]:
    """What is wrong with the part of `argv` that belongs to the context's command; nothing where it cannot be told."""
    try:
        return _found(context, argv)
    except Exception:  # noqa: BLE001 - a parser or type of somebody's own that cannot be asked twice
        return []


def _found(context: Any, argv: list[str]) -> list[Mistake]:
    command, args = context.command, _own(context, argv)
    if args is None:
        return []
    flags, opts, rest = _lenient(context, args)
    found = [unknown("flag", flag, _flags(context), context.command_path) for flag in flags]
    for param in command.get_params(context):
        mistake = _asked(context, param, opts)
        if mistake is not None:
            found.append(mistake)
    if hasattr(command, "resolve_command"):
        return found or _command_word(context, rest)
    words = [word for word in rest if word not in flags]
    if words and not flags and not context.allow_extra_args:
        found.append(surplus(words, context.command_path))
    return found


def _own(context: Any, argv: list[str]) -> list[str] | None:
    """The words that are left for this context when those above it have taken theirs; None in chains, where nobody knows."""
    if context.parent is None:
        return list(argv)
    above = _own(context.parent, argv)
    if above is None or getattr(context.parent.command, "chain", False):
        return None
    _, rest, _ = context.parent.command.make_parser(context.parent).parse_args(args=above)
    return list(rest[1:])


def _lenient(context: Any, args: list[str]) -> tuple[list[str], dict[str, Any], list[str]]:
    """The unknown flags, the values of the known ones, and the words left over."""
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
                    for i, word in enumerate(args[:ended])
                    if name and (word == name or word.startswith(f"{name}="))
                ),
                None,
            )
            if type(exc).__name__ != "NoSuchOption" or at is None:
                raise
            flags.append(str(name))
            del args[at]
            ended -= 1
            continue
        return flags, opts, list(rest)


def _flags(context: Any) -> list[str]:
    known = []
    for param in context.command.get_params(context):
        known += [opt for opt in (*param.opts, *param.secondary_opts) if opt.startswith("-")]
    return known


def _asked(context: Any, param: Any, opts: dict[str, Any]) -> Mistake | None:
    """What one parameter says about its value, without its callback and without asking anybody."""
    from amends.bindings.click_exceptions import first

    before = {name: getattr(param, name) for name in ("callback", "prompt") if hasattr(param, name)}
    try:
        for name in before:
            setattr(param, name, None)
        param.handle_parse_result(context, opts, [])
    except Exception as exc:
        if not hasattr(exc, "format_message"):
            raise
        mistake = first(exc)
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
    """What a parameter takes, in words, as its type says it: Click's by its name, Typer's by its annotation."""
    kind = getattr(param, "type", None)
    if kind is not None:
        bounds, formats = kind, getattr(kind, "formats", None)
        # A function used as a type lends it its name, which says nothing of the kind.
        name = kind_name(kind.func) if hasattr(kind, "func") else getattr(kind, "name", None)
    else:
        descriptor = param.type_descriptor
        annotation, bounds = descriptor.annotation, descriptor.parameter_info
        inner = get_args(annotation) if get_origin(annotation) is list else ()
        name = "filename" if descriptor.file_annotation else kind_name(inner[0] if inner else annotation)
        formats = getattr(bounds, "formats", None)
    if name == "datetime" and formats:
        return f"a date or time written as {' or '.join(map(str, formats))}"
    return bounded(
        str(name).removesuffix(" range"),
        getattr(bounds, "min", None),
        getattr(bounds, "max", None),
        over=getattr(bounds, "min_open", False),
        under=getattr(bounds, "max_open", False),
    )


def _command_word(context: Any, rest: list[str]) -> list[Mistake]:
    names = context.command.list_commands(context)
    program = context.command_path
    word = next((word for word in rest if not word.startswith("-")), None)
    if word is None:
        found = missing("a command", program)
        found.suggestions = (
            (f"Use one of {', '.join(names)}", *found.suggestions) if names else found.suggestions
        )
        return [found]
    return [] if word in names else [unknown("command", word, names, program)]
