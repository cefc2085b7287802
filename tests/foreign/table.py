"""Writes the table at the end of docs/foreign.md from the rows: `python -m tests.foreign.table`."""

from pathlib import Path

from amends.core.vocabularies.everyday import VOCABULARY
from amends.foreign.classes import INSIDE, LIBRARIES

PAGE = Path(__file__).parents[2] / "docs" / "foreign.md"
MARK = "<!-- table: written by `python -m tests.foreign.table`, checked by tests/foreign/test_docs.py -->\n"


def table() -> str:
    """Return the table: one line for the classes of a library with the same meaning."""
    lines = ["", "| module | classes | code | recovery | executed | |", "|---|---|---|---|---|---|"]
    for modules, rows in LIBRARIES:
        where = ", ".join(f"`{module}`" for module in modules)
        same: dict[str, list[str]] = {}
        # A later row of the same name replaces an earlier one.
        for name, (meaning, *reader) in {name: rest for name, *rest in rows}.items():
            recovery = meaning.recovery or VOCABULARY.rows[meaning.code].recovery
            more = ("*inside*" if reader[0] == INSIDE else "more exact") if reader else ""
            same.setdefault(f"{meaning.code} | {recovery} | {meaning.executed} | {more}", []).append(name)
        lines += [f"| {where} | {', '.join(names)} | {facts} |" for facts, names in same.items()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + table())
