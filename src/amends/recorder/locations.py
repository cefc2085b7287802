"""Where events are recorded if no store is named."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

__all__ = ["ENVIRONMENT", "default_url"]

ENVIRONMENT = "AMENDS_RECORD"


def default_url() -> str:
    """
    Return the store of the environment variable AMENDS_RECORD, else a file among the user's state.

    `amends gateway`, `amends trace` and `amends watch` use it if no store is named, so that they show the same events.

        amends.record(default_url())     # `amends watch` without arguments shows these events
    """
    given = os.environ.get(ENVIRONMENT, "").strip()
    if given:
        return given
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return f"sqlite:///{quote(str(Path(base) / 'amends' / 'record.db'))}"
