"""
Record `amends try` as an SVG image for the docs: python scripts/record_try.py

The frame is Rich's own; the references to web fonts are removed.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from amends.demo.comparison import compare
from amends.demo.view import Screen
from amends.recovery import set_hooks

PLACE = Path(__file__).resolve().parent.parent / "docs" / "images" / "try.svg"
WIDTH = 92


def main() -> None:
    """Run the demo once and save the terminal output as an SVG file."""
    set_hooks()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    screen = Screen(console)
    screen.show_results(compare(7, screen))
    picture = console.export_svg(title="make try", unique_id="try")
    PLACE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL))


if __name__ == "__main__":
    main()
