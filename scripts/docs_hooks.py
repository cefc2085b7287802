"""
For `make docs`; named in mkdocs.yml. The version in the footer, previous and next pages outside the navigation, and pages for phones.

On a phone a row of a wide table is shown as a list of its cells, each with the heading of its column (site.css), and a
drawing is replaced by its narrow version, if there is one. The flags of commands are marked, so that no line ends within one;
long codes in headings are broken after an underscore.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

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


# A flag of a command, such as --output, a bare -- or an arrow, in the text of an HTML element.
FLAG = re.compile(r"(?<![\w-])(?:--(?:[A-Za-z][\w-]*)?|-[A-Za-z][\w-]*|-&gt;)(?![\w-])(?![^<]*>)")
# An underscore between letters in the text of an HTML element, where a long code may be broken.
UNDERSCORE = re.compile(r"(?<=[A-Z])_(?=[A-Z])(?![^<]*>)")
# A phone shows about this many characters of a table beside each other.
PHONE_CHARACTERS = 44


class _TableCells(Treeprocessor):
    """
    Marks tables that are too wide for a phone (`data-stacked`), and writes the heading of its column into each of their cells.

    A table is too wide if the longest words of its columns, which are not broken, do not fit beside each other.
    """

    def run(self, root: Element) -> None:
        """Change the tables of a page."""
        for table in root.iter("table"):
            rows = [[cell for cell in row if cell.tag in {"th", "td"}] for row in table.iter("tr")]
            columns = list(zip(*([_text(cell) for cell in row] for row in rows), strict=False))
            if sum(2 + max(map(_longest_word, column)) for column in columns) > PHONE_CHARACTERS:
                table.set("data-stacked", "")
                for row in rows[1:]:
                    for cell, (heading, *_) in zip(row, columns, strict=False):
                        cell.set("data-label", heading)


def _text(cell: Element) -> str:
    return "".join(cell.itertext())


def _longest_word(text: str) -> int:
    return max(map(len, re.split(r"[\s-]", text)))


class _Tables(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name that Markdown calls
        """Register the processor, after the one for inline text (20)."""
        md.treeprocessors.register(_TableCells(md), "table_cells", 5)


def on_config(config: Any) -> Any:
    """Write the version into the footer of every page, and prepare tables for phones."""
    config.markdown_extensions.append(_Tables())
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


def on_page_content(html: str, *, page: Any, config: Any, files: Any) -> str:
    """Return the page with a second source for every drawing that has a narrow version (NAME-narrow.svg), marked flags and breakable codes."""

    def with_narrow(image: re.Match[str]) -> str:
        if not (ROOT / "docs" / "images" / f"{image['name']}-narrow.svg").exists():
            return image[0]
        narrow = f"{image['folder']}{image['name']}-narrow.svg"
        return f'<picture><source media="(max-width: 44.9em)" srcset="{narrow}">{image[0]}</picture>'

    html = re.sub(r'<img [^>]*src="(?P<folder>[^"]*images/)(?P<name>[\w-]+)\.svg"[^>]*>', with_narrow, html)
    html = re.sub(
        r"<h[23] .*?</h[23]>", lambda heading: UNDERSCORE.sub("_<wbr>", heading[0]), html, flags=re.DOTALL
    )
    return re.sub(
        r"<code\b.*?</code>",
        lambda code: FLAG.sub(r'<span class="flag">\g<0></span>', code[0]),
        html,
        flags=re.DOTALL,
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
