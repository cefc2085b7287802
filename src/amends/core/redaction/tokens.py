"""Secrets, recognised by the name before them or by looking generated."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from amends.core.redaction.rule import MARKER, words

__all__ = [
    "LANGUAGES_NEED",
    "NAMES_OF_SECRETS",
    "OTHER_LANGUAGES",
    "WEAK_NAMES",
    "judge_card",
    "judge_long",
    "judge_near",
    "judge_option",
    "judge_parameter",
    "judge_quoted",
    "judge_received",
    "judge_scheme",
    "judge_seed",
    "judge_value",
    "judge_weak",
    "looks_random",
    "looks_secret",
    "prose",
    "remark",
]

NAMES_OF_SECRETS = (
    r"(?:passw(?:or)?ds?(?:[_-](?:pepper|hash|new|old|plain))?|secrets?|tokens?|(?<![A-Za-z])(?:pwd|passphrase|secret[_-]?key|api[_ -]?keys?|access[_ -]?keys?(?:[_ -]?id)?"
    r"|account[_-]?key|shared[_-]?(?:access[_-]?)?key|private[_ -]?key(?:[_ -]?id)?|encryption[_ -]?key|signing[_ -]?key|credentials?|connection[_ -]?string"
    r"|session[_ -]?ids?|(?:j|php)?sess(?:ion)?id|sid|signature|authorization|x-amz-[a-z-]{3,24}))"
)
WEAK_NAMES = (
    r"(?:pass|pw|psk|pat|secret[_-]key[_-]base"
    r"|(?:subscription|auth|master|deploy|hmac|service|webhook|function|consumer|client|license|licence|app|admin|crypt|instrumentation|genie|routing|ingest|integration)[_ -]?key)"
)
"""Names that ordinary texts have, too: only a value that looks generated is a secret."""
OTHER_LANGUAGES = (
    "mot de passe|passwort|kennwort|contraseña|senha|palavra-passe|wachtwoord|parola|hasło|heslo|lösenord|adgangskode|salasana|jelszó|şifre"
    "|[Пп]ароль|密码|密碼|パスワード|비밀번호|[Κκ]ωδικός"
)
"""What a password is called in other languages."""
LANGUAGES_NEED = OTHER_LANGUAGES.replace("[Пп]", "п").replace("[Κκ]", "κ")
# Remarks about a secret, as opposed to a secret.
_PLAIN = words(
    "missing expired invalid required none null nil true false yes no unknown empty revoked redacted hidden absent "
    "denied rejected malformed undefined disabled enabled optional string str int integer bool boolean number object "
    "array bytes any value default present unset wrong bad incorrect not is was must should cannot can't failed the a "
    "an too"
)


_ABOUT_OPTIONS = words(
    "needs takes requires option options flag argument and or to for of with in instead file token password secret key string text "
    "name path url env var be may can does has have will"
)
_WALLET = 42


def looks_secret(value: str) -> bool:
    """Whether a value looks generated: it has digits, mixed case or signs, or is very long."""
    if len(value) < 6 or value.lower() in _PLAIN:
        return False
    if _algorithm().fullmatch(value):
        return False
    tail = value[1:]
    return (
        any(map(str.isdigit, value))
        or (any(map(str.isupper, tail)) and any(map(str.islower, value)))
        or any(sign in value for sign in "=+~$!#%^&*")
        or len(value) >= 32
    )


@cache
def _algorithm() -> re.Pattern[str]:
    # "SHA256withRSA" is no secret.
    return re.compile(
        r"(?:hmac-?)?(?:sha|md|rs|es|ps|hs|aes|rsa|ed|p)-?\d{1,4}(?:(?:with|-)[a-z]{2,12})*", re.IGNORECASE
    )


def looks_random(value: str) -> bool:
    """Whether a long run switches between lower case, upper case and digits as often as random text does."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "" for c in value]
    # The step from a capital to small letters does not count: ordinary names have it.
    steps = sum(a != b and (a, b) != ("u", "l") and bool(a) and bool(b) for a, b in pairwise(kinds))
    return len(set(kinds) - {""}) == 3 and steps >= 0.22 * len(value)


def judge_long(match: re.Match[str]) -> tuple[int, int] | None:
    """A long run without spaces, when it looks random and is no address of a blockchain."""
    run = match[0]
    if run.startswith("0x") and len(run) == _WALLET:
        return None
    return match.span() if looks_random(run) else None


def judge_value(match: re.Match[str]) -> tuple[int, int] | None:
    """`password=x`, `"token": "x"`, `api key: x`: the value, when it is one and not a remark about it."""
    value = match["value"]
    quoted = value[0] in "\"'\\"
    bare = value.strip("\"'\\")
    if len(bare) < 3 or bare.startswith(MARKER[:-1]) or bare.lower().rstrip(".!") in _PLAIN:
        return None
    if bare.isdigit() and match[0].lower().startswith("tokens"):
        return None
    assigned = "=" in match["sign"] or (quoted and match["quote"])
    if assigned and not (quoted and prose(bare)):
        return match.span("value")
    if quoted and " " in bare and _is_password(match[0]):
        return None if _remark().search(bare) else match.span("value")
    # "signature is SHA256" is not a secret, "password is hunter2" is.
    short = match["sign"].strip().isalpha() and len(bare) < 10 and not _is_password(match[0])
    return match.span("value") if looks_secret(bare.rstrip(".!")) and " " not in bare and not short else None


def _is_password(text: str) -> bool:
    return text.lower().startswith(("passw", "pwd", "passphrase"))


def judge_quoted(match: re.Match[str]) -> tuple[int, int] | None:
    """`password 'x'`, `password x`, `<password>x<`: x, unless it is a remark."""
    value = match["value"]
    bare = value.strip("\"'")
    if len(bare) < 3 or bare.startswith(MARKER[:-1]) or bare.lower().rstrip(".!") in _PLAIN or prose(bare):
        return None
    if value[0] not in "\"'" and match.string[match.start("value") - 1] in " \t":
        return match.span("value") if looks_secret(bare.rstrip(".!")) else None
    return match.span("value") if not _remark().search(bare) else None


def judge_parameter(match: re.Match[str]) -> tuple[int, int] | None:
    """`?key=x`: x, when it looks generated. A short code may be one for a price reduction."""
    if match[0][1:].lower().startswith("code=") and len(match["leak"]) < 12:
        return None
    return match.span("leak") if looks_secret(match["leak"]) else None


def judge_weak(match: re.Match[str]) -> tuple[int, int] | None:
    """`pass: x`, `master key = x`, `DB_PASS x`: x, when it looks generated and is no number; a key is long."""
    bare = match["value"].strip("\"'\\")
    key = "key" in match["name"].lower()
    if bare.isdigit() or len(bare) < (16 if key else 6) or not looks_secret(bare.rstrip(".!")):
        return None
    return match.span("value")


def judge_near(match: re.Match[str]) -> tuple[int, int] | None:
    """A run of letters and digits near the name of a password."""
    bare = match["value"].strip("*_`\"'.!?:")
    if not (
        any(each.isascii() and each.isalpha() for each in bare) and any(map(str.isdigit, bare))
    ) or not looks_secret(bare):
        return None
    return match.span("value")


def judge_received(match: re.Match[str]) -> tuple[int, int] | None:
    """The value that a validator repeats: in quotes, and no remark and no name of a field."""
    bare = match["leak"].strip("\"'")
    named = "passw" in bare.lower() or bare.startswith(MARKER[:-1])
    return None if named or remark(bare) else match.span("leak")


def judge_option(match: re.Match[str]) -> tuple[int, int] | None:
    """`--db-password x`: x, unless it goes on with a sentence, or says what to put there."""
    bare = match["leak"].strip("\"'").rstrip(".!")
    if len(bare) < 3 or bare.lower() in _PLAIN | _ABOUT_OPTIONS or bare[0] in "<${[":
        return None
    return None if match["name"].lower() == "auth" and not looks_secret(bare) else match.span("leak")


def judge_seed(match: re.Match[str]) -> tuple[int, int] | None:
    """The seed of one-time codes: capitals with digits."""
    return match.span("leak") if any(map(str.isdigit, match["leak"])) else None


def judge_card(match: re.Match[str]) -> tuple[int, int] | None:
    """A card number, by its check digit."""
    digits = [int(each) for each in match["leak"] if each.isdigit()][::-1]
    total = sum(digits[::2]) + sum(sum(divmod(2 * each, 10)) for each in digits[1::2])
    return match.span("leak") if total % 10 == 0 else None


def judge_scheme(match: re.Match[str]) -> tuple[int, int] | None:
    """`Bearer x`, `session x`: x, when it looks like a secret. That of Basic is never short."""
    if match[0].lower().startswith("basic") and match["leak"].isalnum() and len(match["leak"]) < 12:
        return None
    return match.span("leak") if looks_secret(match["leak"].rstrip(".")) else None


@cache
def _remark() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:must|required|invalid|expired|missing|should|cannot|not|too|is|are|was|has|at least|at most|please|field)\b",
        re.IGNORECASE,
    )


def prose(text: str) -> bool:
    """Whether a value is a remark about a secret ("must have at least 8 characters") and not the secret."""
    return text.count(" ") >= 2 and _remark().search(text) is not None


def remark(text: str) -> bool:
    """Whether a value is a remark about a secret, also a short one ("required")."""
    return text.lower().strip(" .!") in _PLAIN or prose(text)
