"""
Write the tables in the documentation from the code, between `<!-- made: NAME -->` and `<!-- end -->`.

    python scripts/generate_docs.py           write docs/*.md
    python scripts/generate_docs.py --check   exit 1 when what is there differs
"""

from __future__ import annotations

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
from amends.errors.classes import class_name

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- made: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# One value of every field a producer may fill, to show where a format puts it.
SAMPLES: dict[str, Any] = {
    "message": "Chosen by the producer",
    "retry_after": 7,
    "strategy": "fixed",
    "max_retries": 2,
    "field": "/a/b",
    "suggestions": ("Do it otherwise",),
    "details": {"kept": "as raised"},
    "errors": (),  # one child, in the format's own vocabulary: see `members`
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
SPEAKS = {"problem": "http", "envelope": "cli", "task": "task", "adcp": "adcp", "arcp": "arcp"}


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; nothing is `–`."""

    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join("–" if cell in {None, ""} else str(cell) for cell in cells) + " |"

    names = list(head)
    return "\n".join([line(names), "|" + "---|" * len(names), *map(line, rows)])


def codes(name: str) -> str:
    """Every code of a vocabulary, a line each."""
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
    """The exception of every code of a vocabulary, and whether the same request may succeed."""
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
    return f"## {row.code}\n{body}"


def members(name: str) -> str:
    """Where a dialect writes each field, seen by writing it, and whether it comes back."""
    bare = {"code": "VALIDATION_ERROR", "vocabulary": SPEAKS[name], "recovery": Recovery.UNCERTAIN}
    without = _leaves(encode(Fault(**bare), name))
    rows = [("`code`", "`code`" if name != "problem" else "`code` (ours)", "yes")]
    child = Fault(code="VALIDATION_ERROR", vocabulary=SPEAKS[name], message="One of several", status=422)
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
        same = back is not None and _told(back, field) == _told(fault, field)
        rows.append((f"`{field}`", ", ".join(f"`{place}`" for place in places), "yes" if same else "no"))
    return table(("field of the Fault", "written as", "read back"), rows)


def _told(fault: Fault, field: str) -> Any:
    """A field's value; nested faults by their codes, because where they were found is theirs alone."""
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
    """`/error/details/kept` is shown as `error.details`: the samples' own keys are left out."""
    parts = pointer[1:].split("/")
    while len(parts) > 1 and parts[-1] in {"kept", "state"}:
        parts.pop()
    return ".".join(parts)


def losses(name: str) -> str:
    """What a dialect does not carry, or carries coarser."""
    return (
        "Not carried, or carried with less detail: "
        + ", ".join(f"`{field}`" for field in sorted(dialect(name).LOSSES))
        + "."
    )


def recoveries() -> str:
    """How each format writes the recovery class."""
    said = {
        "problem": "is_retriable",
        "envelope": "retryable",
        "task": "recoverable",
        "adcp": "recovery",
        "arcp": "retryable",
    }

    def word(name: str, recovery: Recovery) -> str:
        document = encode(Fault(code="INTERNAL_ERROR", vocabulary=SPEAKS[name], recovery=recovery), name)
        place = document.get("error", document) if name == "envelope" else document
        return f"`{place[said[name]]!r}`".replace("True", "true").replace("False", "false").replace("'", '"')

    return table(
        ("", *(f"{name} `{member}`" for name, member in said.items())),
        ((f"**{recovery}**", *(word(name, recovery) for name in said)) for recovery in Recovery),
    )


def crosswalk() -> str:
    """The everyday set in every vocabulary."""
    rows = vocabulary(EVERYDAY).rows.values()
    return table(
        ("everyday", "status", *(name for name in TARGETS if name != "http")),
        (
            (
                f"`{row.code}`",
                row.status,
                *(
                    "same" if (word := code_in(name, row.code)) == row.code else f"`{word}`"
                    for name in TARGETS
                    if name != "http"
                ),
            )
            for row in rows
        ),
    )


def decisions() -> str:
    """What `decide` answers at the first failure, for every class and every degree of doubt."""
    safe, unsafe = Operation(read_only=True), Operation(name="pay")

    def answer(recovery: Recovery, executed: Executed, operation: Operation) -> str:
        decision = decide(
            Fault(code="SERVICE_UNAVAILABLE", recovery=recovery, executed=executed), operation=operation
        )
        return f"`{decision.action}` ({decision.reason})"

    return table(
        ("recovery", "executed", "a repeat is safe", "not declared safe"),
        (
            (
                f"`{recovery}`",
                f"`{executed}`",
                answer(recovery, executed, safe),
                answer(recovery, executed, unsafe),
            )
            for recovery in Recovery
            for executed in Executed
        ),
    )


def reasons() -> str:
    """Every reason a decision can have."""
    return table(("reason", "meaning"), ((f"`{key}`", words) for key, words in REASONS.items()))


def exits() -> str:
    """Both tables of exit codes."""
    numbers = sorted({number for profile in PROFILES.values() for number in profile})

    def word(profile: str, number: int) -> str | None:
        found = PROFILES[profile].get(number)
        return f"`{found.code}`" if found else None

    return table(
        ("exit", *(f"profile `{name}`" for name in PROFILES)),
        ((number, *(word(name, number) for name in PROFILES)) for number in numbers),
    )


def statuses() -> str:
    """What a bare HTTP status means."""
    rows = vocabulary("http").by_status
    return table(
        ("status", "code", "recovery", "may have happened"),
        (
            (status, f"`{row.code}`", row.recovery, row.executed)
            for status, row in sorted(rows.items())
            if status == 400 or row.code != rows[400].code
        ),
    )


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
    )
}


def rendered(page: str) -> str:
    """Return a page with its tables regenerated."""

    def make(match: re.Match[str]) -> str:
        maker, *arguments = match[2].split()
        return f"{match[1]}{MAKERS[maker](*arguments).rstrip()}\n{match[3]}"

    return BLOCK.sub(make, page)


def main(folder: Path, check: bool) -> int:
    """Write the files, or list what would change."""
    drifted = 0
    for path in sorted(folder.glob("*.md")):
        page = path.read_text()
        made = rendered(page)
        if made != page:
            drifted += 1
            sys.stdout.write(f"{path.name}\n")
            if not check:
                path.write_text(made)
    return int(check and drifted > 0)


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    sys.exit(main(Path(folders[0]) if folders else DOCS, "--check" in sys.argv))
