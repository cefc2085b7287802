"""Every example in the README and the docs runs and prints the output shown."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import amends
from tests.fork_server import Forks

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FORKS = Forks("-W", "error")
# Pages whose examples need servers or helpers; other test modules run them.
TESTED_ELSEWHERE = {
    "recovery.md",
    "coming-from-retry-libraries.md",
    "stores.md",
    "security.md",
    "foreign.md",
    "vectors.md",
    "sdks.md",
}


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def expected(block: str, mark: str = "#> ") -> str:
    """Return the output shown in a block: `#> ` for stdout, `#! ` for stderr."""
    return "".join(line.removeprefix(mark) + "\n" for line in block.splitlines() if line.startswith(mark))


def exit_status(block: str) -> int:
    """Return the exit status that a comment in the block announces, otherwise 0."""
    found = re.search(r"  # exit (\d+)", block)
    return int(found[1]) if found else 0


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(page, block, id=f"{page.name}-{number}")
        for page in PAGES
        if page.name not in TESTED_ELSEWHERE
        for number, block in enumerate(blocks(page), 1)
    ],
)
def test_examples_print_the_output_shown(page, block):
    """Each block runs in a process of its own and prints its `#>` and `#!` lines."""
    done = FORKS.run(block)
    assert done.returncode == exit_status(block), done.stderr.decode()
    assert done.stdout.decode() == expected(block)
    assert expected(block, "#! ") in done.stderr.decode()


def test_every_public_name_is_documented_with_an_example():
    """An example on some page uses each name of the top-level package."""
    code = "\n".join(block for page in PAGES for block in blocks(page))
    missing = [
        name for name in amends.__all__ if not name.startswith("__") and not re.search(rf"\b{name}\b", code)
    ]
    assert not missing


def test_pages_link_to_pages_that_exist():
    """No link inside the repository is broken."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_generated_tables_are_up_to_date():
    """The generated tables in the docs are what `make generate` writes."""
    script = ROOT / "scripts" / "generate_docs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_check_finds_a_changed_table(tmp_path):
    """`--check` prints the name of a page whose table differs."""
    (tmp_path / "page.md").write_text("<!-- made: crosswalk -->\nan old table\n<!-- end -->\n")
    script = ROOT / "scripts" / "generate_docs.py"
    done = subprocess.run(
        [sys.executable, script, "--check", tmp_path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "page.md\n")


def test_the_navigation_is_short():
    """At most 32 entries, each an existing page."""
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2].partition("\nnot_in_nav:")[0]
    pages = re.findall(r": (\S+\.md)$", text, re.MULTILINE)
    assert 10 < len(pages) <= 32
    assert all((ROOT / "docs" / page).exists() for page in pages)


def test_every_page_can_be_reached():
    """Starting at the index, links and the navigation lead to every page."""
    docs = ROOT / "docs"
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    seen: set[Path] = set()
    ahead = [docs / "index.md", *(docs / page for page in listed)]
    while ahead:
        page = ahead.pop().resolve()
        if page in seen or not page.exists():
            continue
        seen.add(page)
        ahead += [page.parent / link for link in re.findall(r"\]\(([^)#:]+\.md)", page.read_text())]
    assert {path.resolve() for path in docs.rglob("*.md")} - seen == set()


def test_signatures_show_short_defaults():
    """`help` of a public function shows `policy=Policy()`, not every field of the default."""
    for name in amends.__all__:
        value = getattr(amends, name)
        if inspect.isfunction(value):
            for parameter in inspect.signature(value).parameters.values():
                assert len(repr(parameter.default)) < 40, (name, parameter.name)
