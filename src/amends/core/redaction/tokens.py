"""Secrets, recognised by the name before them or by looking generated."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from amends.core.redaction.rule import MARKER, words

__all__ = [
    "NAMES_OF_SECRETS",
    "judge_long",
    "judge_parameter",
    "judge_quoted",
    "judge_scheme",
    "judge_value",
    "looks_random",
    "prose",
]

NAMES_OF_SECRETS = (
    r"(?:passw(?:or)?ds?|secrets?|tokens?|(?<![A-Za-z])(?:pwd|passphrase|secret[_-]?key|api[_ -]?keys?|access[_ -]?keys?(?:[_ -]?id)?"
    r"|account[_-]?key|shared[_-]?(?:access[_-]?)?key|private[_ -]?key(?:[_ -]?id)?|encryption[_ -]?key|signing[_ -]?key|credentials?|connection[_ -]?string"
    r"|session[_ -]?ids?|(?:j|php)?sess(?:ion)?id|sid|signature|authorization|x-amz-[a-z-]{3,24}))"
)
# Remarks about a secret, as opposed to a secret.
_PLAIN = words(
    "missing expired invalid required none null nil true false yes no unknown empty revoked redacted hidden absent "
    "denied rejected malformed undefined disabled enabled optional string str int integer bool boolean number object "
    "array bytes any value default present unset wrong bad incorrect not is was must should cannot can't failed the a "
    "an too"
)


def _secretive(value: str) -> bool:
    """Whether a value looks generated: it has digits, mixed case or signs, or is very long."""
    if len(value) < 6 or value.lower() in _PLAIN:
        return False
    tail = value[1:]
    return (
        any(map(str.isdigit, value))
        or (any(map(str.isupper, tail)) and any(map(str.islower, value)))
        or any(sign in value for sign in "=+~$!#%^&*")
        or len(value) >= 32
    )


def looks_random(value: str) -> bool:
    """Whether a long run switches between lower case, upper case and digits as often as random text does."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "" for c in value]
    # The step from a capital to small letters does not count: ordinary names have it.
    steps = sum(a != b and (a, b) != ("u", "l") and bool(a) and bool(b) for a, b in pairwise(kinds))
    return len(set(kinds) - {""}) == 3 and steps >= 0.22 * len(value)


def judge_long(match: re.Match[str]) -> tuple[int, int] | None:
    """A long run without spaces, when it looks random."""
    return match.span() if looks_random(match[0]) else None


def judge_value(match: re.Match[str]) -> tuple[int, int] | None:
    """`password=x`, `"token": "x"`, `api key: x`: the value, when it is one and not a remark about it."""
    value = match["value"]
    quoted = value[0] in "\"'\\"
    bare = value.strip("\"'\\")
    if len(bare) < 3 or bare.startswith(MARKER[:-1]) or bare.lower().rstrip(".!") in _PLAIN:
        return None
    assigned = "=" in match["sign"] or "%" in match["sign"] or (quoted and match["quote"])
    if assigned and not (quoted and prose(bare)):
        return match.span("value")
    # "signature is SHA256" is not a secret, "password is hunter2" is.
    short = match["sign"].strip().isalpha() and len(bare) < 10 and not _is_password(match[0])
    return match.span("value") if _secretive(bare.rstrip(".!")) and " " not in bare and not short else None


def _is_password(text: str) -> bool:
    return text.lower().startswith(("passw", "pwd", "passphrase"))


def judge_quoted(match: re.Match[str]) -> tuple[int, int] | None:
    """`password 'x'`, `password x`, `<password>x<`: x, unless it is a remark."""
    value = match["value"]
    bare = value.strip("\"'")
    if len(bare) < 3 or bare.startswith(MARKER[:-1]) or bare.lower().rstrip(".!") in _PLAIN or prose(bare):
        return None
    if value[0] not in "\"'" and match.string[match.start("value") - 1] in " \t":
        return match.span("value") if _secretive(bare.rstrip(".!")) else None
    return match.span("value") if not _remark().search(bare) else None


def judge_parameter(match: re.Match[str]) -> tuple[int, int] | None:
    """`?key=x`: x, when it looks generated."""
    return match.span("leak") if _secretive(match["leak"]) else None


def judge_scheme(match: re.Match[str]) -> tuple[int, int] | None:
    """`Bearer x`, `session x`: x, when it looks like a secret."""
    return match.span("leak") if _secretive(match["leak"].rstrip(".")) else None


@cache
def _remark() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:must|required|invalid|expired|missing|should|cannot|not|too|is|are|was|has|at least|at most|please|field)\b",
        re.IGNORECASE,
    )


def prose(text: str) -> bool:
    """Whether a value is a remark about a secret ("must have at least 8 characters") and not the secret."""
    return text.count(" ") >= 2 and _remark().search(text) is not None
