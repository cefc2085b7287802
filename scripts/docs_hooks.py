"""For `make docs`: the version in the footer, and previous and next pages outside the navigation. Named in mkdocs.yml."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# The page that lists the pages of a group → how their names begin.
GROUPS = {
    "api.md": "api/",
    "codes.md": "catalogue-",
    "dialects.md": "dialect-",
    "arcp.md": "arcp-",
    "tasks.md": "tasks-",
    "http-tutorial.md": "http-",
    "recovery-results.md": "recovery-",
    "decisions/index.md": "decisions/",
}


def on_config(config: Any) -> Any:
    """Write the version into the footer of every page."""
    names: dict[str, str] = {}
    exec((ROOT / "src" / "amends" / "_version.py").read_text(), names)
    config.copyright = f"amends {names['__version__']} · Apache-2.0"
    return config


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    r"""Return the text with `|` for `\|` in the code of tables: GitHub needs the backslash there, and Python-Markdown shows it."""
    return re.sub(
        r"^\|.*$",
        lambda row: re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), row[0]),
        markdown,
        flags=re.MULTILINE,
    )


def on_env(env: Any, *, config: Any, files: Any) -> None:
    """Link the pages of a group that the navigation does not list: from one to the next, the first from its list."""
    pages = {file.src_uri: file.page for file in files.documentation_pages()}
    listed = {uri for uri, page in pages.items() if page.previous_page or page.next_page}
    grouped = {hub: sorted(uri for uri in pages if uri.startswith(name)) for hub, name in GROUPS.items()}
    inner = {uri for members in grouped.values() for uri in members}
    others = sorted(set(pages) - listed - inner)  # linked from the first page
    for hub, members in [*grouped.items(), ("index.md", others)]:
        chain = [hub, *(uri for uri in members if uri not in listed and uri != hub)]
        if len(chain) > 1 and pages[hub].next_page is None:
            pages[hub].next_page = pages[chain[1]]
        for place, uri in enumerate(chain[1:], 1):
            pages[uri].previous_page = pages[chain[place - 1]]
            if place + 1 < len(chain):
                pages[uri].next_page = pages[chain[place + 1]]
