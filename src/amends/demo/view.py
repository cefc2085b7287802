"""Shows the comparison on a terminal: what was sent, what each agent did about it, and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amends.demo.comparison import Observer, Report, Result
from amends.rehearse.judge import Row
from amends.rehearse.kinds import KINDS

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["NEXT", "Screen"]

NEXT = "rehearse a program of your own: amends rehearse -- python my_agent.py"
_COLORS = {None: "dim", 0: "red", 1: "yellow", 2: "cyan", 3: "green"}


class Screen(Observer):
    """Prints the comparison with Rich."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def agent_started(self, name: str) -> None:
        """Print the agent's name as a heading."""
        self.console.print()
        self.console.rule(f"[bold]{name}", align="left")

    def judged(self, row: Row) -> None:
        """Print the score of a failure, and what the agent did wrong."""
        score = "–" if row.score is None else str(row.score)
        what = f"{row.service} {KINDS[row.kind].text}"
        found = row.findings[0] if row.findings else None
        seen = f" [dim]{found.rule}: {found.seen}" if found is not None else ""
        self.console.print(f"  [{_COLORS[row.score]}]{score}[/]  {what}{seen}")

    def show_results(self, report: Report) -> None:
        """Print the table."""
        from rich import box
        from rich.table import Table

        count = len(report.results[0].rows)
        # A simple box, so that the table fits into 80 columns.
        table = Table(
            title=f"Three agents and {count} failures (seed {report.seed})",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        table.add_column("", no_wrap=True)
        for head in ("handled", "finished", "calls", "harm", "gave up", "leaks"):
            table.add_column(head, justify="right", no_wrap=True)
        for result in report.results:
            table.add_row(result.agent, *_cells(result))
        self.console.print()
        self.console.print(table)
        self.console.print(
            "[dim]handled: failures with the best score; finished: the job was done all the same; harm: an effect that happened "
            "twice, or an exhausted account asked again; gave up: a repeat would have succeeded; leaks: internals of a service "
            "reached the model."
        )
        self.console.print(f"\nnext: {NEXT}")


def _cells(result: Result) -> tuple[str, ...]:
    count = len(result.rows)
    harm = sum(row.score == 0 for row in result.rows)
    leaks, gave_up = result.count("leaked"), result.count("gave-up")
    return (
        f"[{'green' if result.handled == count else 'red'}]{result.handled} of {count}",
        f"{result.finished} of {count}",
        str(result.calls),
        f"[{'red' if harm else 'green'}]{harm}",
        f"[{'red' if gave_up else 'green'}]{gave_up}",
        f"[{'red' if leaks else 'green'}]{leaks}",
    )
