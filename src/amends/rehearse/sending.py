"""
Makes the answers that fail: an example as its service sends it today, or a failure built from the ordinary answer.

An example was recorded on some day: times in it are moved to now, an announced wait that is longer than the plan allows is
shortened wherever it occurs, and a canary is put where only internals of a service are.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime

from amends.core.vocabularies.http import VOCABULARY
from amends.rehearse.examples import Example
from amends.rehearse.exchange import Answer, Request

__all__ = ["built_answer", "example_answer"]

_PLACEHOLDER = re.compile(r'"…"|"m"(?=[,}\]])')
_MOMENT = re.compile(r"(?<![\d.\w-])(1[67]\d{8})(\d{3})?(?![\d.])")
_WAIT_HEADERS = ("retry", "reset", "ratelimit")
_DAYS = 40 * 86_400


def example_answer(
    example: Example, longest: float, canary: str, now: Callable[[], float] = time.time
) -> tuple[Answer, float | None]:
    """
    Return the answer of an example, and the wait that it announces.

    >>> from amends.rehearse.examples import examples_of
    >>> rate = next(each for each in examples_of("openai") if each.id == "openai/rate-rate_limit_exceeded")
    >>> answer, wait = example_answer(rate, 2.0, "marble-wren-ledger-11")
    >>> answer.header("retry-after"), wait
    ('2', 2)
    """
    text = example.content().decode("utf-8", "surrogateescape")
    headers = dict(example.headers)
    wait = example.wait
    if wait is not None and wait > longest:
        short = max(1, int(longest))
        text, headers = _shortened(text, headers, wait, short)
        wait = short
    recorded = _date(headers)
    if recorded is not None:
        shift = round(now()) - recorded
        text = _moved(text, recorded, shift)
        headers = {
            name: value if name.lower() == "date" else _moved(value, recorded, shift)
            for name, value in headers.items()
        }
        headers = {
            name: formatdate(now(), usegmt=True) if name.lower() == "date" else value
            for name, value in headers.items()
        }
    text = _PLACEHOLDER.sub(lambda found: f'"{_message(example)}"', text)
    named = {name.lower() for name in headers}
    if "content-type" not in named and text:
        headers["content-type"] = _type_of(text)
    headers.pop("Content-Length", None)
    if "x-served-by" not in named:
        headers["x-served-by"] = canary
    if example.status >= 500:
        text = _with_trace(text, canary)
    body = text.encode("utf-8", "surrogateescape")
    return Answer(status=example.status, headers=tuple(headers.items()), body=body), wait


def _message(example: Example) -> str:
    """Return a message where the example leaves it out: that of its code."""
    from amends.core.meanings import MEANINGS

    meaning = MEANINGS.get(example.meaning or "")
    return VOCABULARY.rows[meaning.code].message if meaning is not None else "failed"


def _date(headers: dict[str, str]) -> int | None:
    value = next((value for name, value in headers.items() if name.lower() == "date"), None)
    if value is None:
        return None
    try:
        return int(parsedate_to_datetime(value).timestamp())
    except ValueError:
        return None


def _moved(text: str, recorded: int, shift: int) -> str:
    """Return a text whose moments after the recording are as far from now as they were from then."""

    def move(found: re.Match[str]) -> str:
        seconds = int(found[1])
        if not recorded - 60 <= seconds <= recorded + _DAYS:
            return found[0]
        return f"{seconds + shift}{found[2] or ''}"

    return _MOMENT.sub(move, text)


def _shortened(text: str, headers: dict[str, str], wait: float, short: int) -> tuple[str, dict[str, str]]:
    """Return body and headers with the announced wait replaced wherever it occurs: as seconds, milliseconds or a moment."""
    whole = int(wait)
    spoken = {str(whole): str(short), str(whole * 1000): str(short * 1000), f"{wait:g}": str(short)}
    recorded = _date(headers)
    if recorded is not None:
        spoken[str(recorded + whole)] = str(recorded + short)
    pattern = re.compile(
        r"(?<![\d.])(" + "|".join(map(re.escape, sorted(spoken, key=len, reverse=True))) + r")(?!\d|\.\d)"
    )

    def replace(value: str) -> str:
        return pattern.sub(lambda found: spoken[found[1]], value)

    shown = {
        name: replace(value) if any(each in name.lower() for each in _WAIT_HEADERS) else value
        for name, value in headers.items()
    }
    return replace(text), shown


def _type_of(text: str) -> str:
    start = text.lstrip()[:6]
    if start.startswith(("{", "[")):
        return "application/json"
    return "text/event-stream" if start.startswith(("event:", "data:")) else "text/plain"


def _with_trace(text: str, canary: str) -> str:
    """Return the body of a 5xx answer with the trace of a service in debug mode."""
    trace = f"File /srv/{canary}/handlers.py, line 112, in dispatch"
    if text.startswith("{") and text.rstrip().endswith("}") and len(text) > 2:
        return f'{text.rstrip()[:-1]}, "trace": "{trace}"}}'
    return f"{text}\n{trace}\n" if text else trace


_PAGE = """<!DOCTYPE html>
<html><head><title>{status} {title}</title></head>
<body><center><h1>{status} {title}</h1></center><hr><center>cloudflare</center>
<!-- backend {canary} did not answer -->
</body></html>
"""


def built_answer(kind: str, request: Request, ordinary: Answer, canary: str) -> Answer:
    """Return the failure of a kind that needs no example, from the answer that the service would have given."""
    if kind == "html":
        page = _PAGE.format(status=502, title="Bad Gateway", canary=canary).encode()
        headers = (
            ("content-type", "text/html; charset=UTF-8"),
            ("server", "cloudflare"),
            ("cf-ray", "8e1f4c0a9b2d3e4f-FRA"),
        )
        return Answer(status=502, headers=headers, body=page)
    if kind == "malformed":
        body = ordinary.body or b"".join(ordinary.parts or ()) or b'{"id": "1", "status"'
        return Answer(status=ordinary.status, headers=ordinary.headers, body=body[: max(1, len(body) // 2)])
    if kind == "cut":
        parts = tuple(ordinary.parts or (ordinary.body,))
        return Answer(
            status=ordinary.status,
            headers=ordinary.headers,
            parts=parts[: max(1, len(parts) // 2)],
            ending="cut",
        )
    ordinary.ending = kind  # lost, late, silent
    return ordinary


def event_answer(example: Answer, ordinary: Answer, events: Callable[[Answer], tuple[bytes, ...]]) -> Answer:
    """Return a stream that begins as usual and then reports the failure of an example as an event."""
    parts = tuple(ordinary.parts or ())
    failing = (*parts[: max(1, len(parts) // 3)], *events(example))
    headers = tuple(each for each in example.headers if each[0].lower() == "x-served-by")
    return Answer(status=ordinary.status, headers=(*ordinary.headers, *headers), parts=failing)
