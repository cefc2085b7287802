"""Writes the table at the end of docs/foreign.md from the rows: `python -m tests.foreign.table`."""

from pathlib import Path

from amends.foreign.classes import INSIDE, rows_of
from amends.vendors.registry import exception_rows

PAGE = Path(__file__).parents[2] / "docs" / "foreign.md"
MARK = "<!-- table: written by `python -m tests.foreign.table`, checked by tests/foreign/test_docs.py -->\n"


def table() -> str:
    """Return the table: one line for the classes of a library with the same meaning."""
    lines = ["", "| module | classes | code | recovery | executed | |", "|---|---|---|---|---|---|"]
    for library in exception_rows():
        where = ", ".join(f"`{module}`" for module in library["modules"])
        same: dict[str, list[str]] = {}
        for name, (meaning, reader) in rows_of(library):
            more = ("*inside*" if reader == INSIDE else "more exact") if reader else ""
            executed = meaning.executed or "maybe"
            same.setdefault(f"{meaning.code} | {meaning.recovery} | {executed} | {more}", []).append(name)
        lines += [f"| {where} | {', '.join(names)} | {facts} |" for facts, names in same.items()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + table())
