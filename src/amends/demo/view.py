"""The show on a terminal: every call as the service saw it, every decision, and a table at the end."""

from __future__ import annotations

from typing import Any

from amends.core.decision import REASONS
from amends.demo.call_record import Call
from amends.demo.comparison import Audience, Deed, Report, Score
from amends.demo.scenario import STEPS, Hurdle, Late, Lost, Wrong
from amends.recovery import Event

__all__ = ["Screen"]

_TITLES = {step.name: step for step in STEPS}

# How each service says what stands in the way: its own dialect, in a few words.
_SAID: dict[str, dict[type[Hurdle], str]] = {
    "HTTP API": {
        Late: "429 problem+json, Retry-After {seconds:g}",
        Lost: "connection broken before the answer",
    },
    "command": {Late: "exit 9, envelope RATE_LIMITED, retry_after_ms {ms:.0f}"},
    "MCP server": {
        Late: "isError, adcp_error RATE_LIMITED, retry_after {seconds:g}",
        Wrong: "isError, adcp_error VALIDATION_ERROR, field time",
    },
    "A2A agent": {Late: "task failed, adcp_error RATE_LIMITED, retry_after {seconds:g}"},
    "ARCP runtime": {Lost: "websocket broken before job.result"},
}


class Screen(Audience):
    """Writes with Rich."""

    def __init__(self, console: Any) -> None:
        self.console = console

    def agent(self, name: str) -> None:
        """A heading."""
        self.console.print()
        self.console.rule(f"[bold]{name}", align="left")

    def step(self, name: str) -> None:
        """What is to be done, and where."""
        step = _TITLES[name]
        self.console.print(f"[bold]{step.title}[/] [dim]({step.service})")

    def call(self, call: Call) -> None:
        """What the service answered."""
        service = _TITLES[call.step].service
        if call.hurdle is None:
            self.console.print(f"  call {call.number} [green]answered")
            return
        seconds = getattr(call.hurdle, "seconds", 0.0)
        said = _SAID[service][type(call.hurdle)].format(seconds=seconds, ms=seconds * 1000)
        waste = " [red]wasted" if call.wasted else ""
        self.console.print(f"  call {call.number} [yellow]{said}[/]{waste}")

    def event(self, event: Event) -> None:
        """What amends decided. That it worked out in the end, the step says itself."""
        if event.kind == "recovered":
            return
        wait = f" in {event.delay:.1f} s" if event.delay else ""
        said = "ask the model" if event.reason == "correctable" else f"{event.kind}{wait}"
        self.console.print(f"    [cyan]{said}[/] [dim]{REASONS.get(event.reason, event.reason)}")

    def deed(self, deed: Deed) -> None:
        """How it ended."""
        twice = f" [red]{deed.effects} times[/]" if deed.effects > 1 else ""
        if deed.done:
            self.console.print(f"  [green]done[/]{twice} [dim]{deed.seconds:.1f} s")
        else:
            self.console.print(
                f"  [red]not done[/]: {deed.error or 'no answer'}, {deed.read} bytes for the model to read"
            )

    def end(self, report: Report) -> None:
        """Side by side."""
        from rich.table import Table

        table = Table(title=f"The same evening three times (seed {report.seed})", title_justify="left")
        table.add_column("", no_wrap=True)
        for head in ("finished", "calls", "wasted", "twice", "seconds", "to read"):
            table.add_column(head, justify="right", no_wrap=True)
        for score in report.scores:
            table.add_row(score.agent, *_cells(score))
        self.console.print()
        self.console.print(table)
        self.console.print(
            "[dim]Every step meets one failure on purpose. wasted: calls whose failure had been announced;\n"
            "twice: things done once too often; to read: bytes of error text a model would have been given."
        )


def _cells(score: Score) -> tuple[str, ...]:
    whole = score.finished == len(score.deeds)
    return (
        f"[{'green' if whole else 'red'}]{score.finished} of {len(score.deeds)}",
        str(score.calls),
        f"[{'red' if score.wasted else 'green'}]{score.wasted}",
        f"[{'red' if score.duplicates else 'green'}]{score.duplicates}",
        f"{score.seconds:.1f}",
        str(score.read),
    )
