"""
A cheap test before the rules run: could anything in this text be a leak?

For nearly every ordinary sentence the answer is no. False alarms are allowed, misses are not: every text in which a
rule finds a leak is suspicious. A test checks that for each rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from amends.core.redaction.rule import words

__all__ = ["suspicious"]

# Every match of a rule contains one of these characters in this context (keys have a digit after a letter) ...
_SIGNS = r"[/\\@=.:<\n\d](?:(?<=[/\\@=<\n])|(?<=[.:])(?=[A-Za-z0-9:])|(?<=[A-Za-z_-]\d))"
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
        "ghp gho ghu ghs ghr github glpat gldt xoxa xoxb xoxc xoxe xoxo xoxp xoxr xoxs xapp sk pk rk whsec gocspx npm pypi hf "
        "dop shpat shpss shpca shppa sg dckr lin nvapi xai pmak tvly "
        # files
        "errno winerror url enoent eacces eisdir enotdir eexist eperm exdev erofs emfile enotempty ebusy eloop enospc"
    )
)
# ... or a run of letters of at least this length (the shortest known keys and tokens have 16 characters).
_LONG = 16


@cache
def _signs() -> Callable[[str], re.Match[str] | None]:
    return re.compile(_SIGNS).search


def suspicious(text: str) -> bool:
    """Whether the rules have to run."""
    if _signs()(text) is not None:
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
