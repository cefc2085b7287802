"""
Paths and conditions: the two small languages of service files. Both are pure functions of a JSON value.

A path is names joined by dots. `[0]` and `[-1]` are an item, `[]` every item, `*` any member and `*Exception` those whose name ends so;
`"a.b"` is a name with a dot, `.` the value itself. A condition is one of

    path              there, and neither null nor ""
    path = a|b        one of these texts, numbers or booleans; `!=` something else than these, and not null
    path > 5          a number above it; also `<`
    path ~ PGRST*|##  a text or number of this form: `*` is any text, `#` a digit
    path : type       of this type (`TYPES`)
    path only a b     an object without other members than these

with `!` in front for the opposite. There are no regular expressions: the time for a condition grows with the length of the pattern
times that of the text, whatever both contain, and a path looks at `MAX_VALUES` values at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

__all__ = ["MAX_VALUES", "TYPES", "Condition", "condition", "every", "first", "matches", "needs", "values"]

Condition = Callable[[object], bool]
_Path = tuple[str | int | None, ...]

MAX_VALUES = 1000
"""The most values that a path yields; further ones are not looked at."""
_MAX_MEMBERS = 64
_MAX_STEPS = 8
_MAX_TEXT = 256
_STEP = re.compile(r'"([^"\n]{1,96})"|\[(-?[0-9]{0,4})\]|([^.\[\]"\s]{1,96})|(\.)')


@lru_cache(maxsize=4096)
def parse(path: str) -> _Path:
    """
    Return the steps of a path: a name, a number for an item, None for every item.

    >>> parse("error.details[].reason")
    ('error', 'details', None, 'reason')

    Raises:
        ValueError: it is no path.

    """
    if path == ".":
        return ()
    steps: list[str | int | None] = []
    place = 0
    expects_step = True
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None or (found[4] is not None and expects_step):
            break
        place = found.end()
        if found[4] is not None:
            expects_step = True
            continue
        if found[2] is not None:
            steps.append(int(found[2]) if found[2] not in {"", "-"} else None)
        elif not expects_step:
            break
        else:
            # A quoted name is compared as it is; elsewhere `*` is any text.
            steps.append(f'"{found[1]}' if found[1] is not None and "*" in found[1] else found[1] or found[3])
        expects_step = False
    else:
        if steps and not expects_step and len(steps) <= _MAX_STEPS:
            return tuple(steps)
    raise ValueError(f"{path!r} is no path: names joined by dots, [0] or [] for items, at most {_MAX_STEPS}")


def values(value: object, path: str) -> list[Any]:
    """
    Return the values at a path, null included.

    >>> values({"errors": [{"code": 1}, {"code": 2}]}, "errors[].code")
    [1, 2]
    """
    return _values(value, parse(path))


def first(value: object, path: str) -> Any:
    """
    Return the first value at a path that is not null, or None.

    >>> first({"a": {"b.c": None}, "d": [5]}, "d[-1]")
    5
    """
    return next((each for each in _values(value, parse(path)) if each is not None), None)


def _values(value: object, path: _Path) -> list[Any]:
    level: list[Any] = [value]
    for step in path:
        below: list[Any] = []
        for each in level:
            if isinstance(step, str):
                if isinstance(each, dict):
                    _add_members(each, step, below)
            elif isinstance(each, list):
                if step is None:
                    below += each[:MAX_VALUES]
                elif -len(each) <= step < len(each):
                    below.append(each[step])
            if len(below) >= MAX_VALUES:
                break
        level = below[:MAX_VALUES]
        if not level:
            break
    return level


def _add_members(value: dict[str, Any], step: str, below: list[Any]) -> None:
    if "*" not in step:
        if step in value:
            below.append(value[step])
    elif step[0] == '"':
        if step[1:] in value:
            below.append(value[step[1:]])
    else:
        below += [value[name] for name in list(value)[:_MAX_MEMBERS] if matches(step, name)]


def matches(pattern: str, text: str) -> bool:
    """
    Return whether a text has the form of a pattern, in which `*` is any text and `#` a digit.

    >>> matches("E*:Rate", "EAPI:Rate"), matches("####", "1113"), matches("A*A", "A")
    (True, True, False)
    """
    return _matcher(pattern)(text)


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], bool]:
    begin, *middle = pattern.split("*")
    if not middle:
        length = len(begin)
        return lambda text: len(text) == length and _fits(begin, text, 0)
    *middle, end = middle
    if not middle and not end and "#" not in begin:
        return lambda text: text.startswith(begin)

    def has_form(text: str) -> bool:
        last = len(text) - len(end)
        if last < len(begin) or not _fits(begin, text, 0) or not _fits(end, text, last):
            return False
        place = len(begin)
        for part in middle:
            # The earliest place leaves the most room for the rest, so that no other has to be tried.
            while place + len(part) <= last and not _fits(part, text, place):
                place += 1
            place += len(part)
        return place <= last

    return has_form


def _fits(part: str, text: str, place: int) -> bool:
    if "#" not in part:
        return text.startswith(part, place)
    return len(part) + place <= len(text) and all(
        "0" <= text[place + at] <= "9" if char == "#" else text[place + at] == char
        for at, char in enumerate(part)
    )


def _text(value: object) -> str | None:
    """Return a value as the text that conditions compare, or None for objects, lists and whatever is too long."""
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else None
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else None
    return f"{value:g}" if isinstance(value, float) else None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


TYPES: dict[str, Condition] = {
    "str": lambda value: isinstance(value, str),
    "int": _is_int,
    "bool": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "obj": lambda value: isinstance(value, dict),
    "any": lambda value: True,
    "null": lambda value: value is None,
    "some": bool,
    "none": lambda value: not value,
    # A text in capital letters, and one such as AuthFailure.
    "upper": lambda value: isinstance(value, str) and value.isupper(),
    "camel": lambda value: (
        isinstance(value, str) and value.isalnum() and value[:1].isupper() and not value.isupper()
    ),
    # A text with spaces.
    "phrase": lambda value: isinstance(value, str) and " " in value,
    # An object with a member that says something; one with a single member.
    "full": lambda value: (
        isinstance(value, dict) and any(each is not None and each != "" for each in value.values())
    ),
    "single": lambda value: isinstance(value, dict) and len(value) == 1,
}
"""The types of `path : type`. `word` is one more: a code word of the service itself."""

_CONDITION = re.compile(r'(!?)\s*((?:"[^"]*"|[^\s=!<>~:"])+)\s*(?:(!=|=|>|<|~|:|only\b)\s*(.*))?')


def _split(source: str) -> tuple[bool, str, str | None, str]:
    found = _CONDITION.fullmatch(source.strip())
    if found is None:
        raise ValueError(f"{source!r} is no condition: write a path, or a path and = != > < ~ : or only")
    return found[1] == "!", found[2], found[3], (found[4] or "").strip()


@lru_cache(maxsize=4096)
def condition(source: str, words: frozenset[str] = frozenset()) -> Condition:
    """
    Return the function that tests a condition; `words`: the code words of the service, for `path : word`.

    >>> condition("error.type = card_error|idempotency_error")({"error": {"type": "card_error"}})
    True

    Raises:
        ValueError: it is no condition.

    """
    negative, path, operator, argument = _split(source)
    test = _test(source, operator, argument, words)
    steps = parse(path)
    if not steps:
        return (lambda value: not test(value)) if negative else test
    if any(not isinstance(step, str) or "*" in step for step in steps) or len(steps) > 2:
        return lambda value: any(map(test, _values(value, steps))) is not negative
    name = steps[0]
    if len(steps) == 1:
        return lambda value: (isinstance(value, dict) and name in value and test(value[name])) is not negative
    inner = steps[1]

    def nested(value: object) -> bool:
        held = value.get(name) if isinstance(value, dict) else None
        return (isinstance(held, dict) and inner in held and test(held[inner])) is not negative

    return nested


def _test(source: str, operator: str | None, argument: str, words: frozenset[str]) -> Condition:
    if operator is None:
        return lambda value: value is not None and value != ""
    if not argument:
        raise ValueError(f"{source!r} compares with nothing")
    if operator in {"=", "!="}:
        texts = frozenset(each.strip() for each in argument.split("|"))
        if operator == "=":
            return lambda value: _text(value) in texts
        return lambda value: value is not None and _text(value) not in texts
    if operator in {">", "<"}:
        try:
            bound = float(argument)
        except ValueError:
            raise ValueError(f"{source!r}: {argument!r} is no number") from None
        sign = 1 if operator == ">" else -1
        return lambda value: (
            isinstance(value, (int, float)) and not isinstance(value, bool) and _is_beyond(value, bound, sign)
        )
    if operator == "~":
        forms = tuple(_matcher(each.strip()) for each in argument.split("|"))

        def has_form(value: object) -> bool:
            text = None if isinstance(value, (bool, float)) else _text(value)
            return text is not None and any(form(text) for form in forms)

        return has_form
    if operator == ":":
        if argument == "word":
            return lambda value: isinstance(value, str) and value in words
        found = TYPES.get(argument)
        if found is None:
            raise ValueError(f"{source!r}: there is no type {argument!r}; there are word, {', '.join(TYPES)}")
        return found
    names = frozenset(argument.split())
    return lambda value: isinstance(value, dict) and value.keys() <= names


def _is_beyond(value: float, bound: float, sign: int) -> bool:
    return value > bound if sign > 0 else value < bound


def every(sources: Sequence[str], words: frozenset[str] = frozenset()) -> Condition:
    """
    Return the function that tests whether all conditions hold.

    >>> every(["ok = false", "error:str"])({"ok": False, "error": "ratelimited"})
    True
    """
    # Their order does not matter, so the cheap ones come first.
    tests = tuple(condition(source, words) for source in sorted(sources, key=_cost))
    if len(tests) == 1:
        return tests[0]
    if len(tests) == _TWO:
        one, other = tests
        return lambda value: one(value) and other(value)

    def all_hold(value: object) -> bool:
        for test in tests:  # noqa: SIM110 - a generator costs as much as the test
            if not test(value):
                return False
        return True

    return all_hold


_TWO = 2


def _cost(source: str) -> int:
    _, path, operator, _ = _split(source)
    simple = all(isinstance(step, str) and "*" not in step for step in parse(path))
    return (0 if simple else 4) + (2 if operator == "~" else 1 if operator == "only" else 0)


def needs(sources: Sequence[str]) -> list[tuple[str, str | None]]:
    """
    Return the members that conditions need, each with one inside it or inside its first item, or None.

    A body without them cannot fulfil the conditions.

    >>> needs(["!a", "error.decline_code:any", "ok = false"]), needs(["errors[0].code"]), needs([". only a"])
    ([('error', 'decline_code'), ('ok', None)], [('errors', 'code')], [])
    """
    found: list[tuple[str, str | None]] = []
    for source in sources:
        negative, path, operator, _ = _split(source)
        steps = parse(path)
        if negative or operator == "only" or not steps or not isinstance(steps[0], str) or "*" in steps[0]:
            continue
        inner = steps[1] if len(steps) > 1 else None
        if inner == 0 and len(steps) > _TWO:
            inner = steps[2]
        found.append((steps[0], inner if isinstance(inner, str) and "*" not in inner else None))
    return found
