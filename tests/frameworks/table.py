"""
The tables of docs/agent-frameworks.md and docs/effects.md, from outcomes of the matrix of frameworks.

    python -m tests.frameworks.table langchain strands   run the matrix with these frameworks, and record the outcomes
    python -m tests.frameworks.table --write             put the tables of the recorded outcomes into the pages

The outcome of a cell is a letter: P paid once, and the model says so; D in doubt, and the model says so; N not paid, and the model says so;
2 paid twice; F the model says something false; E the run ended; - the cell was not run.
"""

import importlib.metadata
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.frameworks.matrix import PLANS, Cell, Result, cells, driver, run_cell

OUTCOMES = Path(__file__).with_name("outcomes")
_DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = {
    "langchain": "langchain",
    "openai_agents": "openai-agents",
    "llama_index": "llama-index-core",
    "claude_agent_sdk": "claude-agent-sdk",
    "google_adk": "google-adk",
    "agent_framework": "agent-framework-core",
    "smolagents": "smolagents",
    "strands": "strands-agents",
    "crewai": "crewai",
    "pydantic_ai": "pydantic-ai-slim",
}
ALONE = "one tool, alone"
_WORDS = {
    "P": "paid once",
    "D": "in doubt",
    "N": "not paid",
    "2": "paid twice",
    "F": "says something false",
    "E": "ends",
}
_FAULTS = {
    "call lost": "the call is lost",
    "answer lost": "the answer is lost",
    "error returned": "the tool returns an error",
    "error raised": "the tool refuses",
    "validation": "wrong arguments",
    "killed before": "killed before the payment",
    "killed inside": "killed after the payment",
    "killed after": "killed after the result",
}
_PLANS = {
    "same": "unchanged",
    "default written out": "default written out",
    "extra": "`again` and an unknown argument",
    "type changed": "number as text",
    "another user": "another user",
    "another session": "another session",
}
_SHAPES = {
    "parallel tools": "two tools at once",
    "equal calls": "two equal calls at once",
    "handoff": "another agent pays",
}


def letter(result: Result) -> str:
    """Return the outcome of a cell."""
    if result.twice:
        return "2"
    if result.error or result.said is None:
        return "E"
    if not result.true:
        return "F"
    return {"paid": "P", "unknown": "D", "not paid": "N"}[result.said]


def group(cell: Cell) -> str:
    """Return the group of a cell, whose outcomes are in one table."""
    return f"{cell.shape}, declared" if cell.verified and cell.shape == "one tool" else cell.shape


def measure(name: str) -> None:
    """Run the matrix with a framework, and alone the cells with one tool."""
    made = driver(name)
    found: dict[str, dict[str, dict[str, str]]] = {}
    read: dict[str, str] = {}
    for cell in cells(made):
        result = run_cell(made, cell)
        found.setdefault(group(cell), {}).setdefault(cell.fault, {})[cell.plan] = letter(result)
        if group(cell) == "one tool" and cell.fault == "none" and not cell.two_conversations:
            second = result.read[1] if len(result.read) > 1 else ""
            read[cell.plan] = "once" if "receipt" in second else "refused"
        if group(cell) == "one tool":
            alone = letter(run_cell(made, cell, alone=True))
            found.setdefault(ALONE, {}).setdefault(cell.fault, {})[cell.plan] = alone
    tables = {
        part: {fault: "".join(row.get(plan, "-") for plan in PLANS) for fault, row in rows.items()}
        for part, rows in found.items()
    }
    record = {
        "name": made.NAME,
        "tested": f"{PACKAGES[name]} {importlib.metadata.version(PACKAGES[name])}",
        "plans": read,
        "outcomes": tables,
    }
    (OUTCOMES / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def recorded() -> list[dict[str, Any]]:
    """Return the records of all frameworks, in the order of the page."""
    return [json.loads((OUTCOMES / f"{name}.json").read_text()) for name in PACKAGES]


def totals() -> Iterator[str]:
    """The table of how often it was paid twice, alone and with amends."""
    yield "| framework | tested with | cells | alone: paid twice | alone: ends, or says something false | with amends: paid twice | with amends: ends, or says something false |"
    yield "|---|---|---|---|---|---|---|"
    for each in recorded():
        alone, ours = Counter[str](), Counter[str]()
        for part, rows in each["outcomes"].items():
            (alone if part == ALONE else ours).update("".join(rows.values()).replace("-", ""))
        yield (
            f"| {each['name']} | {each['tested']} | {ours.total()} ({alone.total()} alone) | {alone['2']} | {alone['E'] + alone['F']} "
            f"| {ours['2']} | {ours['E'] + ours['F']} |"
        )


def plans() -> Iterator[str]:
    """The table of how a call may be written once more."""
    columns = [plan for plan in _PLANS if not plan.startswith("another")]
    yield f"| framework | {' | '.join(_PLANS[plan] for plan in columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    words = {"once": "once", "refused": "refused by the framework"}
    yield from _grouped(
        [(each["name"], [words[each["plans"][plan]] for plan in columns]) for each in recorded()]
    )


def faults() -> Iterator[str]:
    """The table of what the model says at the end, for a tool that is not declared and one that is."""
    yield f"| framework | effect declared | {' | '.join(_FAULTS.values())} |"
    yield f"|---|---|{'---|' * len(_FAULTS)}"
    for part, declared in (("one tool", "no"), ("one tool, declared", "with `key` and `verify`")):
        rows = []
        for each in recorded():
            outcomes = each["outcomes"][part]
            rows.append(
                (each["name"], [declared, *(_WORDS.get(outcomes[fault][0], "–") for fault in _FAULTS)])
            )
        yield from _grouped(rows)


def shapes() -> Iterator[str]:
    """The table of the other shapes of a run, users and sessions: how many cells were paid once, in doubt, or anything else."""
    yield f"| framework | {' | '.join(_SHAPES.values())} | another user or session | the model finds out |"
    yield f"|---|{'---|' * (len(_SHAPES) + 2)}"
    rows = []
    for each in recorded():
        outcomes = each["outcomes"]
        texts = ["".join(outcomes.get(shape, {}).values()) for shape in _SHAPES]
        others = [row[-2:] for part, table in outcomes.items() if part != ALONE for row in table.values()]
        texts += ["".join(others), "".join(outcomes.get("check", {}).values())]
        rows.append((each["name"], [_counts(text) for text in texts]))
    yield from _grouped(rows)


def _counts(text: str) -> str:
    counts = Counter(text.replace("-", ""))
    return ", ".join(f"{_WORDS[each]} {counts[each]}" for each in _WORDS if counts[each]) or "–"


def _grouped(rows: list[tuple[str, list[str]]]) -> Iterator[str]:
    """Yield the rows; frameworks with the same outcomes share one."""
    same: dict[tuple[str, ...], list[str]] = {}
    for name, values in rows:
        same.setdefault(tuple(values), []).append(name)
    for values, names in same.items():
        yield f"| {', '.join(names)} | {' | '.join(values)} |"


TABLES = {"totals": totals, "plans": plans, "faults": faults, "shapes": shapes}


PAGES = {_DOCS / "agent-frameworks.md": tuple(TABLES), _DOCS / "effects.md": ("faults",)}


def written(page: Path) -> str:
    """Return a page as it has to be."""
    text = page.read_text()
    for name in PAGES[page]:
        rows = TABLES[name]
        begin, end = f"<!-- begin: {name}, generated by tests/frameworks/table.py -->\n", "<!-- end -->\n"
        before, found, rest = text.partition(begin)
        if not found:
            raise ValueError(f"the page has no place for the table {name}")
        lines = "\n".join(rows())
        text = f"{before}{begin}\n{lines}\n\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    """Record outcomes, or write the tables."""
    logging.disable()
    if "--write" in sys.argv:
        for page in PAGES:
            page.write_text(written(page))
    for name in (each for each in sys.argv[1:] if not each.startswith("--")):
        measure(name)


if __name__ == "__main__":
    main()
