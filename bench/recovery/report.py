"""The results as Markdown. Every figure comes from the cells."""

import math
from collections.abc import Iterable

from bench.recovery.experiment import Cell
from bench.recovery.metrics import Estimate, estimate
from bench.recovery.published import GOALS, PUBLISHED, REASONS, agrees
from bench.recovery.registry import CONTENDERS, OURS
from bench.recovery.scenarios import SCENARIOS, variations

Cells = dict[tuple[str, str], Cell]

# The metrics of each scenario in the first table, as in the published table.
HEADLINE = {
    "a": ("success", "calls/success"),
    "b": ("success", "calls/success"),
    "c": ("success", "calls/success"),
    "d": ("wasted",),
    "e": ("success",),
    "f": ("success", "duplicates"),
    "f+ignored": ("success", "duplicates"),
    "f+verify": ("success", "duplicates"),
    "g": ("blocked",),
    "h": ("success", "goodput after"),
}
UNITS = {"success": " %", "p50": " s", "p99": " s", "to failure": " s", "blocked": " s", "recovery": " s"}


def number(value: float) -> str:
    """Format a number with at most three significant digits."""
    if math.isnan(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def figure(measured: Estimate) -> str:
    """Format the mean and half the 95 % interval; without the interval if all seeds have the same value."""
    if math.isnan(measured.mean):
        return "–"
    if measured.half < 0.005 or math.isnan(measured.half):
        return number(measured.mean)
    return f"{number(measured.mean)} ± {number(measured.half)}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(list(head))]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def headline(cells: Cells, contenders: list[str]) -> str:
    """Return the first table, in the shape of the published one: one row for each contender."""
    present = [name for name in HEADLINE if any(key[0] == name for key in cells)]
    head = ["", *(f"{name} {SCENARIOS[name].title}: {' / '.join(HEADLINE[name])}" for name in present)]
    rows = [
        [
            contender,
            *(
                " / ".join(figure(cells[name, contender].get(metric)) for metric in HEADLINE[name])
                if (name, contender) in cells
                else ""
                for name in present
            ),
        ]
        for contender in contenders
    ]
    return table(head, rows)


def details(cells: Cells, scenario: str, contenders: list[str]) -> str:
    """Return the table of all metrics of one scenario."""
    shown = [*SCENARIOS[scenario].shown]
    shown += [metric for metric in ("to failure", "doomed") if metric not in shown]
    head = ["", *(f"{metric}{UNITS.get(metric, '')}" for metric in shown), "seeds"]
    rows = [
        [
            contender,
            *(figure(cells[scenario, contender].get(metric)) for metric in shown),
            str(len(cells[scenario, contender].runs)),
        ]
        for contender in contenders
        if (scenario, contender) in cells
    ]
    return table(head, rows)


def goals(cells: Cells) -> str:
    """Return the table of our goals."""
    rows = []
    for goal in GOALS:
        if (goal.scenario, OURS) in cells:
            measured = cells[goal.scenario, OURS].get(goal.metric)
            wanted = f"{goal.sense} {goal.value:g}{UNITS.get(goal.metric, '')}"
            rows.append(
                [
                    goal.scenario,
                    goal.metric,
                    wanted,
                    figure(measured),
                    "yes" if goal.met(measured) else "**no**",
                ]
            )
    return table(["scenario", "", "wanted", "measured", "met"], rows)


def against_published(cells: Cells) -> str:
    """Return the table of measured and published figures, with the reason where they differ."""
    rows = []
    for contender, scenarios in PUBLISHED.items():
        for scenario, figures in scenarios.items():
            if (scenario, contender) not in cells:
                continue
            for metric, published in figures.items():
                measured = cells[scenario, contender].get(metric)
                off = "" if not published else f"{100 * (measured.mean / published - 1):+.0f} %"
                fine = agrees(published, measured)
                differs = bool(published) and abs(measured.mean / published - 1) > 0.05
                reason = REASONS.get((scenario, metric), "") if differs or not fine else ""
                rows.append(
                    [
                        contender,
                        scenario,
                        metric,
                        f"{published:g}",
                        figure(measured),
                        off,
                        "yes" if fine else "**no**",
                        reason,
                    ]
                )
    return table(["contender", "scenario", "", "published", "measured", "off by", "agrees", "why"], rows)


def versus_no_retry(cells: Cells) -> str:
    """Return the table of ours and no retry in every scenario and variation."""
    rows = []
    for name in [*SCENARIOS, *(scenario.name for scenario in variations())]:
        if (name, OURS) not in cells or (name, "no retry") not in cells:
            continue
        ours, plain = cells[name, OURS], cells[name, "no retry"]
        verdict = "yes" if not_worse(ours, plain) else "**no**"
        measured = [
            figure(cell.get(metric))
            for metric in ("success", "calls/success", "p99", "duplicates")
            for cell in (plain, ours)
        ]
        rows.append([name, *measured, str(len(ours.runs)), verdict])
    head = ["scenario", "success %: none", "ours", "calls/success: none", "ours", "p99 s: none", "ours"]
    return table([*head, "duplicates: none", "ours", "seeds", "not worse"], rows)


def not_worse(ours: Cell, plain: Cell) -> bool:
    """
    Return whether ours has at least the success and at most the duplicates, within the interval of the differences.

    The comparison is seed by seed, because both had the same arrivals and random numbers.
    """
    pairs = list(zip(ours.runs, plain.runs, strict=True))
    success = estimate([mine["success"] - theirs["success"] for mine, theirs in pairs])
    duplicates = estimate([mine["duplicates"] - theirs["duplicates"] for mine, theirs in pairs])
    return success.mean + success.half >= 0 and duplicates.mean - duplicates.half <= 0


def configurations(contenders: list[str]) -> str:
    return table(["contender", "configuration"], ([name, CONTENDERS[name].note] for name in contenders))


def summary(cells: Cells, contenders: list[str]) -> str:
    """Return the paragraph that says what was compared and what came out."""
    others = [name for name in contenders if name not in {OURS, "oracle"}]
    parts = [
        f"{len(others)} ways to retry, amends, and an oracle as the upper bound call the same simulated services.",
        "A point further up ends more operations, one further left needs fewer calls for it.",
    ]
    for scenario in ("b", "h"):
        present = [name for name in others if (scenario, name) in cells]
        if present and (scenario, OURS) in cells:
            best = max(present, key=lambda name: cells[scenario, name].get("success").mean)
            ours, theirs = (number(cells[scenario, name].get("success").mean) for name in (OURS, best))
            parts.append(
                f"{SCENARIOS[scenario].title.capitalize()}: amends {ours} % success, the next best {theirs} % ({best})."
            )
    return " ".join(parts)


def losses(cells: Cells, contenders: list[str]) -> str:
    """Return the list of scenarios in which another contender is better, and of missed targets."""
    lines = []
    for name in (each for each in SCENARIOS if (each, OURS) in cells):
        others = [
            (each, cells[name, each])
            for each in contenders
            if each not in {OURS, "oracle"} and (name, each) in cells
        ]
        lines += [f"{name}, {SCENARIOS[name].title}: {each}" for each in _behind(cells[name, OURS], others)]
    waits = [
        f"{number(cells[name, OURS].get('p50').mean)} s in {name}"
        for name in SCENARIOS
        if (name, OURS) in cells and cells[name, OURS].get("p50").mean > 1
    ]
    if waits:
        lines.append(f"Operations wait: the median time of a success is {', '.join(waits)}")
    for goal in GOALS:
        if (goal.scenario, OURS) in cells and not goal.met(cells[goal.scenario, OURS].get(goal.metric)):
            unit = UNITS.get(goal.metric, "")
            lines.append(
                f"{goal.scenario}, {SCENARIOS[goal.scenario].title}: {goal.metric} is "
                f"{figure(cells[goal.scenario, OURS].get(goal.metric))}{unit}; the target is {goal.sense} {goal.value:g}{unit}"
            )
    lines.append("[Other regimes](recovery-regimes.md), those in which amends loses first")
    return "\n".join(f"- {each}." for each in lines)


def _behind(ours: Cell, others: list[tuple[str, Cell]]) -> Iterable[str]:
    """Yield where others have more success by over one point, or as much of it and a shorter p99 by over one second."""
    success, p99 = ours.get("success").mean, ours.get("p99").mean
    ahead = [
        f"{name} {number(cell.get('success').mean)} % with {number(cell.get('duplicates').mean)}"
        for name, cell in others
        if cell.get("success").mean > success + 1
    ]
    if ahead:
        duplicates = number(ours.get("duplicates").mean)
        yield f"{number(success)} % success with {duplicates} duplicates; {', '.join(ahead)}"
    quicker = [
        f"{name} {number(cell.get('p99').mean)} s"
        for name, cell in others
        if cell.get("success").mean > success - 1
        and cell.get("duplicates").mean <= ours.get("duplicates").mean
        and cell.get("p99").mean < p99 - 1
    ]
    if quicker:
        yield f"99 % of the successes take up to {number(p99)} s; {', '.join(quicker)}"


def document(cells: Cells, contenders: list[str], seeds: int) -> str:
    """Return the whole page."""
    parts = [
        "# Recovery: results",
        summary(cells, contenders),
        "![Success against calls per success](images/recovery-success.svg)",
        "## The contenders",
        configurations(contenders),
        "## Where amends loses",
        losses(cells, contenders),
        "## All scenarios",
        "Generated by `python -m bench.recovery`. [The recovery simulator](recovery-simulator.md) describes the method.",
        (
            f"Means over up to {seeds} seeds ± half a 95 % interval. The seeds used for tuning are not included. "
            "Fleets of other sizes, lasting overloads, tenants and other regimes are in "
            "[Recovery outside the scenarios](recovery-regimes.md), those in which amends loses first."
        ),
        headline(cells, contenders),
        "## Targets",
        goals(cells),
        "## The fleet over time",
        "![Goodput of the fleet over time](images/recovery-goodput.svg)",
        "## Results per scenario",
    ]
    for scenario in SCENARIOS:
        if any(key[0] == scenario for key in cells):
            parts += [f"### {scenario}: {SCENARIOS[scenario].title}", details(cells, scenario, contenders)]
    parts += [
        "## Comparison with no retry, including variations",
        versus_no_retry(cells),
        "## Comparison with published figures",
        "Figures agree if they differ by at most 10 %, two standard errors or the rounding of the published figure.",
        against_published(cells),
    ]
    return "\n\n".join(parts) + "\n"
