"""`amends try --page`: the demo's page is served while the demo runs, and its record is deleted afterwards."""

import os
import urllib.request
from pathlib import Path

from amends import Fault
from amends.core import recording
from amends.demo.page import demo_page
from amends.recorder import current_recorder


def test_the_page_of_the_demo(monkeypatch):
    """It shows what this process records, and nothing stays."""
    monkeypatch.setenv("AMENDS_PAGE_TOKEN", "the-t0ken-of-these-tests")
    before = os.environ.get("AMENDS_RECORD")
    with demo_page() as address:
        recorder = current_recorder()
        file = Path(recorder.url.removeprefix("sqlite:///"))
        assert os.environ["AMENDS_RECORD"] == recorder.url
        recording.emit("http client", "gave-up", Fault(code="CONFLICT"), name="GET /prices")
        recorder.flush()
        request = urllib.request.Request(
            address, headers={"authorization": "Bearer the-t0ken-of-these-tests"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert b"GET /prices" in answer.read()
        assert file.exists()
    assert not file.exists()
    assert os.environ.get("AMENDS_RECORD") == before
