"""
Collect what the members of an error body say: code words, field, request id, document, wait and verdict.

Services put the same facts under a few dozen names and nest them in a dozen ways. The tables (data/reader.toml) say what a member
means and, for code words, how specific it is, and which members hold further objects. Everything else is ignored, prose included.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from amends.core.hints import finite
from amends.core.instants import date, duration, is_instant, number
from amends.core.wire import TOO_DEEP, Unreadable, read
from amends.vendors.registry import reader_tables

__all__ = ["PER_DAY", "PER_MINUTE", "Evidence", "collect", "token"]

PER_DAY = "@per-day"
"""The code used for a quota whose name says that it is counted per day or month. Codes that start with @ are ours."""
PER_MINUTE = "@per-minute"
"""The code used for a quota whose name says that it is counted per minute or second."""

_MAX_DEPTH = 6
_MAX_ITEMS = 8
_MAX_WORDS = 24
_MAX_QUOTED = 65536


class Evidence:
    """What was found in a body."""

    status: int | None = None
    """A status of a failure that the body itself names."""
    inner_status: int | None = None
    """The status in a response of a service behind this one, quoted in the body."""
    message: str = ""
    phrase: str | None = None
    """A code of several words. It is kept, but it does not decide."""
    field: str | None = None
    trace_id: str | None = None
    doc_uri: str | None = None
    wait: tuple[int, float] | None = None
    """(kind of value, value): 0 seconds, 1 a point in time."""
    verdict: bool | None = None
    headers: dict[str, object] | None = None
    """Headers of a service behind this one, quoted in the body."""

    code: tuple[int, str] | None = None
    """(rank of the object, code word) of the first `code` that is not a number."""
    type: tuple[int, str] | None = None
    """(rank of the object, code word) of the first `type`."""

    def __init__(self, *, answered: int | None = None, proved: bool = False) -> None:
        self.ranked: list[tuple[int, str]] = []
        """(rank, word)."""
        self.answered = answered
        """The status that the service itself answered with; one that only the body names is not."""
        self.proved = proved
        """Whether the service is known by its host or by the user."""

    def kept(self, word: str) -> str:
        """Return the code word to keep for one that decided: for a `type`, the `code` beside it, which says more."""
        if self.type is not None and self.code is not None and self.type[1] == word:
            return self.code[1] if self.type[0] == self.code[0] else word
        return word

    def words(self) -> list[str]:
        """Return the code words, the most specific first."""
        if len(self.ranked) > 1:
            self.ranked.sort(key=_RANK)
        return [word for _, word in self.ranked]


_RANK = itemgetter(0)
_EMPTY = frozenset({"error", "Error", "ERROR", "failure", "Failure", "failed", "fail", "None", "error.list"})
"""Words that say no more than that something failed."""


def token(value: object) -> str | None:
    """Return a code word: a short text without white space, or an integer. None for prose and other values."""
    if isinstance(value, str):
        return (
            value if 0 < len(value) <= 96 and not (" " in value or "\n" in value or value in _EMPTY) else None
        )
    if isinstance(value, int) and not isinstance(value, bool) and -(10**9) < value < 10**9:
        return str(value)
    return None


def collect(body: dict[str, object], evidence: Evidence, rank: int = 0, depth: int = 0) -> Evidence:
    """Add what an object says to `evidence`, which is returned."""
    whole = False
    for name, value in body.items():
        member = _MEMBERS.get(name)
        if member is None or value is None:
            continue
        added, add, order = member
        if added is not None and isinstance(value, _HOLDERS):
            if depth < _MAX_DEPTH:
                _nested(name, value, evidence, rank + added, depth)
        elif add is _whole:
            whole = True
        elif add is not None:
            add(name, value, evidence, rank + order, depth)
    if whole:
        _several(body, evidence)
    return evidence


_HOLDERS = (dict, list)


def _nested(
    name: str, value: dict[str, object] | list[object], evidence: Evidence, rank: int, depth: int
) -> None:
    if isinstance(value, dict):
        quoted = value.get("headers")
        if name == "metadata" and isinstance(quoted, dict):
            evidence.headers = quoted
        if name == "errorCode":
            # Google Ads: {"errorCode": {"quotaError": "RESOURCE_EXHAUSTED"}}.
            word = token(next(iter(value.values()), None))
            if word is not None:
                evidence.ranked.append((rank + 22, word))
            if value.get("quotaError") == "RESOURCE_EXHAUSTED":
                # The quota of a day. The one of a short time is RESOURCE_TEMPORARILY_EXHAUSTED.
                evidence.ranked.append((-1000, PER_DAY))
            return
        if name in _FIELD_LISTS:
            if evidence.field is None and name in _BY_FIELD:
                name_of_first: object = next(iter(value), None)
                evidence.field = name_of_first if isinstance(name_of_first, str) else None
            return
        ranked = bool(evidence.ranked)
        collect(value, evidence, rank, depth + 1)
        if name in _BY_FIELD and evidence.field is None and depth < 3:
            evidence.field = _first_field(value, plain=name == "errors" and not ranked)
        return
    if name in _FIELD_LISTS:
        if evidence.field is None:
            evidence.field = _field_of(value)
        return
    if name == "links":
        _links(value, evidence)
    if name == "path" and evidence.field is None and all(isinstance(item, (str, int)) for item in value):
        evidence.field = ".".join(str(item) for item in value[:16]) or None
    # Of several errors the first one decides; the items of details belong together.
    one = name in {"errors", "root_cause", "error"}
    for item in value[:1] if one else value[:_MAX_ITEMS]:
        if isinstance(item, dict):
            collect(item, evidence, rank, depth + 1)
        elif name == "errors" and isinstance(item, list):
            # Reddit: ["RATELIMIT", "…", "ratelimit"].
            word = token(item[0]) if item else None
            if word is not None:
                evidence.ranked.append((rank + 30, word))
            if evidence.field is None and len(item) == 3 and isinstance(item[2], str) and item[2]:
                evidence.field = item[2]
        elif name == "errors" and isinstance(item, str):
            word = token(item)
            if word is not None:
                evidence.ranked.append((rank + 30, word))
            elif not evidence.message:
                evidence.message = item


_TABLES = reader_tables()
_FIELD_LISTS = frozenset(_TABLES["fields"]["lists"].split())
"""Members with an array of objects that each name a field and say what is wrong with it."""
_FIELD_NAMES = tuple(_TABLES["fields"]["names"].split())


def _field_of(items: list[object]) -> str | None:
    """Return the field that the first object of an array names."""
    first = items[0] if items else None
    if isinstance(first, str):
        return first or None
    if not isinstance(first, dict):
        return None
    for name in _FIELD_NAMES:
        value = first.get(name)
        if isinstance(value, list):
            value = ".".join(str(part) for part in value[:16])
        if isinstance(value, str) and value:
            return value
    return None


def _links(items: list[object], evidence: Evidence) -> None:
    """Add the page that an array of links names as the documentation (PayPal)."""
    for item in items[:_MAX_ITEMS]:
        if isinstance(item, dict) and item.get("rel") in ("information_link", "help", "about"):
            _page("href", item.get("href"), evidence, 0, 0)


_BY_FIELD = frozenset(_TABLES["fields"]["objects"].split())
"""Members that may hold an object whose names are those of fields."""


def _first_field(value: dict[Any, object], *, plain: bool) -> str | None:
    """Return the first name whose value lists what is wrong with it; with `plain`, also if it is a text."""
    for name, item in value.items():
        if isinstance(name, str) and (name not in _MEMBERS or _complains(item)) and name != "_errors":
            if isinstance(item, list) or (plain and isinstance(item, str)):
                return name
            if isinstance(item, dict):
                # Discord: {"errors": {"embeds": {"0": {"_errors": [...]}}}}.
                inner = None if "_errors" in item else _first_field(item, plain=False)
                return name if inner is None else f"{name}.{inner}"
    return next((name for name in value if isinstance(name, str)), None) if plain else None


def _complains(value: object) -> bool:
    """
    Whether a value lists what is wrong with a field.

    Zendesk: {"details": {"name": [{"description": "…"}]}}; Discord: {"errors": {"name": {"_errors": […]}}}.
    """
    if isinstance(value, dict):
        return "_errors" in value
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "description" in first


def _several(body: dict[str, object], evidence: Evidence) -> None:
    """Add facts that depend on several members, or on what all others said."""
    if "flagged_input" in body:
        evidence.ranked.append((1, "@moderation"))
    if "guardrails" in body or isinstance(body.get("patterns"), list):
        evidence.ranked.append((1, "@guardrail"))
    place = body.get("loc")
    if evidence.field is None and isinstance(place, list):
        # FastAPI and pydantic: the first part says whether it is the body, the query or a header.
        evidence.field = ".".join(str(part) for part in place[1:17]) or None
    kind = body.get("type")
    if isinstance(kind, str) and kind.endswith("RetryInfo"):
        _protobuf_wait(body.get("value"), evidence)


def _quoted(text: str, evidence: Evidence, rank: int, depth: int) -> None:
    """Read a JSON document inside a string, as gateways quote the response of the service behind them."""
    if len(text) > _MAX_QUOTED:
        return
    try:
        value = read(text)
    except Unreadable:
        return
    if isinstance(value, dict) and value is not TOO_DEEP:
        outer, evidence.status = evidence.status, None
        message = evidence.message
        collect(value, evidence, rank, depth + 2)
        evidence.inner_status, evidence.status = evidence.status, outer
        evidence.message = message


def _protobuf_wait(value: object, evidence: Evidence) -> None:
    """Read the delay of a google.rpc.RetryInfo in base64, as Connect sends it."""
    if evidence.wait is not None or not isinstance(value, str) or not 2 < len(value) <= 64:
        return
    from amends.vendors.protobuf import retry_delay

    delay = retry_delay(value)
    if delay is not None:
        evidence.wait = (0, delay)


# The functions of ROLES. Each adds one member to the evidence.


def _word(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    word = token(value)
    if word is not None and name == "id" and len(word) == 36 and word.count("-") == 4:
        evidence.trace_id = evidence.trace_id or word
    elif word is not None and len(evidence.ranked) < _MAX_WORDS:
        if name == "__type":
            word = word.rpartition("#")[2]
        evidence.ranked.append((rank, word))
        if name == "code" and evidence.code is None and not word.lstrip("-").isdecimal():
            evidence.code = (rank - _CODE, word)
        elif name == "type":
            evidence.type = evidence.type or (rank - _TYPE, word)
            if "/" in word and (last := _last_part(word)) is not None:
                evidence.ranked.append((rank + 1, last))
        if evidence.status is None and (isinstance(value, int) or len(word) == 3):
            _status(name, value, evidence, rank, depth, says=False)
    elif name == "error" and isinstance(value, str) and not evidence.message:
        evidence.message = value
    elif name == "code" and isinstance(value, str) and 0 < len(value) <= 96 and "\n" not in value:
        # xAI: {"code": "Some resource has been exhausted", "error": "…"}.
        evidence.phrase = evidence.phrase or value


def _message(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Add a text that is the message also if there was another."""
    if isinstance(value, str):
        evidence.message = value
        if value[:1] == "{":
            _quote(name, value, evidence, rank - 60, depth)
        _only_word(value, evidence, rank)
    else:
        _field_names(value, evidence, rank, depth)


def _only_word(text: str, evidence: Evidence, rank: int) -> None:
    """Add a text that is one code word. Deribit: {"code": 10028, "message": "too_many_requests"}."""
    if "_" in text and (word := token(text)) is not None and len(evidence.ranked) < _MAX_WORDS:
        evidence.ranked.append((rank + _ALONE, word))


def _description(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Add a text that is the message only if there is no other."""
    if isinstance(value, str):
        evidence.message = evidence.message or value
        _quote(name, value, evidence, rank - 60, depth)
        _only_word(value, evidence, rank)
    else:
        _field_names(value, evidence, rank, depth)


def _field_names(value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Add the first name of an object whose names are fields. GitLab: {"message": {"title": ["can't be blank"]}}."""
    if not isinstance(value, dict) or evidence.field is not None:
        return
    if "detail" in value and depth < _MAX_DEPTH:
        collect(value, evidence, rank, depth + 1)
    else:
        evidence.field = next((key for key in value if isinstance(key, str)), None)


def _error_id(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Add a number that is a code word (eBay), or a text that identifies this failure (Okta)."""
    add = _trace if isinstance(value, str) and not value.isdecimal() else _word
    add(name, value, evidence, rank, depth)


def _last_part(uri: str) -> str | None:
    """Return the last part of the address of a type, which names the problem: `…/errors#insufficient-credits`."""
    last = uri.rpartition("#")[2] if "#" in uri else uri.rstrip("/").rpartition("/")[2]
    return last if len(last) >= _SHORTEST_PART and not last.isdecimal() and "." not in last else None


_SHORTEST_PART = 4


def _status(
    name: str, value: object, evidence: Evidence, rank: int, depth: int, *, says: bool = True
) -> None:
    """Add a status; with `says`, a text that is no number is a code word."""
    if isinstance(value, str):
        if not (value.isascii() and value.isdecimal()):
            word = token(value) if says else None
            if word is not None:
                evidence.ranked.append((rank, word))
            return
        value = int(value) if len(value) == 3 else 0
    if (
        evidence.status is None
        and isinstance(value, int)
        and not isinstance(value, bool)
        and 400 <= value <= 599
    ):
        evidence.status = value


def _field(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    if isinstance(value, list) and value:
        value = value[0]
    elif isinstance(value, dict):
        # IBM: {"target": {"type": "field", "name": "input"}}.
        value = value.get("name")
    # At the top, a `path` with a slash is the address that was called.
    at_top = name == "path" and not depth
    if evidence.field is None and isinstance(value, str) and value and not (at_top and "/" in value):
        evidence.field = value


def _trace(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    if evidence.trace_id is None and isinstance(value, str) and 0 < len(value) <= 256:
        evidence.trace_id = value


def _page(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    if not isinstance(value, str):
        return
    if evidence.doc_uri is None and value.startswith(("https://", "http://")):
        evidence.doc_uri = value
    if name == "documentation_url" and "rate-limit" in value and "github" in value:
        # The pages that GitHub names differ for primary and secondary rate limits.
        secondary = "secondary" in value or "abuse" in value
        evidence.ranked.append((2, "@secondary-rate-limit" if secondary else "@primary-rate-limit"))


def _verdict(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    if isinstance(value, bool) and evidence.verdict is not False:
        evidence.verdict = value


def _durability(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    if isinstance(value, str) and value == "PERMANENT":
        evidence.verdict = False
    elif isinstance(value, str) and value == "TRANSIENT" and evidence.verdict is None:
        evidence.verdict = True


def _quota(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    if isinstance(value, str) and ("PerDay" in value or "PerMonth" in value or "Daily" in value):
        evidence.ranked.append((-1000, PER_DAY))
    elif isinstance(value, str) and ("PerMinute" in value or "PerSecond" in value):
        evidence.ranked.append((-900, PER_MINUTE))


def _quote(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    if isinstance(value, str) and value[:1] == "{" and depth < _MAX_DEPTH:
        _quoted(value, evidence, rank - 10, depth)


def _wait(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    if evidence.wait is not None:
        return
    if isinstance(value, str):
        amount = number(value)
        if amount is None:
            amount = duration(value)
            if amount is None:
                point = date(value)
                if point is not None:
                    evidence.wait = (1, point)
                return
    elif isinstance(value, dict):
        # google.rpc.Duration as an object.
        amount = finite(value.get("seconds"))
        nanos = finite(value.get("nanos"))
        if amount is None and nanos is None:
            text = value.get("seconds")
            amount = number(text) if isinstance(text, str) else None
            if amount is None:
                return
        amount = (amount or 0) + (nanos or 0) / 1e9
    else:
        amount = finite(value)
    if amount is None or amount < 0:
        return
    if name in _MILLISECONDS:
        evidence.wait = (0, amount / 1000)
    elif is_instant(amount):
        evidence.wait = (1, amount)
    elif amount > 0 or name not in _INSTANTS:
        evidence.wait = (0, float(amount))


_MILLISECONDS = frozenset(_TABLES["facts"]["milliseconds"].split())
_INSTANTS = frozenset(_TABLES["facts"]["instant"].split())


def _limit(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Add the wait of an object that describes a limit, unless something remains of it. Its other members are no code words."""
    if isinstance(value, dict) and not (finite(value.get("remaining")) or 0) > 0:
        for each in _LIMIT_WAITS:
            if each in value:
                _wait(each, value[each], evidence, rank, depth)


_LIMIT_WAITS = (
    *("retry_after", "retryAfter", "retry_after_seconds", "reset_in", "resetIn"),
    *sorted(_MILLISECONDS),
    *sorted(_INSTANTS),
)


def _data(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Add what `data` beside an error says: a limit, the parameters that are wrong (WordPress), or the errors (Zoho)."""
    if isinstance(value, list):
        first = value[0] if value else None
        if isinstance(first, dict) and first.get("status") == "error":
            collect(first, evidence, rank, depth + 1)
        return
    _limit(name, value, evidence, rank, depth)
    for inner in _DATA:
        # tRPC: {"error": {"code": -32029, "data": {"code": "TOO_MANY_REQUESTS", "httpStatus": 429}}}.
        if isinstance(value, dict) and inner in value:
            _status(inner, value[inner], evidence, rank, depth, says=False)
    wrong = value.get("params") if isinstance(value, dict) else None
    if evidence.field is None and isinstance(wrong, dict):
        evidence.field = next((each for each in wrong if isinstance(each, str)), None)


_DATA = ("httpStatus", "http_status", "statusCode", "status_code", "status")


def _context(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Add the field that Box names: {"context_info": {"errors": [{"reason": "…", "name": "folder"}]}}."""
    errors = value.get("errors") if isinstance(value, dict) else None
    if evidence.field is None and isinstance(errors, list):
        evidence.field = _field_of(errors)


def _meta(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Add the field that Twirp and Clerk name, {"meta": {"argument": "size"}}, and Paddle's request id."""
    if isinstance(value, dict):
        _field("argument", value.get("argument") or value.get("param_name"), evidence, rank, depth)
        _trace("request_id", value.get("request_id"), evidence, rank, depth)


def _whole(name: str, value: object, evidence: Evidence, rank: int, depth: int) -> None:
    """Mark a member whose meaning depends on others: see `_several`."""


_CODE, _TYPE = 30, 40
"""The ranks of `code` and `type`."""
_ALONE = 80
"""The rank of a message that is one code word."""

_Add = Callable[[str, object, Evidence, int, int], None]

_FACTS: dict[str, _Add] = {
    "message": _message,
    "description": _description,
    "field": _field,
    "request": _trace,
    "docs": _page,
    "verdict": _verdict,
    "durability": _durability,
    "quota": _quota,
    "quoted": _quote,
    "limit": _limit,
    "data": _data,
    "context": _context,
    "meta": _meta,
    "several": _whole,
    **dict.fromkeys(("wait", "milliseconds", "instant"), _wait),
}


def _members() -> dict[str, tuple[int | None, _Add | None, int]]:
    """Return name → (what is added to the rank of words inside, what adds the member, its rank), as data/reader.toml says."""
    ranked = {"words": _word, "numbers_or_ids": _error_id, "statuses": _status}
    roles: dict[str, tuple[_Add, int]] = {
        name: (add, int(rank))
        for table, add in ranked.items()
        for rank, names in _TABLES[table].items()
        for name in names.split()
    }
    roles |= {name: (add, 0) for fact, add in _FACTS.items() for name in _TABLES["facts"][fact].split()}
    inside: dict[str, int] = dict.fromkeys(_FIELD_LISTS, 0)
    inside |= {name: int(rank) for rank, names in _TABLES["inside"].items() for name in names.split()}
    return {name: (inside.get(name), *roles.get(name, (None, 0))) for name in (*roles, *inside)}


_MEMBERS = _members()
"""One table, because every member of a body is looked up in it."""
