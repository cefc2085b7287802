"""Shows the comparison on a terminal: every call that a service received, every decision, and a table of scores."""

from __future__ import annotations

from typing import Any

from amends.core.decision import REASONS
from amends.demo.call_record import Call
from amends.demo.comparison import Observer, Report, Score, StepResult
from amends.demo.scenario import STEPS, InvalidChoice, LostResponse, PlannedFailure, RateLimit
from amends.recovery import Event

__all__ = ["Screen"]

_STEPS = {step.name: step for step in STEPS}

# How each service reports a failure, in its own dialect.
_FAILURE_TEXTS: dict[str, dict[type[PlannedFailure], str]] = {
    "HTTP API": {
        RateLimit: "429 problem+json, Retry-After {seconds:g}",
        LostResponse: "connection lost before the response",
    },
    "command": {RateLimit: "exit 9, envelope RATE_LIMITED, retry_after_ms {ms:.0f}"},
    "MCP server": {
        RateLimit: "isError, adcp_error RATE_LIMITED, retry_after {seconds:g}",
        InvalidChoice: "isError, adcp_error VALIDATION_ERROR, field time",
    },
    "A2A agent": {RateLimit: "task failed, adcp_error RATE_LIMITED, retry_after {seconds:g}"},
    "ARCP runtime": {LostResponse: "websocket lost before job.result"},
}


class Screen(Observer):
    """Prints the comparison with Rich."""

    def __init__(self, console: Any) -> None:
        self.console = console

    def agent_started(self, name: str) -> None:
        """Print the agent's name as a heading."""
        self.console.print()
        self.console.rule(f"[bold]{name}", align="left")

    def step_started(self, name: str) -> None:
        """Print the step's title and service."""
        step = _STEPS[name]
        self.console.print(f"[bold]{step.title}[/] [dim]({step.service})")

    def call_received(self, call: Call) -> None:
        """Print the service's response to the call."""
        service = _STEPS[call.step].service
        if call.failure is None:
            self.console.print(f"  call {call.number} [green]succeeded")
            return
        seconds = getattr(call.failure, "seconds", 0.0)
        text = _FAILURE_TEXTS[service][type(call.failure)].format(seconds=seconds, ms=seconds * 1000)
        wasted = " [red]wasted" if call.wasted else ""
        self.console.print(f"  call {call.number} [yellow]{text}[/]{wasted}")

    def recovery_event(self, event: Event) -> None:
        """Print a decision of amends. "recovered" is left out, because the end of the step shows it."""
        if event.kind == "recovered":
            return
        wait = f" in {event.delay:.1f} s" if event.delay else ""
        action = "ask the model" if event.reason == "correctable" else f"{event.kind}{wait}"
        self.console.print(f"    [cyan]{action}[/] [dim]{REASONS.get(event.reason, event.reason)}")

    def step_finished(self, result: StepResult) -> None:
        """Print how the step ended."""
        repeated = f" [red]{result.effects} times[/]" if result.effects > 1 else ""
        if result.done:
            self.console.print(f"  [green]done[/]{repeated} [dim]{result.seconds:.1f} s")
        else:
            self.console.print(
                f"  [red]not done[/]: {result.error or 'no result'}, {result.read} bytes for the model to read"
            )

    def show_scores(self, report: Report) -> None:
        """Print the table of scores."""
        from rich.table import Table

        table = Table(title=f"Three agents with the same job (seed {report.seed})", title_justify="left")
        table.add_column("", no_wrap=True)
        for head in ("finished", "calls", "wasted", "duplicates", "seconds", "bytes read"):
            table.add_column(head, justify="right", no_wrap=True)
        for score in report.scores:
            table.add_row(score.agent, *_cells(score))
        self.console.print()
        self.console.print(table)
        self.console.print(
            "[dim]Every step has a planned failure. wasted: calls that a service had announced would fail;\n"
            "duplicates: effects that happened twice; bytes read: error text a model would have to read."
        )


def _cells(score: Score) -> tuple[str, ...]:
    complete = score.finished == len(score.steps)
    return (
        f"[{'green' if complete else 'red'}]{score.finished} of {len(score.steps)}",
        str(score.calls),
        f"[{'red' if score.wasted else 'green'}]{score.wasted}",
        f"[{'red' if score.duplicates else 'green'}]{score.duplicates}",
        f"{score.seconds:.1f}",
        str(score.read),
    )
