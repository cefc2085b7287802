"""Describe a code from the tables: as plain values and as Markdown. Used wherever a code is explained."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import quote

from amends.core.crosswalk import TARGETS, transfer
from amends.core.enums import Executed, Recovery
from amends.core.exits import exit_code
from amends.core.fault import Fault
from amends.core.vocabulary import APP, EVERYDAY, Row, row_for, vocabulary

__all__ = ["EFFECT", "MEANING", "facts", "markdown", "slug"]

MEANING = {
    Recovery.TRANSIENT: "the same request may succeed later",
    Recovery.CORRECTABLE: "the request has to change first",
    Recovery.TERMINAL: "no program can help; a person has to act",
    Recovery.UNCERTAIN: "unknown; one more try where a repeat is safe",
}
EFFECT = {
    Executed.NO: "it did not happen",
    Executed.MAYBE: "it may have happened",
    Executed.YES: "it did happen",
}


@lru_cache(maxsize=1024)
def slug(name: str, code: str) -> str:
    """
    Return the path of a code's page below the URL of the error pages.

    Agent Surface's problem-details extensions name the page of a cancellation `operation-cancelled`.
    """
    last = "operation-cancelled" if code == "CANCELLED" else quote(code.lower().replace("_", "-"), safe="")
    return last if name in {APP, "http", EVERYDAY} else f"{quote(name, safe='')}/{last}"


def facts(name: str, row: Row) -> dict[str, Any]:
    """Return everything the tables say about a code, in plain values."""
    fault = Fault(code=row.code, vocabulary=name)
    elsewhere = {target: transfer(fault, target).code for target in TARGETS if target != name}
    known = {
        "vocabulary": name,
        "code": row.code,
        "message": row.message,
        "recovery": row.recovery.value,
        "executed": row.executed.value,
        "actor": row.actor.value,
        "suggestion": row.suggestion,
        "user_message": row.user_message,
        "status": row.status or row_for("everyday", row.everyday).status,
        "exit": exit_code(fault),
        "jsonrpc": row.jsonrpc,
        "wait": row.wait,
        "category": row.category,
        "qualifier": row.qualifier,
        "alias": row.alias,
        "elsewhere": elsewhere,
    }
    return {key: value for key, value in known.items() if value is not None}


def _sentence(text: str) -> str:
    """Return a text with a full stop. An application's own texts may end with one, as the first line of a docstring does."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def markdown(name: str, row: Row) -> str:
    """Return the same as Markdown: the cause, what to do, and the numbers in each format."""
    known = facts(name, row)
    elsewhere = ", ".join(f"{target} {code}" for target, code in known["elsewhere"].items())
    lines = [
        f"# {row.code} ({vocabulary(name).title})",
        "",
        f"**Cause.** {_sentence(row.message)} When it fails this way, {EFFECT[row.executed]}.",
        "",
        (
            f"**What to do.** {_sentence(row.suggestion)} Next to act: the {row.actor}. "
            f"It is {row.recovery}: {MEANING[row.recovery]}."
        ),
        "",
        f"- message for the user: {row.user_message}",
        f"- HTTP status {known['status']}, exit code {known['exit']}"
        + (f", JSON-RPC {row.jsonrpc}" if row.jsonrpc is not None else ""),
        f"- elsewhere: {elsewhere}",
    ]
    if row.alias:
        lines.append(f"- deprecated: use {row.alias}")
    return "\n".join([*lines, ""])
