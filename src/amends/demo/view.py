"""Shows the comparison on a terminal: every call that a service received, every decision, and a table of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amends.core.decision import REASONS
from amends.demo.call_record import Call
from amends.demo.comparison import Observer, Report, Score, StepResult
from amends.demo.scenario import STEPS, InvalidChoice, LostResponse, PlannedFailure, RateLimit
from amends.recovery import Event

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Screen"]

_STEPS = {step.name: step for step in STEPS}

NEXT = "decode a failure of your own: curl -si URL | amends decode"

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

    def __init__(self, console: Console) -> None:
        self.console = console
        self._calls = 0
        self._decisions = 0
        self._held: list[Event] = []
        """Decisions about calls that the services' process has not reported yet."""

    def services_starting(self) -> None:
        """Print that the services are being started, which takes a few seconds."""
        self.console.print("[dim]Starting five services on this machine …")

    def agent_started(self, name: str) -> None:
        """Print the agent's name as a heading."""
        self.console.print()
        self.console.rule(f"[bold]{name}", align="left")

    def step_started(self, name: str) -> None:
        """Print the step's title and service."""
        step = _STEPS[name]
        self._calls = self._decisions = 0
        self.console.print(f"[bold]{step.title}[/] [dim]({step.service})")

    def call_received(self, call: Call) -> None:
        """Print the service's response to the call, and the decisions that followed it."""
        self._print_call(call)
        self._calls += 1
        self._print_held()

    def _print_call(self, call: Call) -> None:
        service = _STEPS[call.step].service
        if call.failure is None:
            self.console.print(f"  call {call.number} [green]succeeded")
            return
        seconds = getattr(call.failure, "seconds", 0.0)
        text = _FAILURE_TEXTS[service][type(call.failure)].format(seconds=seconds, ms=seconds * 1000)
        wasted = " [red]wasted" if call.wasted else ""
        self.console.print(f"  call {call.number} [yellow]{text}[/]{wasted}")

    def recovery_event(self, event: Event) -> None:
        """Print a decision of amends after the call that it follows. The end of the step shows "recovered"."""
        if event.kind != "recovered":
            self._held.append(event)
            self._print_held()

    def _print_held(self) -> None:
        """Print the decisions whose calls were printed. Calls arrive through a pipe, decisions at once."""
        while self._held and self._decisions < self._calls:
            self._decisions += 1
            self._print_decision(self._held.pop(0))

    def _print_decision(self, event: Event) -> None:
        wait = f" in {event.delay:.1f} s" if event.delay else ""
        action = "ask the model" if event.reason == "correctable" else f"{event.kind}{wait}"
        self.console.print(f"    [cyan]{action}[/]: [dim]{REASONS.get(event.reason, event.reason)}")

    def client_recovered(self, how: str) -> None:
        """Print what a client did by itself, without a decision of recovery."""
        self.console.print(f"    [cyan]{how}")

    def step_finished(self, result: StepResult) -> None:
        """Print how the step ended."""
        for event in self._held:
            self._print_decision(event)
        self._held.clear()
        repeated = f" [red]{result.effects} times[/]" if result.effects > 1 else ""
        if result.done:
            self.console.print(f"  [green]done[/]{repeated} [dim]{result.seconds:.1f} s")
        else:
            self.console.print(
                f"  [red]not done[/]: {result.error or 'no result'}, {result.read} bytes for the model to read"
            )

    def show_scores(self, report: Report) -> None:
        """Print the table of scores."""
        from rich import box
        from rich.table import Table

        # A simple box, so that the table fits into 80 columns.
        table = Table(
            title=f"Three agents with the same job (seed {report.seed})",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        table.add_column("", no_wrap=True)
        for head in ("finished", "calls", "wasted", "duplicates", "seconds", "bytes read"):
            table.add_column(head, justify="right", no_wrap=True)
        for score in report.scores:
            table.add_row(score.agent, *_cells(score))
        self.console.print()
        self.console.print(table)
        self.console.print(
            "[dim]Every step has a planned failure. wasted: calls that a service had announced would fail; "
            "duplicates: effects that happened twice; bytes read: error text a model would have to read."
        )
        self.console.print(f"\nnext: {NEXT}")


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
