"""
Finding leaks in a text, and replacing them.

`rules` has the table. Before its rules run, a cheap test asks whether anything in the text could be a leak, which is not so
for nearly every ordinary sentence. False alarms are allowed, misses are not: every text in which a rule finds a leak is
suspicious. A test checks that for each rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from typing import NamedTuple

from amends.core.redaction.rule import KINDS, MARKER, SECRETS, Leak, Rule, compiled, words
from amends.core.redaction.tokens import looks_random
from amends.core.text import strip

__all__ = ["find", "hide_keys", "hits", "redact", "suspicious"]

# Every match of a rule contains one of these characters in this context (keys have a digit after a letter) ...
_SIGNS = r"[/\\@=.:<\n\d~*%&](?:(?<=[/\\@=<\n~*])|(?<=%)(?=[2-7])|(?<=&)(?=l)|(?<=[.:])(?=[A-Za-z0-9:])|(?<=[A-Za-z_-]\d))"
# ... or one of these strings of letters ...
_LETTERS = bytes(
    ord(chr(point).lower()) if point < 128 and chr(point).isalpha() else 32 for point in range(256)
)
_TRIGGERS = frozenset(
    word.encode()
    for word in words(
        # hosts
        "host hostname server broker upstream connect connecting connected connection reach reaching resolve resolving "
        "enotfound eai lookup dial ip "
        # SQL statements, and one string of each database message
        "select insert update delete drop create alter truncate merge explain sql sqlstate table tables column columns "
        "relation exist exists ambiguous constraint violates violation duplicate syntax incomplete unterminated unrecognized "
        "such failing long enum range denied owner aborted canceling serialize lock locked deadlock waits slots clients "
        "connections terminating subquery aggregate assignments database bindings child parent catalog binder parser "
        "conversion convert object conflicted authorized plan scan using "
        # traces
        "traceback stack stacktrace goroutine panic panicked exception caused line background parameters "
        # secrets
        "bearer basic negotiate apikey apikeys session sessionid sessionids sessid jsessionid phpsessid jsessid phpsessionid "
        "sid private access key keys pass pwd passphrase auth credential credentials signature authorization amz cookie accesskey accesskeys accesskeyid "
        "accesskeyids accountkey sharedkey privatekey encryptionkey signingkey connectionstring "
        "curl mysql mysqldump mysqladmin mysqlimport mariadb sshpass redis docker ldapsearch ldapmodify ldapadd ldapdelete smbclient "
        "ghp gho ghu ghs ghr github glpat gldt xoxa xoxb xoxc xoxe xoxo xoxp xoxr xoxs xapp sk pk rk whsec gocspx npm pypi hf "
        "verification otp totp mfa fa security securestring sign pw pat psk login logon signin authentication authenticator pin time card logged credentials creds "
        "identified wpa cqlsh zip unzip z poetry mc echo ipmitool snmpwalk snmpget snmpset keytool winrs net sudo phrase mnemonic recovery backup rescue response "
        "htpasswd sqlplus keygen vault sqlcmd bcp mongo mongosh mongodump mongorestore isql tsql impdp clickhouse az "
        "passe contrase senha wachtwoord parola heslo salasana adgangskode kennwort "
        "dop shpat shpss shpca shppa sg dckr lin nvapi xai pmak tvly "
        # files
        "errno winerror url enoent eacces eisdir enotdir eexist eperm exdev erofs emfile enotempty ebusy eloop enospc"
    )
)
# ... or a run of letters of at least this length (the shortest known keys and tokens have 16 characters).
_LONG = 16
_DIGITS = frozenset("0123456789")


@cache
def _signs() -> Callable[[str], re.Match[str] | None]:
    return re.compile(_SIGNS).search


def suspicious(text: str) -> bool:
    """Whether the rules have to run."""
    if _signs()(text) is not None or not (text.isascii() or _DIGITS.isdisjoint(text)):
        return True
    # On bytes, `translate` is a table look-up in C.
    letters = text.encode("ascii", "replace").translate(_LETTERS)
    found = letters.split()
    return (
        not _TRIGGERS.isdisjoint(found)
        or max(map(len, found), default=0) >= _LONG
        # ... or one of these, which also occur inside identifiers ("authToken").
        or b"token" in letters
        or b"secret" in letters
        or b"passw" in letters
    )


_NONE: frozenset[str] = frozenset()


def find(text: str, *, kinds: AbstractSet[str] = KINDS, given: AbstractSet[str] = _NONE) -> tuple[Leak, ...]:
    """
    Return every leak of `kinds` in the text, in order; none overlaps another.

    Args:
        text: the text.
        kinds: what to look for.
        given: values of the caller's own request, which are no leak in the answer to it, unless they are credentials.

    >>> find("could not reach 10.0.0.5:5432")
    (Leak(kind='address', start=16, end=29),)
    """
    disguised = _undisguised(text) if kinds & SECRETS else None
    found: list[Leak] = []
    if suspicious(text):
        found += _matches(text, _awake(text, frozenset(kinds)))
    if disguised is not None and suspicious(disguised[0]):
        plain, starts, ends = disguised
        for leak in _matches(plain, _awake(plain, frozenset(kinds & SECRETS))):
            found.append(leak._replace(start=starts[leak.start], end=ends[leak.end - 1]))
    if given:
        found = [leak for leak in found if leak.kind in SECRETS or text[leak.start : leak.end] not in given]
    return tuple(_merged(text, sorted(found, key=lambda leak: (leak.start, -leak.end))))


class _Table(NamedTuple):
    """The rules of some kinds, and what a text has to contain for each."""

    rules: tuple[Rule, ...]
    always: frozenset[int]
    needs: tuple[tuple[str, tuple[int, ...]], ...]


@cache
def _table(kinds: frozenset[str]) -> _Table:
    # The rules are loaded when a text first needs them.
    from amends.core.redaction.rules import rules

    chosen = tuple(rule for rule in rules() if rule.kind in kinds)
    needs: dict[str, tuple[int, ...]] = {}
    for at, rule in enumerate(chosen):
        for need in rule.needs:
            needs[need] = (*needs.get(need, ()), at)
    return _Table(chosen, frozenset(needs.pop("", ())), tuple(needs.items()))


def _awake(text: str, kinds: frozenset[str]) -> list[Rule]:
    """Return the rules of which a text contains what every match needs."""
    table = _table(kinds)
    # No match has its only dot at the end of a sentence.
    lower = text.lower().rstrip(".!")
    found = set(table.always)
    for need, those in table.needs:
        if need in lower:
            found.update(those)
    return [table.rules[at] for at in sorted(found)]


_DISGUISES = {
    ord(other): ord(letter)
    for others, letters in (
        ("аеорсухіјѕһԁԛԝ", "aeopcyxijshdqw"),
        ("АВЕКМНОРСТХУІЈЅ", "ABEKMHOPCTXYIJS"),
        ("οανιρτυκ", "oavipTuk"),
        ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"),
        ("“”„‟", '"' * 4),
        ("‘’‚‛", "'" * 4),
    )
    for other, letter in zip(others, letters, strict=True)
}
"""Cyrillic and Greek letters that look like those of ASCII, and typographic quotes."""


@cache
def _encoded() -> re.Pattern[str]:
    """Characters of ASCII in the encodings of URLs, also twice and three times, of markup and of JSON."""
    return re.compile(
        r"%(?:25){0,3}(?P<percent>[2-7][0-9a-f])|&#(?P<number>\d{2,3});|&#x(?P<hex>[2-7][0-9a-f]);"
        r"|&(?P<name>quot|apos|amp|lt|gt|colon|equals);|\\{1,4}(?:u00|x)(?P<escape>[2-7][0-9a-f])",
        re.ASCII | re.IGNORECASE,
    )


_NAMED = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "colon": ":", "equals": "="}


def _character(unit: re.Match[str]) -> str:
    kind = unit.lastgroup or ""
    if kind == "name":
        return _NAMED[unit[kind].lower()]
    point = int(unit[kind], 10 if kind == "number" else 16)
    return chr(point) if 32 <= point < 127 else ""


def _ascii(character: str) -> str:
    """Return the character of ASCII that another one looks like, or the other one; "" for an invisible one."""
    look = character.translate(_DISGUISES)
    if not look.isascii():
        import unicodedata

        compatible = unicodedata.normalize("NFKC", look)
        look = compatible if len(compatible) == 1 and compatible.isascii() else look
    # Line breaks are invisible, too, but part a text.
    return look if look in _BREAKS else strip(look)


def _undisguised(text: str) -> tuple[str, list[int], list[int]] | None:
    """Return a text decoded and as it looks in ASCII, with the begin and end of each of its characters; None if it looks as it is."""
    units = list(_encoded().finditer(text)) if "%" in text or "&" in text or "\\" in text else []
    if not units and text.isascii():
        return None
    plain: list[str] = []
    starts: list[int] = []
    ends: list[int] = []

    def add(character: str, start: int, end: int) -> None:
        if character:
            plain.append(character)
            starts.append(start)
            ends.append(end)

    at = 0
    for unit in (*units, None):
        until = len(text) if unit is None else unit.start()
        for place, character in enumerate(text[at:until], at):
            add(
                character if character.isascii() and character.isprintable() else _ascii(character),
                place,
                place + 1,
            )
        if unit is not None:
            add(_character(unit), *unit.span())
            at = unit.end()
    looks = "".join(plain)
    return None if looks == text else (looks, starts, ends)


_BREAKS = frozenset("\n\r\t")


def hits(text: str, lower: str, rules: tuple[Rule, ...]) -> Iterator[Leak]:
    """Return what these rules find in a text, in the order of the rules. `lower` is the text in lower case."""
    return _matches(text, [rule for rule in rules if any(map(lower.__contains__, rule.needs))])


def _matches(text: str, rules: Iterable[Rule]) -> Iterator[Leak]:
    for rule in rules:
        pattern = compiled(rule.source, rule.flags)
        group = "leak" if "leak" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            span = match.span(group) if rule.judge is None else rule.judge(match)
            if span is not None and span[0] < span[1]:
                yield Leak(rule.kind, *span)


def _merged(text: str, leaks: list[Leak]) -> Iterator[Leak]:
    """Join leaks that overlap, touch or have only white space between them; the first one gives the kind."""
    if not leaks:
        return
    open_ = leaks[0]
    for leak in leaks[1:]:
        if leak.start <= open_.end or text[open_.end : leak.start].isspace():
            open_ = open_._replace(end=max(open_.end, leak.end))
        else:
            yield open_
            open_ = leak
    yield open_


# Replacing one leak can make another one match. Two passes are the most seen so far.
_PASSES = 4


def redact(text: str, *, kinds: AbstractSet[str] = KINDS, given: AbstractSet[str] = _NONE) -> str:
    """
    Return the text with every leak of `kinds` replaced by `[redacted]` (A19); most texts come back unchanged.

    Values of the caller's request (`given`) stay, as in `find`. The result contains no leak that `find` knows, so redacting twice changes nothing. A text that still has one after
    a few passes is replaced as a whole.

    >>> redact("could not reach 10.0.0.5:5432, try again later")
    'could not reach [redacted], try again later'
    """
    for _ in range(_PASSES):
        leaks = find(text, kinds=kinds, given=given)
        if not leaks:
            return text
        pieces, at = [], 0
        for leak in leaks:
            pieces += [text[at : leak.start], MARKER]
            at = leak.end
        text = "".join([*pieces, text[at:]])
    return MARKER if find(text, kinds=kinds, given=given) else text


@cache
def _segment() -> re.Pattern[str]:
    # Ids of objects, such as `pi_3MtwBwLkdIwHu7ix28a3tqPa`, have a short prefix.
    return re.compile(r"(?<=/)(?![a-z]{2,6}_[A-Za-z0-9]+(?:/|$))[A-Za-z0-9_-]{20,}(?=/|$)")


def hide_keys(text: str) -> str:
    """
    Return a URL, or a method and a path, without segments that look random: webhooks have their key there.

    >>> hide_keys("POST /services/T0/B0/aZ3kQ9xT7pLm2VbN8sRd4WcY"), hide_keys("GET /v1/charges/ch_3MtwBwLkdIwHu7ix28a3tqPa")
    ('POST /services/T0/B0/[redacted]', 'GET /v1/charges/ch_3MtwBwLkdIwHu7ix28a3tqPa')
    """
    if "/" not in text:
        return text
    return _segment().sub(lambda found: MARKER if looks_random(found[0]) else found[0], text)
