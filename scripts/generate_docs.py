"""
Write the tables in the documentation from the code, between `<!-- made: NAME -->` and `<!-- end -->`.

    python scripts/generate_docs.py           write docs/*.md
    python scripts/generate_docs.py --check   exit 1 if a page differs
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from amends.core.crosswalk import TARGETS, code_in
from amends.core.decision import REASONS, decide
from amends.core.enums import Actor, Executed, Recovery
from amends.core.exits import PROFILES
from amends.core.explanation import facts, markdown
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.vocabulary import EVERYDAY, Row, vocabulary
from amends.dialects import decode, dialect, encode
from amends.errors.base import class_name

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- made: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# One value for every field that a producer can set, to find out where a dialect writes it.
SAMPLES: dict[str, Any] = {
    "message": "Text of the producer",
    "retry_after": 7,
    "strategy": "fixed",
    "max_retries": 2,
    "field": "/a/b",
    "suggestions": ("Do it otherwise",),
    "details": {"kept": "as raised"},
    "errors": (),  # replaced by a child in the dialect's own vocabulary: see `members`
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "doc_uri": "https://errors.example/a",
    "type": "https://errors.example/type",
    "title": "A title",
    "status": 418,
    "instance": "/orders/17",
    "intent": {"state": "unknown"},
    "user_message": "Please wait a moment",
    "actor": Actor.PROVIDER,
    "attempt": 2,
    "max_attempts": 3,
    "executed": Executed.YES,
    "extensions": {"x-own": 1},
}
EXAMPLE_IN = {
    "everyday": "problem",
    "http": "problem",
    "cli": "envelope",
    "task": "task",
    "adcp": "adcp",
    "arcp": "arcp",
}
VOCABULARY_OF = {"problem": "http", "envelope": "cli", "task": "task", "adcp": "adcp", "arcp": "arcp"}


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table; an empty cell is `–`."""

    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join("–" if cell in {None, ""} else str(cell) for cell in cells) + " |"

    names = list(head)
    return "\n".join([line(names), "|" + "---|" * len(names), *map(line, rows)])


def codes(name: str) -> str:
    """Return a table of a vocabulary's codes."""
    known = [(row, facts(name, row)) for row in vocabulary(name).rows.values()]
    return table(
        ("code", "recovery", "may have happened", "HTTP", "exit", "next to act", "meaning"),
        (
            (
                f"[`{row.code}`](#{row.code.lower()})",
                row.recovery,
                row.executed,
                each["status"],
                each["exit"],
                row.actor,
                row.message,
            )
            for row, each in known
        ),
    )


def classes(name: str) -> str:
    """Return a table of a vocabulary's exceptions, and whether the same request may succeed."""
    return table(
        ("code", "exception", "retryable", "meaning"),
        (
            (
                f"[`{row.code}`](catalogue-{name}.md#{row.code.lower()})",
                f"`{class_name(row.code)}`",
                "yes" if row.recovery is Recovery.TRANSIENT else "no",
                row.message,
            )
            for row in vocabulary(name).rows.values()
        ),
    )


def catalogue(name: str) -> str:
    """Return a section for every code, with the text of `amends explain`."""
    return "\n".join(_section(name, row) for row in vocabulary(name).rows.values())


def _section(name: str, row: Row) -> str:
    _, _, body = markdown(name, row).partition("\n")
    fault = Fault(
        code=row.code,
        vocabulary=name,
        message=f"{row.message}.",
        retry_after=5 if row.recovery is Recovery.TRANSIENT else None,
    )
    document = json.dumps(encode(fault, EXAMPLE_IN[name]), indent=1, ensure_ascii=False)
    return f"## {row.code}\n{body}\n**Example.**\n\n```json\n{document}\n```\n"


def members(name: str) -> str:
    """Return a table of where a dialect writes each field, and whether reading restores it. Found by encoding samples."""
    bare = {"code": "VALIDATION_ERROR", "vocabulary": VOCABULARY_OF[name], "recovery": Recovery.UNCERTAIN}
    without = _leaves(encode(Fault(**bare), name))
    rows = [("`code`", "`code`" if name != "problem" else "`code` (ours)", "yes")]
    child = Fault(
        code="VALIDATION_ERROR", vocabulary=VOCABULARY_OF[name], message="One of several", status=422
    )
    for field, value in (SAMPLES | {"errors": (child,)}).items():
        fault = Fault(**bare, **{field: value})
        document = encode(fault, name)
        places = sorted(
            {
                _member(pointer)
                for pointer, leaf in _leaves(document).items()
                if without.get(pointer) != leaf and not (field == "status" and "title" in pointer)
            }
        )
        back = decode(document, name)
        same = back is not None and _comparable(back, field) == _comparable(fault, field)
        rows.append((f"`{field}`", ", ".join(f"`{place}`" for place in places), "yes" if same else "no"))
    return table(("field of the Fault", "written as", "read back"), rows)


def _comparable(fault: Fault, field: str) -> Any:
    """Return a field's value; for nested faults their codes, because their origins differ."""
    return [child.code for child in fault.errors] if field == "errors" else getattr(fault, field)


def _leaves(document: Any, pointer: str = "") -> dict[str, Any]:
    if isinstance(document, dict) and document:
        return {
            place: leaf
            for key, value in document.items()
            for place, leaf in _leaves(value, f"{pointer}/{key}").items()
        }
    return {pointer: document}


def _member(pointer: str) -> str:
    """Return the member of a JSON pointer without the samples' own keys: `/error/details/kept` is `error.details`."""
    parts = pointer[1:].split("/")
    while len(parts) > 1 and parts[-1] in {"kept", "state"}:
        parts.pop()
    return ".".join(parts)


def losses(name: str) -> str:
    """Return a sentence that lists the fields a dialect loses."""
    return (
        "Not carried, or carried with less detail: "
        + ", ".join(f"`{field}`" for field in sorted(dialect(name).LOSSES))
        + "."
    )


def recoveries() -> str:
    """Return a table of how each dialect writes the recovery class."""
    member_of = {
        "problem": "is_retriable",
        "envelope": "retryable",
        "task": "recoverable",
        "adcp": "recovery",
        "arcp": "retryable",
    }

    def value(name: str, recovery: Recovery) -> str:
        # AdCP has no INTERNAL_ERROR.
        code = "SERVICE_UNAVAILABLE" if name == "adcp" else "INTERNAL_ERROR"
        document = encode(Fault(code=code, vocabulary=VOCABULARY_OF[name], recovery=recovery), name)
        place = document.get("error", document) if name == "envelope" else document
        return (
            f"`{place[member_of[name]]!r}`".replace("True", "true")
            .replace("False", "false")
            .replace("'", '"')
        )

    return table(
        ("", *(f"{name} `{member}`" for name, member in member_of.items())),
        ((f"**{recovery}**", *(value(name, recovery) for name in member_of)) for recovery in Recovery),
    )


def crosswalk() -> str:
    """Return a table of the everyday codes in every vocabulary."""
    rows = vocabulary(EVERYDAY).rows.values()
    return table(
        ("everyday", "status", *(name for name in TARGETS if name != "http")),
        (
            (
                f"`{row.code}`",
                row.status,
                *(
                    "same" if (code := code_in(name, row.code)) == row.code else f"`{code}`"
                    for name in TARGETS
                    if name != "http"
                ),
            )
            for row in rows
        ),
    )


def decisions() -> str:
    """Return a table of the decisions about a first failure, by recovery class and `executed`."""
    safe, unsafe = Operation(read_only=True), Operation(name="pay")

    def decision_for(recovery: Recovery, executed: Executed, operation: Operation) -> str:
        decision = decide(
            Fault(code="SERVICE_UNAVAILABLE", recovery=recovery, executed=executed), operation=operation
        )
        return f"`{decision.action}` ({decision.reason})"

    return table(
        ("recovery", "executed", "a repeat is safe", "a repeat is not known to be safe"),
        (
            (
                f"`{recovery}`",
                f"`{executed}`",
                decision_for(recovery, executed, safe),
                decision_for(recovery, executed, unsafe),
            )
            for recovery in Recovery
            for executed in Executed
        ),
    )


def reasons() -> str:
    """Return a table of the reasons of decisions."""
    return table(("reason", "explanation"), ((f"`{key}`", text) for key, text in REASONS.items()))


def exits() -> str:
    """Return a table of the exit codes of both profiles."""
    numbers = sorted({number for profile in PROFILES.values() for number in profile})

    def code(profile: str, number: int) -> str | None:
        found = PROFILES[profile].get(number)
        return f"`{found.code}`" if found else None

    return table(
        ("exit", *(f"profile `{name}`" for name in PROFILES)),
        ((number, *(code(name, number) for name in PROFILES)) for number in numbers),
    )


def statuses() -> str:
    """Return a table of HTTP statuses without a structured body."""
    rows = vocabulary("http").by_status
    return table(
        ("status", "code", "recovery", "may have happened"),
        (
            (status, f"`{row.code}`", row.recovery, row.executed)
            for status, row in sorted(rows.items())
            if status == 400 or row.code != rows[400].code
        ),
    )


def vendors() -> str:
    """Return a table of the vendors: how they take idempotency keys, and which routes only compute."""
    from amends.vendors.registry import names as service_names
    from amends.vendors.registry import vendor

    def key(each: Any) -> str:
        keys = each.keys
        if keys is None:
            return ""
        place = f"header `{keys.header}`" if keys.header else f"member `{keys.field}`"
        hours = f", {keys.hours:g} h" if keys.hours else ""
        return place + hours + (f", replay marked by `{keys.replay}`" if keys.replay else "")

    return table(
        ("vendor", "name", "idempotency key", "routes that only compute"),
        (
            (
                f"[{each.title}]({each.docs})",
                f"`{each.name}`",
                key(each),
                ", ".join(f"`{part}`" for part in each.computes),
            )
            for each in (vendor(name) for name in service_names())
        ),
    )


def meanings() -> str:
    """Return the table of meanings."""
    from amends.core.meanings import MEANINGS

    return table(
        ("meaning", "code", "recovery", "next to act", "executed"),
        (
            (f"`{each.name}`", f"`{each.code}`", each.recovery, each.actor, each.executed or "by the status")
            for each in MEANINGS.values()
        ),
    )


def vendor(what: str) -> str:
    """Return a section per vendor with its codes, one line per meaning."""
    assert what == "codes"
    from amends.core.meanings import Meaning
    from amends.vendors.explanation import under
    from amends.vendors.registry import names as service_names
    from amends.vendors.registry import vendor as vendor_of

    sections = []
    for each in (vendor_of(name) for name in service_names()):
        lines: dict[tuple[Any, ...], list[str]] = {}
        entries = [(f"`{word}`", kind) for word, kind in each.words.items() if not word.startswith("@")]
        entries += [
            (f"*`{word}`*", kind) for word, kind in each.broad.items() if kind != each.words.get(word)
        ]
        entries += [(f"status {status}", kind) for status, kind in each.statuses.items()]
        entries += [(f"close {number}", kind) for number, kind in each.closes.items()]
        for word, found in entries:
            for status, kind in [(0, found)] if isinstance(found, Meaning) else found.items():
                facts = (
                    f"`{kind.code}`",
                    kind.recovery,
                    kind.actor,
                    kind.executed or "by the status",
                    None if kind.wait is None else f"{kind.wait:g} s",
                )
                lines.setdefault(facts, []).append(f"{word} ({under(status)})" if status else word)
        if not lines:
            sections.append(f"### {each.title}\n\nErrors have no codes: the status decides.\n")
            continue
        head = ("sender's code", "code", "recovery", "next to act", "executed", "documented wait")
        if all(wait is None for *_, wait in lines):
            head = head[:-1]
        rows = ((", ".join(names), *facts)[: len(head)] for facts, names in lines.items())
        sections.append(f"### {each.title}\n\n{table(head, rows)}\n")
    return "\n".join(sections)


MAKERS: dict[str, Callable[..., str]] = {
    maker.__name__: maker
    for maker in (
        codes,
        classes,
        catalogue,
        members,
        losses,
        recoveries,
        crosswalk,
        decisions,
        reasons,
        exits,
        statuses,
        vendors,
        meanings,
        vendor,
    )
}


def render(page: str) -> str:
    """Return a page with its tables generated again."""

    def make(match: re.Match[str]) -> str:
        maker, *arguments = match[2].split()
        return f"{match[1]}{MAKERS[maker](*arguments).rstrip()}\n{match[3]}"

    return BLOCK.sub(make, page)


def main(folder: Path, check: bool) -> int:
    """Write the pages and print the names of those that changed; with `check`, only print them."""
    drifted = 0
    for path in sorted(folder.glob("*.md")):
        page = path.read_text()
        made = render(page)
        if made != page:
            drifted += 1
            sys.stdout.write(f"{path.name}\n")
            if not check:
                path.write_text(made)
    return int(check and drifted > 0)


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    sys.exit(main(Path(folders[0]) if folders else DOCS, "--check" in sys.argv))
