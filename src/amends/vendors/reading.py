"""
Read a failure in a vendor's format.

`read` is for a response with a status of 400 or more, `read_bare` for a document without one. Both return None if the
body has no known error shape, so that the caller goes on with the status alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from amends.core.enums import Actor, Executed, Recovery
from amends.core.executed import executed_as_proved, executed_by_status
from amends.core.fault import Fault, Origin
from amends.core.hints import finite
from amends.core.instants import bounded, number, seconds_since_epoch, until
from amends.core.meanings import INVALID, MEANINGS, Meaning
from amends.core.vocabularies.http import VOCABULARY
from amends.vendors.conditions import values
from amends.vendors.evidence import Evidence, collect, token
from amends.vendors.meaning import Sender, by_status, by_words, first_word
from amends.vendors.model import Rule, Vendor
from amends.vendors.protobuf import STATUSES
from amends.vendors.registry import Index, index, is_service, reader_tables

__all__ = ["beside", "build", "own_wait", "read", "read_bare", "sender_of", "shape_of", "trace_of"]

_TABLES = reader_tables()
_HEADERS = {name: tuple(names.split()) for name, names in _TABLES["headers"].items()}
_TRACES = {name: rank for rank, name in enumerate(_HEADERS["request"])}
_WORD_NAMES = frozenset(
    {
        *(*_HEADERS["words"], *_HEADERS["verdicts"]),
        *("www-authenticate", "payment-required", "grpc-status", "dg-error", "x-github-sso"),
    }
)

Waiter = Callable[[Mapping[str, str]], "float | None"]


def read(
    status: int,
    fields: Mapping[str, str],
    body: object,
    *,
    wait: float | None = None,
    vendor: str | None = None,
    now: Callable[[], float] | None = None,
    quoted: Waiter | None = None,
    specific: bool = False,
    known_by_shape: bool = False,
    otherwise: str | None = None,
) -> Fault | None:
    """
    Return the fault of a failed response in a vendor's format, or None.

    Args:
        status: from 400 on; below that, of a failure that was found inside a successful answer.
        fields: the headers, with names in lower case.
        body: the parsed body, or its text.
        wait: the seconds that the headers ask for.
        vendor: the sender, if known.
        now: the clock, for a wait until a point in time.
        quoted: returns the wait of headers that a body quotes.
        specific: return None also if no code word of the body is known.
        known_by_shape: `vendor` was recognised by the answer itself, which proves nothing about its effect.
        otherwise: the sender, if neither `vendor` nor the answer shows another one.

    """
    evidence = Evidence(answered=status, proved=not known_by_shape and is_service(vendor))
    name = vendor
    surely = Sender.NOBODY if vendor is None else Sender.SHAPE if known_by_shape else Sender.NAME
    guessed = False
    shape: Rule | None = None
    if isinstance(body, dict):
        collect(body, evidence)
        shape = None if name is not None else index().shapes.best(body)
    elif isinstance(body, list):
        if body and isinstance(body[0], dict):
            collect(body[0], evidence)
            shape = None if name is not None else index().shapes.best(body)
    elif isinstance(body, str) and body:
        from amends.vendors import markup

        seen = markup.collect(body, evidence)
        # S3 and Azure Storage send the same document.
        guessed = name is None and seen == "aws"
        if name is None and seen is not None:
            name, surely = seen, Sender.SHAPE
    if shape is not None:
        name, surely = shape.vendor.name, Sender.SHAPE if shape.certain else Sender.GUESS
    trace, marked = _headers(fields, evidence)
    if marked is not None and (name is None or guessed or (vendor is None and marked[1])):
        name = vendor or marked[0]
        if vendor is None:
            surely = Sender.HEADER if marked[1] else Sender.SHAPE if guessed else Sender.GUESS
    if name is None and otherwise is not None:
        name, surely = otherwise, Sender.SHAPE
    known = index()
    sender = known.vendors.get(name) if name is not None else None
    found = None
    if sender is not None and (sender.at or sender.when):
        _add_places(sender, body, fields, evidence)
        if surely >= Sender.HEADER:
            found = _by_condition(sender, body, evidence)
    words = evidence.words()
    if not words and name is None:
        # Without a body the general rows hold (mappings M1), except that a refusal with a wait is a rate limit.
        bare = not (isinstance(body, (dict, list, str)) and body)
        alone = bare and not (status in {402, 403} and wait is not None)
        own = None if evidence.wait is None else own_wait(evidence, fields, now, quoted)
        wait = wait if own is None else own
        kind = by_status(status, None, _is_soon(status, wait)) if status >= 400 and not alone else None
        stated = evidence.status
        if status < 400 and (stated is not None or own is not None):
            kind = None if stated is None else by_status(stated, None, _is_soon(stated, wait))
            return build(kind, stated, evidence, None, None, wait, trace)
        says = (
            own is not None
            or evidence.field is not None
            or evidence.trace_id is not None
            or evidence.doc_uri is not None
        )
        if kind is None and (not says or status < 400):
            return None
        return build(kind, status, evidence, None, None, wait, trace)
    own = own_wait(evidence, fields, now, quoted)
    if own is not None:
        wait = own
    found = found or by_words(words, status, sender, known, waiting=wait is not None, surely=surely)
    if found is None and evidence.inner_status is not None:
        # A gateway answers with its own status and quotes the response of the service behind it.
        found = by_words(words, None, sender, known, surely=surely)
    if found is None and vendor is not None and isinstance(body, dict):
        # A compatible endpoint of another service: what its shape shows decides.
        shape = known.shapes.best(body)
        if shape is not None and shape.vendor is not sender:
            surely = Sender.SHAPE if shape.certain else Sender.GUESS
            found = by_words(words, status, shape.vendor, known, waiting=wait is not None, surely=surely)
    if found is not None:
        kind, word = found
        if kind is INVALID and word.startswith(_ALL_WRONG):
            # The type says only that the request is wrong; the code beside it says more, though it is unknown.
            word = first_word(words) or word
        word = evidence.kept(word)
        return build(kind, status, evidence, name, word, wait, trace)
    if specific and own is None:
        return None
    kind = by_status(status, sender, _is_soon(status, wait)) if status >= 400 else None
    if kind is None and status < 400 and evidence.status is not None:
        return build(None, evidence.status, evidence, name, first_word(words), wait, trace)
    if kind is None and (status < 400 or not _is_error(body, evidence, sender)):
        return None
    return build(kind, status, evidence, name, first_word(words), wait, trace)


def _is_soon(status: int | None, wait: float | None) -> bool:
    """Whether a response names a wait. A 402 that lasts an hour or longer is used-up money, not a budget in flight."""
    return wait is not None and (status != 402 or wait < _HOUR)


_HOUR = 3600.0
_ALL_WRONG = ("invalid_request", "INVALID_REQUEST", "bad_request", "BAD_REQUEST", "BadRequest", "badRequest")


def shape_of(body: object) -> str | None:
    """
    Return the service whose error shape a body has, or None.

    >>> shape_of({"ok": False, "error": "ratelimited"})
    'slack'
    """
    found = index().shapes.best(body)
    return None if found is None else found.vendor.name


def _add_places(sender: Vendor, body: object, fields: Mapping[str, str], evidence: Evidence) -> None:
    """Add the facts at the places that the service's file names."""
    at = sender.at
    for value in _at(at.get("code"), body, fields):
        word = token(value)
        if word is not None:
            evidence.ranked.append((_PLACED, word))
    for member, attribute in _TEXTS:
        for value in _at(at.get(member), body, fields):
            if isinstance(value, str) and value:
                setattr(evidence, attribute, value)
                break
    wait = at.get("wait")
    if wait is not None:
        seconds = next(
            (amount for value in _at(wait["at"], body, fields) if (amount := _amount(value)) is not None),
            None,
        )
        if seconds is not None:
            unit = wait.get("unit")
            evidence.wait = (
                (1, seconds) if unit == "epoch" else (0, seconds / 1000 if unit == "ms" else seconds)
            )


_PLACED = -500
"""The rank of a code at a place that the service's file names: only a quota of a day is more specific."""
_TEXTS = (("message", "message"), ("field", "field"), ("request", "trace_id"), ("docs", "doc_uri"))


def _at(paths: object, body: object, fields: Mapping[str, str]) -> Iterator[object]:
    """Yield the values at places of the body, or in headers."""
    for path in [paths] if isinstance(paths, str) else paths if isinstance(paths, list) else ():
        if path.startswith("headers."):
            yield fields.get(path[8:])
        else:
            yield from values(body, path)[:_MAX_PLACED]


_MAX_PLACED = 8


def _amount(value: object) -> float | None:
    amount = number(value) if isinstance(value, str) else finite(value)
    return amount if amount is not None and amount >= 0 else None


def _by_condition(sender: Vendor, body: object, evidence: Evidence) -> tuple[Meaning, str] | None:
    """Return the meaning of the first condition of a service's file that holds."""
    for rule in sender.when:
        if rule.holds(body):
            return MEANINGS[rule.spec["meaning"]], first_word(evidence.words()) or _CONDITION
    return None


_CONDITION = "@condition"
"""The code word of a meaning that conditions decided. Codes that start with @ are ours."""


def read_bare(
    body: object,
    *,
    vendor: str | None = None,
    now: Callable[[], float] | None = None,
    quoted: Waiter | None = None,
    known_by_shape: bool = False,
) -> Fault | None:
    """
    Return the fault of a document without a status. It needs a known shape and a known code word or status.

    `known_by_shape`: `vendor` was recognised by the answer itself.
    """
    if isinstance(body, dict):
        document: object = body
    elif isinstance(body, list) and body:
        document = body[0]
    else:
        return None
    if not isinstance(document, dict):
        return None
    shape = None if vendor is not None else index().shapes.best(body)
    name = vendor if shape is None else shape.vendor.name
    surely = Sender.SHAPE if known_by_shape else Sender.NAME
    if vendor is None:
        surely = Sender.NOBODY if shape is None else Sender.SHAPE if shape.certain else Sender.GUESS
    if name is None and not _is_error_object(document):
        return None
    if vendor is None and len(document) > 3 and len(document.keys() - _BESIDE) > 1:
        # A resource that describes something that failed.
        return None
    evidence = collect(document, Evidence(proved=not known_by_shape and is_service(vendor)))
    known = index()
    sender = known.vendors.get(name) if name is not None else None
    if sender is not None and sender.at:
        _add_places(sender, document, {}, evidence)
    words = evidence.words()
    status = evidence.status
    wait = own_wait(evidence, {}, now, quoted)
    found = by_words(words, status, sender, known, waiting=wait is not None, surely=surely)
    if found is None and status is None:
        return None
    kind = found[0] if found is not None else by_status(status or 500, sender, _is_soon(status, wait))
    word = evidence.kept(found[1]) if found is not None else first_word(words)
    return build(kind, status, evidence, name, word, wait, None)


def beside(body: dict[str, object], fields: Mapping[str, str]) -> Evidence:
    """Return what the members of a problem document say beside those of RFC 9457; code words in `words()`."""
    evidence = collect(body, Evidence())
    trace, _ = _headers(fields, evidence)
    evidence.trace_id = evidence.trace_id or trace
    return evidence


_BESIDE = frozenset(_TABLES["document"]["members"].split())
"""Members of bare error documents. A document with several others describes a resource."""


def _is_error_object(body: dict[str, object]) -> bool:
    error = body.get("error")
    return isinstance(error, dict) and any(value is not None for value in error.values())


def _is_error(body: object, evidence: Evidence, sender: Vendor | None) -> bool:
    """Whether the body has more to say than the status, though no code word of it is known."""
    if sender is not None:
        return True
    return not isinstance(body, list) and bool(evidence.ranked or evidence.field or evidence.trace_id)


def _headers(fields: Mapping[str, str], evidence: Evidence) -> tuple[str | None, tuple[str, bool] | None]:
    """
    Return the request id and the service that headers show, and whether no other sends them.

    Code words in headers are added to the evidence.
    """
    trace, best, vendor = None, 99, None
    words = False
    known = index()
    seen = known.seen
    for name in fields:
        rank, has_word, sender = seen.get(name) or _header(known, name)
        if rank < best:
            best, trace = rank, fields[name]
        words = words or has_word
        if sender is not None and (vendor is None or not vendor[1]):
            vendor = sender
    if words:
        _header_words(fields, evidence)
    return trace or None, vendor


def sender_of(fields: Mapping[str, str]) -> str | None:
    """Return the vendor that headers show, or None."""
    found = _headers(fields, Evidence())[1]
    return None if found is None else found[0]


def _header(known: Index, name: str) -> tuple[int, bool, tuple[str, bool] | None]:
    """Return the rank of a header as a request id (99: it is none), whether it has a code word, and the service that sends it."""
    rank = _TRACES.get(name)
    if rank is None:
        rank = 50 if name.endswith(_HEADERS["request_ends"]) else 99
    found = rank, name in _WORD_NAMES or name.endswith(_HEADERS["words_ends"]), known.header(name)
    if len(known.seen) < _MAX_SEEN:
        known.seen[name] = found
    return found


_MAX_SEEN = 1024


def _header_words(fields: Mapping[str, str], evidence: Evidence) -> None:
    others = (name for name in fields if name.endswith(_HEADERS["words_ends"]) and name not in _WORD_NAMES)
    for rank, name in enumerate((*_HEADERS["words"], *others)):
        value = fields.get(name)
        if value:
            word = token(value.partition(";")[0].partition(":")[0].rpartition("#")[2].strip())
            if word is not None:
                evidence.ranked.append((15 + rank, word))
    for name in _HEADERS["verdicts"]:
        if fields.get(name) in {"true", "1", "false", "0"}:
            evidence.verdict = fields[name] in {"true", "1"}
    challenge = fields.get("www-authenticate", "")
    if challenge and "error=" in challenge:
        word = token(challenge.partition("error=")[2].partition(",")[0].strip().strip('"').partition('"')[0])
        if word is not None:
            evidence.ranked.append((50, word))
    status = fields.get("grpc-status", "")
    if status.isdecimal() and len(status) < 3 and 0 < int(status) <= 16:
        evidence.ranked.append((40, STATUSES[int(status) - 1]))
    if fields.get("x-github-sso", "").startswith("required"):
        evidence.ranked.append((3, "@sso"))
    if "payment-required" in fields:
        evidence.ranked.append((50, "@x402"))


def own_wait(
    evidence: Evidence,
    fields: Mapping[str, str],
    now: Callable[[], float] | None,
    quoted: Waiter | None,
) -> float | None:
    """Return the wait that the body names, in seconds."""
    if evidence.wait is None:
        if evidence.headers is None or quoted is None:
            return None
        lower = {
            name.lower(): str(value)
            for name, value in evidence.headers.items()
            if isinstance(value, (str, int, float))
        }
        return quoted({"date": fields.get("date", ""), **lower})
    kind, amount = evidence.wait
    if kind == 0:
        return bounded(amount)
    return until(seconds_since_epoch(amount), fields, now)


def trace_of(fields: Mapping[str, str]) -> str | None:
    """Return the request id in headers, or None."""
    best, found = 99, None
    known = index()
    for name in fields:
        rank = (known.seen.get(name) or _header(known, name))[0]
        if rank < best:
            best, found = rank, name
    return None if found is None else fields[found] or None


def build(
    kind: Meaning | None,
    status: int | None,
    evidence: Evidence,
    vendor: str | None,
    word: str | None,
    wait: float | None,
    trace: str | None,
    path: str = "body",
) -> Fault:
    """Return the fault of a kind, or of the status if there is none."""
    executed: Executed | None
    if kind is not None:
        code, recovery, actor, executed = kind.code, kind.recovery, kind.actor, kind.executed
        if wait is None:
            wait = kind.wait
    else:
        row = VOCABULARY.status_row(status or 500)
        code, recovery, actor, executed = row.code, row.recovery, row.actor, row.executed
        if evidence.verdict is True and recovery is not Recovery.TRANSIENT:
            recovery, actor = Recovery.TRANSIENT, row.actor_under(Recovery.TRANSIENT)
    if executed is None or executed is Executed.NO:
        least = executed_by_status(evidence.answered)
        executed = executed_as_proved(executed or least, least, known=evidence.proved)
    if evidence.verdict is False and (recovery is Recovery.TRANSIENT or recovery is Recovery.UNCERTAIN):
        recovery, actor = Recovery.TERMINAL, Actor.OPERATOR
    if word is None or word[0] == "@":
        word = evidence.phrase
    return Fault(
        code=code,
        message=evidence.message or VOCABULARY.row(code, status).message,
        recovery=recovery,
        vocabulary="http",
        retry_after=wait,
        field=evidence.field,
        details=None if word is None else {"code": word},
        trace_id=evidence.trace_id or trace,
        doc_uri=evidence.doc_uri,
        status=status,
        actor=actor,
        executed=executed,
        origin=Origin(vendor or "vendor", path),
    )
