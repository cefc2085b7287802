"""docs/coming-from-retry-libraries.md: every block runs with the real libraries, and no library sleeps for real."""

import asyncio
import re
import time
from pathlib import Path

import pytest
import stamina

from amends.testing import FakeClock

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-retry-libraries.md"
TEXT = PAGE.read_text()
SETUP, *BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
LIBRARIES = ("from tenacity", "import stamina", "import backoff", "from amends")


@pytest.fixture
def no_sleep(monkeypatch):
    """Make the sleeps of all libraries return at once."""

    async def asleep(seconds):
        return None

    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(asyncio, "sleep", asleep)
    stamina.set_testing(False)
    with FakeClock():
        yield


def test_the_examples_run(no_sleep):
    """Each block runs after the set-up block, as a reader would copy it."""
    for number, block in enumerate(BLOCKS, 2):
        names = {"__name__": "recipes"}
        for code, which in ((SETUP, 1), (block, number)):
            exec(compile(code, f"{PAGE.name}, block {which}", "exec"), names)


def test_every_task_is_shown_with_every_library():
    """Six tasks, each with tenacity, stamina, backoff and amends; httpx-retries is named in each."""
    tasks = re.split(r"^## \d\. ", TEXT, flags=re.MULTILINE)[1:]
    assert len(tasks) == 6
    for task in tasks:
        blocks = "".join(re.findall(r"^```python\n(.*?)^```", task, re.DOTALL | re.MULTILINE))
        assert all(library in blocks for library in LIBRARIES)
        assert "httpx-retries" in task
