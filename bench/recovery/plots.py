"""Two plots: success against calls per success, and the fleet's goodput over time."""

from pathlib import Path

import matplotlib as mpl

from bench.recovery.experiment import Cell, goodput
from bench.recovery.registry import OURS
from bench.recovery.scenarios import SCENARIOS

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

PANELS = ("a", "b", "c", "d", "e", "f", "h")  # no operation succeeds in g
TICKS = (1, 2, 5, 10, 20, 50)
GOODPUT = ("no retry", "stamina", "redress", OURS, "oracle")


def success(cells: dict[tuple[str, str], Cell], contenders: list[str], path: Path) -> None:
    """Plot one panel for each scenario; up and to the left is better."""
    figure, axes = plt.subplots(2, 4, figsize=(16, 8), layout="constrained")
    markers = dict(zip(contenders, "osD^v<>PXh*dp8", strict=False))
    for scenario, axis in zip(PANELS, axes.flat, strict=False):
        for contender in contenders:
            if (scenario, contender) in cells:
                cell = cells[scenario, contender]
                across, up = cell.get("calls/success"), cell.get("success")
                axis.errorbar(
                    across.mean,
                    up.mean,
                    up.half,
                    across.half,
                    fmt=markers[contender],
                    label=contender,
                    ms=8,
                    alpha=0.8,
                )
        axis.set_title(f"{scenario}: {SCENARIOS[scenario].title}")
        axis.set_xscale("log")
        axis.set_xlim(0.9, 80)
        axis.set_xticks(TICKS, [str(tick) for tick in TICKS])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_ylim(0, 105)
        axis.grid(alpha=0.3, which="both")
        axis.set_xlabel("calls per success")
        axis.set_ylabel("success %")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    axes.flat[-1].axis("off")
    axes.flat[-1].legend(handles, labels, loc="center")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def fleet(path: Path, seed: int = 0) -> None:
    """Plot the successes per second of one run of h."""
    figure, axis = plt.subplots(figsize=(11, 5), layout="constrained")
    for contender in GOODPUT:
        series = goodput("h", contender, seed)
        smooth = [
            sum(series[max(0, at - 2) : at + 1]) / len(series[max(0, at - 2) : at + 1])
            for at in range(len(series))
        ]
        axis.plot(smooth, label=contender, lw=2.5 if contender == OURS else 1.2)
    axis.axvspan(20, 30, color="0.9", label="server at a quarter of its speed")
    axis.set_xlabel("seconds")
    axis.set_ylabel("operations succeeded per second (mean of 3 s)")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=90)
    plt.close(figure)
