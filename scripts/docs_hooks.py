"""For `make docs`: the version in the footer. Named in mkdocs.yml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def on_config(config: Any) -> Any:
    """Write the version into the footer of every page."""
    names: dict[str, str] = {}
    exec((ROOT / "src" / "amends" / "_version.py").read_text(), names)
    config.copyright = f"amends {names['__version__']} · Apache-2.0"
    return config
