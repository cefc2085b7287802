"""
Record `amends try` as a picture for the docs: python scripts/record_try.py

Rich's own frame, without the fonts it would fetch from elsewhere.
"""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path

from rich.console import Console

from amends.demo.comparison import perform
from amends.demo.view import Screen
from amends.recovery import set_hooks

PLACE = Path(__file__).resolve().parent.parent / "docs" / "images" / "try.svg"
WIDTH = 92


def main() -> None:
    """Run the show once and write down what it looked like."""
    set_hooks()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    screen = Screen(console)
    screen.end(asyncio.run(perform(7, screen)))
    picture = console.export_svg(title="make try", unique_id="try")
    PLACE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL))


if __name__ == "__main__":
    main()
