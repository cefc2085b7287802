"""The README's recipes in new environments that have only what the text before them installs."""

import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.test_docs import exit_status, expected

README = Path(__file__).parents[1] / "README.md"


def recipes():
    """Return the Python blocks, each with the packages that the text since the block before names."""
    found = []
    for text, block in re.findall(
        r"(.*?)^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE
    ):
        lines = re.findall(r"pip install ([^`\n]+)", text)
        found.append((tuple(shlex.split(lines[-1])) if lines else ("amends",), block))
    return found


RECIPES = recipes()


def test_every_recipe_prints_something():
    """A reader who pastes a recipe sees output."""
    assert len(RECIPES) > 5
    for packages, block in RECIPES:
        assert any(each.startswith("amends") for each in packages), packages
        assert expected(block) or expected(block, "#! "), block


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built as for a release."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, folder], cwd=README.parent, capture_output=True, check=True)
    return next(folder.glob("*.whl"))


def run_as_pasted(packages, block, wheel, folder):
    """Install the packages into a new environment, and run the block there in an empty folder."""
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    wanted = [re.sub(r"^amends\b", str(wheel), each) for each in packages]
    subprocess.run([python, "-m", "pip", "install", "-q", *wanted], capture_output=True, check=True)
    (folder / "empty").mkdir()
    program = folder / "empty" / "recipe.py"
    program.write_text(block)
    return subprocess.run(
        [python, program], cwd=program.parent, capture_output=True, text=True, check=False, timeout=120
    )


def check(done, block):
    assert done.returncode == exit_status(block), done.stderr
    assert done.stdout == expected(block)
    assert expected(block, "#! ") in done.stderr


def test_the_first_recipe_needs_no_extra(wheel, tmp_path):
    """The code of the first screen runs with `pip install amends` alone."""
    packages, block = RECIPES[0]
    assert packages == ("amends",)
    check(run_as_pasted(packages, block, wheel, tmp_path), block)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(len(RECIPES)))
def test_every_recipe_runs_with_only_what_it_names(number, wheel, tmp_path):
    """A recipe needs no package that the README does not name."""
    packages, block = RECIPES[number]
    check(run_as_pasted(packages, block, wheel, tmp_path), block)
