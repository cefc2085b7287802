"""Two plots as SVG: success against calls per success, and the fleet's goodput over time. They follow the reader's colour scheme."""

import math
from collections.abc import Iterable
from html import escape
from pathlib import Path

from bench.recovery.experiment import Cell, goodput
from bench.recovery.registry import OURS
from bench.recovery.scenarios import SCENARIOS

PANELS = ("a", "b", "c", "d", "e", "f", "h")  # no operation succeeds in g
TICKS = (1, 2, 5, 10, 20, 50)
GOODPUT = ("no retry", "stamina", "redress", OURS, "oracle")
# Readable on a light and on a dark background.
COLOURS = (
    *("#6e7781", "#e16f24", "#b35900", "#e5534b", "#c93c5a", "#a371f7", "#8250df"),
    *("#d4a72c", "#0a8f8f", "#2f81f7", "#54aeff", "#2da44e", "#768390"),
)
MARKS = {
    "circle": '<circle r="4.5"/>',
    "square": '<path d="M-4-4H4V4H-4z"/>',
    "diamond": '<path d="M0-5.5 5.5 0 0 5.5-5.5 0z"/>',
    "up": '<path d="M0-5.5 5 4H-5z"/>',
    "down": '<path d="M0 5.5 5-4H-5z"/>',
}
STYLE = """<style>
rect.page{fill:#fff}text{fill:#1f2328}.grid{stroke:#d0d7de;fill:none}.span{fill:#eaeef2}
@media (prefers-color-scheme: dark){rect.page{fill:#1e2129}text{fill:#d7dbe0}.grid{stroke:#444c56}.span{fill:#2d333b}}
</style>"""


def success(cells: dict[tuple[str, str], Cell], contenders: list[str], path: Path) -> None:
    """Plot one panel for each scenario; up and to the left is better."""
    points = {
        scenario: [
            (name, cells[scenario, name].get("calls/success").mean, cells[scenario, name].get("success").mean)
            for name in contenders
            if (scenario, name) in cells
        ]
        for scenario in PANELS
    }
    path.write_text(success_svg(points, contenders))
    # The documentation shows this one on phones.
    path.with_stem(f"{path.stem}-narrow").write_text(success_svg(points, contenders, columns=2))


def success_svg(
    points: dict[str, list[tuple[str, float, float]]], contenders: list[str], *, columns: int = 4
) -> str:
    """Return the panels for points of (contender, calls per success, success in percent), and the legend after the last one."""
    marks = {name: _mark(index, name) for index, name in enumerate(contenders)}
    places = [(45 + index % columns * 255, 30 + index // columns * 250) for index in range(len(PANELS) + 1)]
    parts = []
    for (left, top), scenario in zip(places, PANELS, strict=False):
        parts.append(f'<g transform="translate({left},{top})">')
        parts.append(
            f'<text x="100" y="-10" text-anchor="middle">{scenario}: {SCENARIOS[scenario].title}</text>'
        )
        parts += [_across(tick) for tick in TICKS]
        parts += [
            f'<path class="grid" d="M0 {_up(tick):g}H205"/><text x="-6" y="{_up(tick) + 4:g}" text-anchor="end">{tick}</text>'
            for tick in (0, 20, 40, 60, 80, 100)
        ]
        # Ours is drawn last, above the others.
        for name, across, up in sorted(points[scenario], key=lambda point: point[0] == OURS):
            parts.append(f'<g transform="translate({_log(across):.1f},{_up(up):.1f})">{marks[name]}</g>')
        parts.append('<text x="102" y="218" text-anchor="middle">calls per success</text></g>')
    parts.append('<text transform="translate(12,290) rotate(-90)" text-anchor="middle">success, %</text>')
    left, top = places[-1]
    for index, name in enumerate(contenders):
        weight = ' font-weight="bold"' if name == OURS else ""
        parts.append(
            f'<g transform="translate({left + 40},{top + 10 + index * 17})">{marks[name]}'
            f'<text x="14" y="4"{weight}>{escape(name)}</text></g>'
        )
    return _svg(40 + columns * 255, top + 235, parts, font_size=11 if columns > 2 else 14)


def fleet(path: Path, seed: int = 0) -> None:
    """Plot the successes per second of one run of h."""
    path.write_text(fleet_svg({contender: goodput("h", contender, seed) for contender in GOODPUT}))


def fleet_svg(series: dict[str, list[int]]) -> str:
    """Return one line for each contender, a mean of three seconds."""
    length = max(map(len, series.values()))
    top = 20 * math.ceil(max(map(max, series.values())) / 20)
    wide, high = 720 / length, 260 / top
    parts = [
        '<g transform="translate(50,15)">',
        f'<rect class="span" x="{20 * wide:.1f}" width="{10 * wide:.1f}" height="260"/>',
        f'<text x="{25 * wide:.1f}" y="-4" text-anchor="middle">server at a quarter of its speed</text>',
    ]
    for tick in range(0, top + 1, 20):
        at = 260 - tick * high
        parts.append(
            f'<path class="grid" d="M0 {at:.1f}H720"/><text x="-6" y="{at + 4:.1f}" text-anchor="end">{tick}</text>'
        )
    for tick in range(0, length + 1, 20):
        parts.append(f'<text x="{tick * wide:.1f}" y="276" text-anchor="middle">{tick}</text>')
    for index, (name, values) in enumerate(series.items()):
        colour = {"no retry": "#6e7781", "stamina": "#e5534b", "redress": "#d4a72c", OURS: "#2da44e"}.get(
            name, "#2f81f7"
        )
        smooth = [
            sum(near) / len(near) for near in (values[max(0, at - 2) : at + 1] for at in range(len(values)))
        ]
        line = " ".join(f"{at * wide:.1f},{260 - value * high:.1f}" for at, value in enumerate(smooth))
        width = 2.5 if name == OURS else 1.4
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" points="{line}"/>')
        parts.append(
            f'<path stroke="{colour}" stroke-width="3" d="M{index * 120} 308h18"/><text x="{index * 120 + 24}" y="312">{name}</text>'
        )
    parts.append('<text x="360" y="292" text-anchor="middle">seconds</text></g>')
    parts.append(
        '<text transform="translate(12,145) rotate(-90)" text-anchor="middle">successes per second (mean of 3 s)</text>'
    )
    return _svg(790, 340, parts)


def _svg(width: int, height: int, parts: Iterable[str], *, font_size: int = 11) -> str:
    """Return the document, with a background of its own: a page's colours may differ from those of the system."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="{font_size}">'
    )
    return (
        "\n".join(
            [head, STYLE, f'<rect class="page" width="{width}" height="{height}" rx="4"/>', *parts, "</svg>"]
        )
        + "\n"
    )


def _mark(index: int, name: str) -> str:
    shape = list(MARKS.values())[index % len(MARKS)]
    size = ' transform="scale(1.5)"' if name == OURS else ""
    return f'<g fill="{COLOURS[index % len(COLOURS)]}" fill-opacity="0.85"{size}>{shape}</g>'


def _across(tick: int) -> str:
    at = _log(tick)
    return f'<path class="grid" d="M{at:.1f} 0V190"/><text x="{at:.1f}" y="204" text-anchor="middle">{tick}</text>'


def _log(calls: float) -> float:
    """Return the place of a number of calls: 0.9 to 80 on a logarithmic scale."""
    return 205 * math.log(max(calls, 0.9) / 0.9) / math.log(80 / 0.9)


def _up(percent: float) -> float:
    return 190 - 190 * percent / 105
