"""Run the comparison: `python -m bench.recovery`. A full run writes docs/recovery-results.md and its plots."""

import argparse
import time
from pathlib import Path

from bench.recovery.experiment import Kept, experiment
from bench.recovery.registry import CONTENDERS, OURS
from bench.recovery.report import against_published, details, document, goals, headline, versus_no_retry
from bench.recovery.scenarios import SCENARIOS, variations

QUICK_SEEDS, SEEDS = 3, 20
FLEET_VARIATION_SEEDS = 3
DOCS = Path(__file__).resolve().parents[2] / "docs"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.recovery", description=__doc__)
    parser.add_argument("--scenarios", help="comma-separated, of: " + ", ".join(SCENARIOS))
    parser.add_argument("--contenders", help="comma-separated, of: " + ", ".join(CONTENDERS))
    parser.add_argument("--seeds", type=int, help=f"runs of each pair (default {SEEDS})")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_SEEDS} seeds, no variations, write nothing"
    )
    parser.add_argument(
        "--full", action="store_true", help="all seeds also for slow contenders in the fleet scenario"
    )
    parser.add_argument("--no-variations", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument(
        "--out", type=Path, help="folder for the page and plots (default docs/ for a complete run)"
    )
    parser.add_argument("--keep", type=Path, help="file of runs to reuse and to add to")
    parser.add_argument(
        "--fresh",
        default=OURS,
        help=f"comma-separated contenders to run again although kept (default {OURS})",
    )
    return parser.parse_args()


def chosen(given: str | None, known: dict) -> list[str]:
    names = [name.strip() for name in given.split(",")] if given else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    return names


def main() -> None:
    options = arguments()
    scenarios = chosen(options.scenarios, SCENARIOS)
    contenders = chosen(options.contenders, CONTENDERS)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    kept = Kept(options.keep, options.fresh.split(","))
    again = {"jobs": options.jobs, "full": options.full, "kept": kept}
    started = time.perf_counter()
    cells = experiment(scenarios, contenders, seeds, **again)
    print(headline(cells, contenders), end="\n\n")
    for scenario in scenarios:
        print(
            f"{scenario}: {SCENARIOS[scenario].title}\n\n{details(cells, scenario, contenders)}", end="\n\n"
        )
    if not (options.quick or options.no_variations):
        varied = [
            scenario.name for scenario in variations() if scenario.name[0] in {name[0] for name in scenarios}
        ]
        pair = [name for name in ("no retry", OURS) if name in contenders]
        fleet = [name for name in varied if name.startswith("h")]
        cells |= experiment([name for name in varied if name not in fleet], pair, seeds, **again)
        cells |= experiment(fleet, pair, min(seeds, FLEET_VARIATION_SEEDS), **again)
    print(f"Against no retry\n\n{versus_no_retry(cells)}", end="\n\n")
    print(f"Against the published rows\n\n{against_published(cells)}", end="\n\n")
    print(f"Goals\n\n{goals(cells)}", end="\n\n")
    complete = not (options.quick or options.no_variations or options.scenarios or options.contenders)
    out = options.out or (DOCS if complete else None)
    if out is not None:
        from bench.recovery import plots

        images = out / "images"
        images.mkdir(parents=True, exist_ok=True)
        (out / "recovery-results.md").write_text(document(cells, contenders, seeds))
        plots.success(cells, contenders, images / "recovery-success.svg")
        plots.fleet(images / "recovery-goodput.svg")
        print("written: recovery-results.md and two plots")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
